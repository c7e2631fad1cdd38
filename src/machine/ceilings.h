// The ceilings of this machine for one thread set, measured and remembered: read
// bandwidth from memory (in all and per NUMA node) and from each cache, what each
// weight format's kernel streams and multiplies, attention, barriers. `sluice
// machine` shows them, the model of time (src/engine/time_model) predicts with them.
//
// Shared machines swing twofold within minutes, so each is kept as a history: `now` is
// the latest measurement, `p95` what the machine reaches when others let it.
// Kept in machine.json (profile_file.h). Measured by the thread that owns the team, while
// it is idle.
#ifndef SLUICE_SRC_MACHINE_CEILINGS_H_
#define SLUICE_SRC_MACHINE_CEILINGS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "quant/format.h"
#include "simd/attention.h"
#include "src/base/status.h"
#include "src/machine/machine_profile.h"
#include "src/machine/thread_team.h"

namespace sluice {

// Rows at which kernels are measured. In the caches: one and many, what they can do. As products
// with weights from memory, what to expect: where kernels change between one and many.
inline constexpr size_t kCacheRows[] = {1, 256};
inline constexpr size_t kProductRows[] = {2, 4, 8, 16, 48, 64, 128, 512};
// Up to so many are measured on the threads of decode, more on those of prefill.
inline constexpr size_t kDecodeRateRows = 8;

// How a kernel gets at its weights and multiplies them: the names of its rates.
struct KernelId {
  const Format* format = nullptr;
  bool panels = true;
  bool exact = false;     // as decoded floats
  bool portable = false;  // without the bf16 dot that this CPU has
  bool operator==(const KernelId&) const = default;
};

// Attention over keys and values of this shape, `group` query heads for one kv head.
struct AttentionId {
  KvShape shape;
  size_t group = 1;
};

// Names of rates, all GB/s or 1e9 multiply-adds per second but for the times at the end.
inline constexpr char kReadRate[] = "read";  // from memory
// Of reading ReadProbeBytes(bytes) again and again: kReadRate if that is memory's probe, else
// "read.250MB" (1e6 bytes, two digits), of which caches may hold a part.
std::string ReadRate(uint64_t bytes);
std::string NodeRate(int node);    // "read.node1": its own workers, all nodes at once
std::string CacheRate(int level);  // "read.L2"
inline constexpr char kStreamPrefix[] = "stream.";  // of every StreamRate
std::string StreamRate(const KernelId& id);  // "stream.Q4_K", "stream.Q4_K.rows": bytes of weights
std::string MultiplyRate(const KernelId& id, size_t rows);  // "multiply.Q4_K.256": in the caches
std::string ProductRate(const KernelId& id, size_t rows);   // "product.Q4_K.8": from memory
std::string AttentionRate(const AttentionId& id, bool prompt);  // "attention.bf16.64x64.4"
inline constexpr char kBarrierTime[] = "barrier_us";
inline constexpr char kRowTime[] = "row_ns";    // one value normed and quantised, one thread
inline constexpr char kGateTime[] = "gate_ns";  // one value activated and quantised, one thread

class Ceilings {
 public:
  static constexpr size_t kHistory = 64;
  struct History {
    std::vector<double> values;  // oldest first, kHistory at most
    int64_t at = 0;              // of the newest, seconds of the epoch
  };

  // The newest value; none: never measured.
  std::optional<double> Now(const std::string& name) const;
  bool MeasuredSince(const std::string& name, int64_t since) const;
  // 95th percentile of the history; of times (barrier_us, row_ns, gate_ns) the 5th: what is good.
  std::optional<double> Good(const std::string& name) const;
  void Add(const std::string& name, double value, int64_t at);

  std::string key;  // which machine and thread set
  std::map<std::string, History> rates;
};

// Of this machine, and the threads that its profile chose for decode and prefill.
std::string CeilingsKey(const Topology& machine, int decode_threads, int prefill_threads);

// kNotFound: no file, or nothing of this key in it; kCorrupt.
Result<Ceilings> ReadCeilings(const std::string& path, const std::string& key);
Status WriteCeilings(const std::string& path, const Ceilings& ceilings);
// What is kept for this machine and thread set; empty if there is nothing.
Ceilings KeptCeilings(int decode_threads, int prefill_threads);
// Keeps it; a folder that cannot be written is no error, it costs time next time.
void KeepCeilings(const Ceilings& ceilings);

// What to measure.
struct CeilingList {
  bool memory = true;           // read bandwidths, barriers, row-wise work
  bool caches = false;          // and nodes
  std::vector<uint64_t> reads;  // ReadRate of each
  std::vector<KernelId> kernels;
  bool streams = true;  // of the kernels; without, only what they multiply
  std::vector<AttentionId> attention;
  bool empty() const {
    return !memory && !caches && reads.empty() && kernels.empty() && attention.empty();
  }
};
// Everything `sluice machine` shows: every format with a kernel of its own, held as by default.
CeilingList AllCeilings();
// Without what `ceilings` has, measured at `since` (seconds of the epoch) or later.
CeilingList Lacking(const CeilingList& list, const Ceilings& ceilings, int64_t since = 0);

// Measures the list now and adds it to `ceilings`; under 3 s for AllCeilings, 0.05 s a kernel
// without streams. Error: no memory for a buffer larger than the caches (16 MB if nothing is
// streamed).
Status MeasureCeilings(ThreadTeam& team, int decode_threads, int prefill_threads,
                       const CeilingList& list, Ceilings* ceilings);

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_CEILINGS_H_
