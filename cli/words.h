// What the words of a flag's value mean.
#ifndef SLUICE_CLI_WORDS_H_
#define SLUICE_CLI_WORDS_H_

#include <optional>
#include <string>

#include "src/base/status.h"
#include "src/engine/model_runner.h"

namespace sluice {

// An unknown word is an error that names the flag and the words it knows.
Result<LoadMode> ParseLoadMode(const std::string& word);
Result<HugePages> ParseHugePages(const std::string& word);
Result<NumaMode> ParseNumaMode(const std::string& word);
Result<Activations> ParseActivations(const std::string& word);
// --kv-type, or llama.cpp's word for it; none: auto, the model's DefaultKvType.
Result<std::optional<KvType>> ParseKvType(const std::string& word);

// CLI11 checks: what is wrong with the value, or nothing.
std::string NamesAFile(const std::string& value);
std::string NotEmpty(const std::string& value);

}  // namespace sluice
#endif  // SLUICE_CLI_WORDS_H_
