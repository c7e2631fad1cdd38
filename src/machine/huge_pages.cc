#include "src/machine/huge_pages.h"

#include <algorithm>

#include "src/machine/read_in_turns.h"

namespace sluice {

double HugePageGain(ThreadTeam& team, std::span<const uint8_t> small,
                    std::span<const uint8_t> huge) {
  constexpr int kPasses = 2;
  const WindowTimes times = ReadInTurns(team, small, huge, kPasses);
  if (times.a_s.empty()) return 1;
  return *std::min_element(times.a_s.begin(), times.a_s.end()) /
         *std::min_element(times.b_s.begin(), times.b_s.end());
}

}  // namespace sluice
