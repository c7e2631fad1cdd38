// Where models live and how a name on the command line finds one. Used by every
// subcommand that takes a MODEL.
#ifndef SLUICE_CLI_MODEL_PATH_H_
#define SLUICE_CLI_MODEL_PATH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace sluice {

inline constexpr char kDefaultModelName[] = "gemma-3-270m";
inline constexpr char kDefaultModelFile[] = "gemma-3-270m-q4_k_m.gguf";

// $SLUICE_MODELS, else $XDG_DATA_HOME/sluice/models, else ~/.local/share/sluice/models.
// May not exist yet. Empty when the environment names no home.
std::string ModelFolder();

struct ModelFile {
  std::string name;    // file name without .gguf and without the number of a split part
  std::string path;    // first part of a split model
  uint64_t bytes = 0;  // of all parts
};

// The .gguf files of the model folder, by name. A missing folder holds none.
std::vector<ModelFile> ListModels();

// The file that `name` means, in this order: the default model when it is empty; a path; the name
// of a model in the folder, with or without .gguf, in any case; the unique model whose name begins
// with `name` and a separator ("gemma-3-270m" finds gemma-3-270m-q4_k_m). "a:b" is "a-b". kNotFound
// says what was looked for, where, and which command helps.
Result<std::string> FindModel(const std::string& name);

}  // namespace sluice
#endif  // SLUICE_CLI_MODEL_PATH_H_
