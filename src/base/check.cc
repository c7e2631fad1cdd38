#include "src/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace sluice {

void CheckFailed(const char* file, int line, const char* expression) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s\n", file, line, expression);
  std::abort();
}

}  // namespace sluice
