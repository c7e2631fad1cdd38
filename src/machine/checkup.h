// What keeps this machine from its speed: each check looks at one thing, says what it
// found, what that costs and how to mend it. The system's state is read below a root;
// what must be measured, or what the caller knows (the model, the folders), is handed
// in. So every check is a function of its input, and tests bring made-up machines.
// Called by `sluice doctor`; any thread.
#ifndef SLUICE_SRC_MACHINE_CHECKUP_H_
#define SLUICE_SRC_MACHINE_CHECKUP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/machine/system_files.h"

namespace sluice {

enum class Severity : uint8_t {
  kOk,
  kNote,     // worth knowing, or could not be read
  kWarning,  // costs speed that can be had
  kProblem,  // does not work, or is many times slower
};
const char* SeverityName(Severity severity);  // "warning"

enum class CostUnit : uint8_t {
  kNone,
  kBytes,
  kSeconds,          // once: at load
  kPrefill,          // % of the speed of prefill
  kDecode,           // % of the speed of decode
  kSpeed,            // % of both
  kSecondsPerToken,  // more, for each token
};
const char* CostUnitName(CostUnit unit);  // "% of prefill speed"

struct Cost {
  double value = 0;
  CostUnit unit = CostUnit::kNone;
  bool measured = false;  // here and now; false: modelled
  std::string how;        // what was measured, or the model and where its numbers are from
};

struct Finding {
  std::string check;  // "governor"
  Severity severity = Severity::kOk;
  std::string found;
  Cost cost;
  std::vector<std::string> fix;  // commands, or what to do; one of them is enough
};

// ---- What is handed in
// ---------------------------------------------------------------------------

// Processes of one name.
struct BusyProgram {
  std::string name;
  int pid = 0;  // of the busiest
  int processes = 0;
  double cpus = 0;
};

// A stretch of time in which sluice did nothing.
struct IdleWindow {
  double seconds = 0;
  double busy_cpus = 0, steal_cpus = 0;  // mean over the window, of the allowed CPUs
  uint64_t throttled = 0;                // periods in which a quota stopped the group
  double swapped_in_mb_s = 0;            // by anybody
  std::vector<BusyProgram> programs;     // the busiest first
};

// nullopt: was not measured.
struct Measured {
  std::optional<IdleWindow> idle;
  std::optional<double> clock_ghz;        // of busy cores
  std::optional<double> read_gb_s;        // all threads
  uint64_t read_bytes = 0;                // so many, again and again; 0: from memory
  std::optional<double> panel_read_gb_s;  // the pages that hold a model's panels
  std::optional<double> huge_page_gain;   // reading from 2 MB pages against 4 KB pages: 1.1 is 10 %
  std::optional<double> target_gain;      // Q4_0 product on the best SIMD target against the chosen
  uint64_t thermal_events = 0;            // while it was measured
};

struct SimdFacts {
  std::string running;      // SIMD target; empty: do not check
  std::string best_built;   // the best that is compiled in and runs here
  std::string best_of_cpu;  // the best of those sluice has, compiled in or not
  bool amx = false;         // usable by this process
  bool cpu_has_avx512 = false, cpu_has_amx = false;  // as CPUID tells, whatever the system allows
};

// A folder or file, and what it lies on.
struct Place {
  std::string what;  // "model", "cache"
  std::string path;
  std::string file_system;  // "ext4"; empty: unknown
  std::optional<uint64_t> free_bytes;
  bool writable = true;
  std::optional<double> read_mb_s;  // measured
  std::string why_not_measured;
};

struct ModelNeed {
  std::string path;
  uint64_t file_bytes = 0, file_resident_bytes = 0;
  uint64_t panel_bytes = 0;                       // of the panels, made or not
  std::optional<uint64_t> panels_resident_bytes;  // nullopt: not made yet
  std::optional<double> huge_share;               // of the panels' map; nullopt: cannot tell
  uint64_t kv_bytes = 0;                          // of `positions`
  size_t positions = 0;
  std::vector<uint64_t> bytes_per_node;  // where the panels' pages lie
  uint64_t copy_room_bytes = 0;          // a run copies so many at most out of slow memory
};

struct CheckupInput {
  SystemFiles files;
  Measured measured;
  SimdFacts simd;
  std::vector<Place> places;
  std::optional<ModelNeed> model;
  size_t connections = 0;  // that `sluice serve` may hold open; 0: do not check
};

// ---- What comes out
// ------------------------------------------------------------------------------

// One finding of every check that applies; the worst first, then the dearest.
std::vector<Finding> Checkup(const CheckupInput& input);

// Whether `a` stands before `b` in that order.
bool Worse(const Finding& a, const Finding& b);

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_CHECKUP_H_
