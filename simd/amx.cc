#include "simd/amx.h"

#if SLUICE_HAVE_AMX
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace sluice {

#if SLUICE_HAVE_AMX
namespace {

bool Ask() {
  unsigned a, b, c, d;
  // Leaf 7, EDX: bfloat16, tiles, int8.
  constexpr unsigned kAll = 1u << 22 | 1u << 24 | 1u << 25;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  if ((d & kAll) != kAll) return false;
  constexpr long kRequestState = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, from Linux 5.16
  return syscall(SYS_arch_prctl, kRequestState, kTileData) == 0;
}

}  // namespace

bool HasAmx() {
  static const bool has = Ask();
  return has;
}
#else
bool HasAmx() { return false; }
#endif

}  // namespace sluice
