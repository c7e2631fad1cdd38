// Which files of a Hugging Face repository make up one model. Used by `sluice pull`.
#ifndef SLUICE_CLI_HUGGING_FACE_H_
#define SLUICE_CLI_HUGGING_FACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace sluice {

struct RemoteFile {
  std::string url;
  std::string name;    // to save as: no folders
  std::string sha256;  // empty: the server does not say
  uint64_t bytes = 0;
};

// "owner/repo" or "owner/repo:quant" (the text after "hf:"): asks the repository for its files and
// picks the .gguf of that quantisation, all parts of a split one. Without a quantisation: Q4_K_M
// where there is one, else the only one. $SLUICE_HF_ENDPOINT replaces https://huggingface.co.
Result<std::vector<RemoteFile>> HuggingFaceFiles(const std::string& spec, const std::string& token);

}  // namespace sluice
#endif  // SLUICE_CLI_HUGGING_FACE_H_
