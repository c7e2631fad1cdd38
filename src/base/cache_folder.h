// Where files belong that can be made again: panels, the machine profile. Any thread.
#ifndef SLUICE_SRC_BASE_CACHE_FOLDER_H_
#define SLUICE_SRC_BASE_CACHE_FOLDER_H_

#include <string>

#include "src/base/status.h"

namespace sluice {

// $SLUICE_CACHE, else $XDG_CACHE_HOME/sluice, else ~/.cache/sluice; an error if the environment has
// none.
Result<std::string> CacheFolder();

}  // namespace sluice
#endif  // SLUICE_SRC_BASE_CACHE_FOLDER_H_
