// Texts that break repetitions (line ends, quotes) as token sequences. Once per
// request that asks for DRY; any thread; a few 10 ms for a large vocabulary.
#ifndef SLUICE_SRC_ENGINE_DRY_BREAKERS_H_
#define SLUICE_SRC_ENGINE_DRY_BREAKERS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/text/tokenizer.h"

namespace sluice {

// For SamplerOptions::dry_breakers: every token that contains one of `texts`, and those texts that
// take several tokens as that sequence. Empty texts are passed over.
std::vector<std::vector<int32_t>> DryBreakers(const Tokenizer& tokenizer,
                                              std::span<const std::string> texts);

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_DRY_BREAKERS_H_
