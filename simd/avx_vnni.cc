#include "simd/avx_vnni.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace sluice {
namespace {

bool wanted_by_caller = true;

}  // namespace

bool HasAvxVnni() {
#if defined(__x86_64__)
  static const bool has = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1) != 0;
  }();
  return has;
#else
  return false;
#endif
}

bool UsesAvxVnni() { return wanted_by_caller && HasAvxVnni(); }
void UseAvxVnni(bool wanted) { wanted_by_caller = wanted; }

}  // namespace sluice
