#include "src/base/cache_folder.h"

#include <cstdlib>

namespace sluice {

Result<std::string> CacheFolder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  if (const std::string cache = variable("SLUICE_CACHE"); !cache.empty()) return cache;
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) {
    return cache + "/sluice";
  }
  if (const std::string home = variable("HOME"); !home.empty()) return home + "/.cache/sluice";
  return Status(StatusCode::kNotFound, "no cache folder: set SLUICE_CACHE or HOME");
}

}  // namespace sluice
