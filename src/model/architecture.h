// One model architecture: how its metadata becomes a Config, its tensors
// become Weights, and a pass is computed. One file per family in arch/, one
// line per name in architectures.cc.
#ifndef SLUICE_SRC_MODEL_ARCHITECTURE_H_
#define SLUICE_SRC_MODEL_ARCHITECTURE_H_

#include <span>
#include <string_view>

#include "src/model/binder.h"
#include "src/model/config.h"
#include "src/model/config_reader.h"
#include "src/model/pass.h"
#include "src/model/weights.h"

namespace sluice {

struct Architecture {
  const char* name;  // general.architecture
  // Errors stick to the reader and the binder.
  void (*read_config)(ConfigReader& reader, Config* config);
  void (*bind)(Binder& binder, const Config& config, Weights* weights);
  void (*forward)(Pass& pass);
};

std::span<const Architecture* const> Architectures();
const Architecture* FindArchitecture(std::string_view name);  // null: unknown

}  // namespace sluice
#endif  // SLUICE_SRC_MODEL_ARCHITECTURE_H_
