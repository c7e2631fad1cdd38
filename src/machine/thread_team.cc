#include "src/machine/thread_team.h"

#include <linux/futex.h>
#include <omp.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "hwy/cache_control.h"
#include "src/base/check.h"
#include "src/machine/topology.h"

#if defined(__has_feature)
#define SLUICE_HAS(sanitizer) __has_feature(sanitizer)
#else
#define SLUICE_HAS(sanitizer) 0
#endif
// The OpenMP runtime is not instrumented: its own locks and memory look like races, and it keeps a
// few records of every team. What our code shares between workers is ordered by atomics of this
// file, so nothing of ours is hidden.
#if defined(__SANITIZE_THREAD__) || SLUICE_HAS(thread_sanitizer)
extern "C" const char* __tsan_default_options() { return "ignore_noninstrumented_modules=1"; }
#endif
#if defined(__SANITIZE_ADDRESS__) || SLUICE_HAS(address_sanitizer)
extern "C" const char* __lsan_default_suppressions() { return "leak:libomp.so\nleak:libgomp.so\n"; }
#endif

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMaxThreads = 1024;
// Longer than any wait between well balanced shares, shorter than what a waiting process would
// miss. Beside a busy neighbour 10 us lost (decode 26 tok/s instead of 30, Zen 4, Linux 6.18).
constexpr auto kSpin = std::chrono::microseconds(70);
// How long a late worker is watched before it counts as stopped.
constexpr auto kWatch = std::chrono::microseconds(10);
constexpr int kPausesPerLook = 32;  // about 1 us between looks at the clock, which cost 25 ns

// 128: two lines, because x86 prefetches them in pairs.
template <class T>
struct alignas(128) Padded {
  std::atomic<T> value{0};
};

// What is left of one worker's tiles in one ForTiles call, in one word, so that a single
// compare-and-swap takes a run from either end. The tag is the number of the call: a word of an
// earlier call means that nobody has taken anything of this share yet, one of a later call that the
// whole call is over (nobody leaves one before every share of it is taken).
constexpr size_t kTileSlots = 8;  // calls in a row that use different words
constexpr size_t kMostUnits = 0xffff;

struct Range {
  uint32_t tag;
  uint32_t front, back;  // units [front, back) are left

  static Range Of(uint64_t word) {
    return {static_cast<uint32_t>(word >> 32), static_cast<uint32_t>(word >> 16 & 0xffff),
            static_cast<uint32_t>(word & 0xffff)};
  }
  uint64_t Word() const {
    return static_cast<uint64_t>(tag) << 32 | static_cast<uint64_t>(front) << 16 | back;
  }
};

// How much CPU time the kernel gives this thread at a stretch when others want the CPU too: 0.1 ms,
// the least, instead of 3 ms. The sum stays fair. A thread that wakes up in a barrier, having used
// less than its part, then runs at once and not when the neighbour's 3 ms are over. 1B Q4_0, 2
// CPUs, Zen 4, Linux 6.18, two threads: decode 30 instead of 15 tok/s beside one busy neighbour, 26
// instead of 19 beside two, prefill 190 and 128 instead of 173 and 115. Kernels before 6.12 accept
// and ignore it. Niceness and policy stay what they are.
void AskForShortSlices() {
  struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime_ns, deadline_ns, period_ns;
  } attributes = {};  // the kernel's sched_attr, first version; C libraries have none before 2.41
  static_assert(sizeof(attributes) == 48);
  constexpr uint32_t kNormalPolicy = 0;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0) return;
  if (attributes.policy != kNormalPolicy) return;
  attributes.size = sizeof(attributes);
  attributes.runtime_ns = 100'000;
  (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

uint64_t ThreadCpuNs() {
  timespec t = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

uint64_t NsSince(Clock::time_point start) {
  return static_cast<uint64_t>(std::chrono::nanoseconds(Clock::now() - start).count());
}

// What one worker writes and any thread may read.
struct alignas(128) WorkerTimes {
  std::atomic<uint64_t> waited_ns{0};  // in barriers
  std::atomic<uint64_t> slept_ns{0};   // of that, asleep
  std::atomic<uint64_t> lost_ns{0};    // neither running nor asleep: others had its CPU
  std::atomic<uint64_t> region_ns{0};  // from the last region's begin to this worker's end of it
};

// Where one worker is. Written by that worker, and `seat` by whoever trades with it.
struct alignas(128) WorkerPlace {
  std::atomic<uint32_t> arrived{0};  // the epoch that it is waiting for, or last waited for
  std::atomic<int> seat{0};          // index of its binding
  std::atomic<int> tid{0}, cpu_clock{0};
  std::atomic<uint64_t> region{0};  // in which tid and cpu_clock were written
};

void AddTo(std::atomic<uint64_t>& sum, uint64_t more) {
  sum.store(sum.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

// How long OpenMP's idle threads spin before they sleep. libgomp's 300 000 pauses (7 ms on Zen 4)
// are right: steps that follow within it start in 1 us (after it, 30 us), and an idle process
// sleeps. OMP_WAIT_POLICY=passive lost: 25 us at every step. libomp's 200 ms would burn a core
// after each answer, so it is shortened to the same.
void ShortenIdleSpin() {
#ifdef KMP_VERSION_MAJOR
  thread_local const bool done = [] {
    if (std::getenv("KMP_BLOCKTIME") == nullptr) kmp_set_blocktime(8);
    return true;
  }();
  (void)done;
#endif
}

// All CPUs of the team's cores. Fewer threads than cores keep to the fastest kind of core if they
// all fit.
std::vector<int> SharedCpus(const Topology& machine, int threads) {
  size_t fast = 0;
  for (const Core& core : machine.cores) fast += core.kind == 0;
  std::vector<int> all;
  for (const Core& core : machine.cores) {
    if (static_cast<size_t>(threads) > fast || core.kind == 0) {
      all.insert(all.end(), core.cpus.begin(), core.cpus.end());
    }
  }
  return all;
}

bool OneCoreEach(const Topology& machine, int threads) {
  return static_cast<size_t>(threads) == machine.cores.size() && threads <= machine.UsableCpus();
}

// Bindings of one NUMA node and one kind of core are of one class; none if they are all the same.
std::vector<int> SeatClasses(const Topology& machine, int threads) {
  std::vector<int> classes;
  if (!OneCoreEach(machine, threads)) return classes;
  for (const Core& core : machine.cores) {
    classes.push_back(core.numa_node * machine.core_kinds + core.kind);
  }
  return classes;
}

// Where each worker may run. A core of its own only when the team takes every core: two programs
// (or two containers under a quota) that each bound their few threads to the first cores would
// share those and leave the rest idle. All CPUs otherwise, which also undoes the binding of an
// earlier team.
std::vector<std::vector<int>> WorkerBindings(const Topology& machine, int threads) {
  const size_t count = static_cast<size_t>(threads);
  if (!OneCoreEach(machine, threads)) {
    return std::vector<std::vector<int>>(count, SharedCpus(machine, threads));
  }
  std::vector<std::vector<int>> bindings(count);
  for (size_t i = 0; i < count; ++i) bindings[i] = machine.cores[i].cpus;
  return bindings;
}

}  // namespace

struct ThreadTeam::State {
  // Fixed by Create.
  int threads = 1;
  int usable_cpus = 1;
  bool bind = false;
  uint64_t serial = 0;                     // tells this team from every other of the process
  std::vector<std::vector<int>> bindings;  // [threads] logical CPUs of each worker
  std::vector<int> shared_cpus;            // logical CPUs of all of them
  std::vector<int> seat_class;             // [threads] bindings that are as good as each other;
                                           // empty: workers have no core of their own
  std::vector<size_t> node_of;             // [threads] index into `nodes`

  // Set between regions.
  std::atomic<bool> moving{false};  // workers run on any of shared_cpus
  std::vector<uint64_t> edges;      // [threads + 1] where shares begin, rising; empty: equal shares

  // The barrier: workers add themselves to `arrived` of their NUMA node; the last one there adds
  // the node to `nodes_arrived`, and the last one of all clears the counts and moves every node's
  // `epoch` on: waiting workers look at their own node's memory only. Epochs are equal except while
  // they move.
  struct NodeBarrier {
    Padded<uint32_t> epoch;
    Padded<int> arrived;
    Padded<int> sleepers;
    std::vector<int> workers;  // [threads + 1] of the first n workers, those of this node
  };
  std::vector<NodeBarrier> nodes;
  std::vector<int> used_nodes;  // [threads + 1] nodes that the first n workers are on
  Padded<int> nodes_arrived;
  std::vector<Padded<uint64_t>> ranges;  // [kTileSlots][threads] words of a Range
  uint32_t tile_op = 0;                  // ForTiles calls of all earlier regions
  int fresh_ranges = 0;                  // workers whose words belong to recent calls

  // OpenMP's own fork and join order memory too, but invisibly to a thread sanitizer; these two do
  // it in sight: the leader releases `started`, workers release `finished`.
  Padded<uint64_t> started;
  Padded<int> finished;

  std::atomic<bool> running{false};
  std::atomic<uint64_t> barriers{0};  // written by worker 0
  std::vector<WorkerTimes> times;     // [threads]
  std::vector<WorkerPlace> places;    // [threads]
  std::atomic_flag trading;

  uint64_t WaitForEpochAfter(uint32_t seen, int index, int count, Clock::time_point start);
  bool IsStopped(int worker, const NodeBarrier& mine, uint32_t seen) const;
  void TradePlaces(int index, int count, uint32_t seen);
  void Barrier(int index, int count);
  bool IsLast(NodeBarrier& mine, int count);
  void MakeNodes(const Topology& machine);
  NodeBarrier& NodeOf(int worker) { return nodes[node_of[static_cast<size_t>(worker)]]; }
  void BindWorker(int index);
  void FreshRanges(int count);
  void AddLateJoin(uint64_t wall_ns, int count);
};

// All workers had come to the end of the region: a join that takes longer than the wait between
// balanced shares waited for one that a quota or another program stopped there, and so did the rest
// (address sanitizer, libomp, a quota of a fifth of a CPU: half of all stops).
void ThreadTeam::State::AddLateJoin(uint64_t wall_ns, int count) {
  constexpr uint64_t kJoin = std::chrono::nanoseconds(kSpin).count();
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const uint64_t own_ns = times[i].region_ns.load(std::memory_order_relaxed);
    if (wall_ns > own_ns + kJoin) AddTo(times[i].lost_ns, wall_ns - own_ns);
  }
}

// Spins first (another worker's share ends within microseconds), then sleeps: a thread that spins
// uses up the time that it needs when the others have come. With more workers than CPUs spinning
// would only keep them from running: 4-45x slower where engines do that. No sched_yield between the
// two, and no std::atomic::wait, which has some inside: from Linux 6.18 on a thread that yields
// beside a busy neighbour gives away a whole slice. Returns what it slept, in ns.
uint64_t ThreadTeam::State::WaitForEpochAfter(uint32_t seen, int index, int count,
                                              Clock::time_point start) {
  NodeBarrier& node = NodeOf(index);
  const auto moved = [&] { return node.epoch.value.load(std::memory_order_seq_cst) != seen; };
  if (count <= usable_cpus) {
    const auto end = start + kSpin;
    do {
      for (int i = 0; i < kPausesPerLook; ++i) {
        if (moved()) return 0;
        hwy::Pause();
      }
    } while (Clock::now() < end);
  }
  if (!moving.load(std::memory_order_relaxed) && !seat_class.empty()) {
    TradePlaces(index, count, seen);
  }
  const auto asleep = Clock::now();
  node.sleepers.value.fetch_add(1, std::memory_order_seq_cst);
  while (!moved()) {
    // Returns at once if the epoch has moved on.
    (void)syscall(SYS_futex, &node.epoch.value, FUTEX_WAIT_PRIVATE, seen, nullptr, nullptr, 0);
  }
  node.sleepers.value.fetch_sub(1, std::memory_order_relaxed);
  const uint64_t slept = NsSince(asleep);
  AddTo(times[static_cast<size_t>(index)].slept_ns, slept);
  return slept;
}

// Whether a worker that all wait for does not run: its CPU time stands still.
bool ThreadTeam::State::IsStopped(int worker, const NodeBarrier& mine, uint32_t seen) const {
  const WorkerPlace& place = places[static_cast<size_t>(worker)];
  const auto used = [&] {
    timespec t = {};
    clock_gettime(place.cpu_clock.load(std::memory_order_relaxed), &t);
    return std::pair<time_t, long>(t.tv_sec, t.tv_nsec);
  };
  const auto before = used();
  const auto end = Clock::now() + kWatch;
  while (Clock::now() < end) {
    if (mine.epoch.value.load(std::memory_order_relaxed) != seen) return false;
  }
  return used() == before;
}

// A worker that has nothing to do but sleep gives its core to one that others keep from running,
// and takes that one's: the late one goes on at once, and the sleeper will have waited long enough
// for the kernel to prefer it to the neighbour when it wakes. 1B Q4_0, 2 CPUs, Zen 4, Linux 6.18,
// one neighbour: decode 37 tok/s instead of 25 (bound to a core: 29 instead of 20; one thread 26;
// undisturbed 43). Without it the sleeper's core stays idle: workers that are not bound move to it
// only now and then. A smaller share for the worker beside the neighbour lost (25 tok/s).
void ThreadTeam::State::TradePlaces(int index, int count, uint32_t seen) {
  WorkerPlace& mine = places[static_cast<size_t>(index)];
  for (int i = 0; i < count; ++i) {
    WorkerPlace& late = places[static_cast<size_t>(i)];
    const auto waits = [&] { return late.arrived.load(std::memory_order_relaxed) == seen + 1; };
    if (i == index || waits()) continue;
    // One that has not come to this region yet may be another thread than the one noted. One that
    // has lives until all have left the region.
    if (late.region.load(std::memory_order_acquire) !=
        started.value.load(std::memory_order_relaxed)) {
      continue;
    }
    if (!IsStopped(i, NodeOf(index), seen)) continue;
    if (trading.test_and_set(std::memory_order_acquire)) return;
    const int from = mine.seat.load(std::memory_order_relaxed);
    const int to = late.seat.load(std::memory_order_relaxed);
    const auto kind = [&](int seat) { return seat_class[static_cast<size_t>(seat)]; };
    const bool trade = kind(from) == kind(to) && !waits();
    if (trade) {
      late.seat.store(from, std::memory_order_relaxed);
      mine.seat.store(to, std::memory_order_relaxed);
      (void)BindThread(late.tid.load(std::memory_order_relaxed),
                       bindings[static_cast<size_t>(from)]);
      (void)BindThisThread(bindings[static_cast<size_t>(to)]);
    }
    trading.clear(std::memory_order_release);
    if (trade) return;
  }
}

void ThreadTeam::State::Barrier(int index, int count) {
  // Cannot change before this worker has arrived.
  NodeBarrier& mine = NodeOf(index);
  const uint32_t seen = mine.epoch.value.load(std::memory_order_relaxed);
  places[static_cast<size_t>(index)].arrived.store(seen + 1, std::memory_order_relaxed);
  if (!IsLast(mine, count)) {
    // Two looks at the clock, 25 ns each (Zen 4), the first of which the spin needs anyway; a
    // worker that finds the others there already takes none.
    if (mine.epoch.value.load(std::memory_order_acquire) != seen) return;
    const auto start = Clock::now();
    const uint64_t slept = WaitForEpochAfter(seen, index, count, start);
    // One that lost its CPU while it spun was lost for that time, which is counted elsewhere.
    constexpr uint64_t kMostAwake = 2 * std::chrono::nanoseconds(kSpin).count();
    AddTo(times[static_cast<size_t>(index)].waited_ns,
          slept + std::min(NsSince(start) - slept, kMostAwake));
    return;
  }
  for (NodeBarrier& node : nodes) {
    // Sequentially consistent: either the sleeper sees the new epoch or we see the sleeper.
    node.epoch.value.fetch_add(1, std::memory_order_seq_cst);
    if (node.sleepers.value.load(std::memory_order_seq_cst) == 0) continue;
    static_assert(sizeof(node.epoch.value) == sizeof(uint32_t));
    (void)syscall(SYS_futex, &node.epoch.value, FUTEX_WAKE_PRIVATE, kMaxThreads, nullptr, nullptr,
                  0);
  }
}

// Whether this worker, of a team of `count`, is the last of all to arrive; then no count is left.
bool ThreadTeam::State::IsLast(NodeBarrier& mine, int count) {
  const size_t n = static_cast<size_t>(count);
  if (mine.arrived.value.fetch_add(1, std::memory_order_acq_rel) + 1 < mine.workers[n])
    return false;
  mine.arrived.value.store(0, std::memory_order_relaxed);
  if (used_nodes[n] == 1) return true;
  if (nodes_arrived.value.fetch_add(1, std::memory_order_acq_rel) + 1 < used_nodes[n]) return false;
  nodes_arrived.value.store(0, std::memory_order_relaxed);
  return true;
}

// Counts the workers of each node for every size of the team.
void ThreadTeam::State::MakeNodes(const Topology& machine) {
  const size_t n = static_cast<size_t>(threads);
  node_of.assign(n, 0);
  if (OneCoreEach(machine, threads)) {
    for (size_t i = 0; i < n; ++i) node_of[i] = static_cast<size_t>(machine.cores[i].numa_node);
  }
  nodes = std::vector<NodeBarrier>(*std::max_element(node_of.begin(), node_of.end()) + 1);
  used_nodes.assign(n + 1, 0);
  for (size_t node = 0; node < nodes.size(); ++node) {
    std::vector<int>& workers = nodes[node].workers;
    workers.push_back(0);
    for (size_t i = 0; i < n; ++i) workers.push_back(workers.back() + (node_of[i] == node));
    for (size_t i = 0; i <= n; ++i) used_nodes[i] += workers[i] > 0;
  }
}

// Once per thread, team and placement; alternating teams on one thread pay a microsecond each time.
// A refusal (a sandbox, a shrunk mask) costs speed only.
void ThreadTeam::State::BindWorker(int index) {
  thread_local const int tid = (AskForShortSlices(), static_cast<int>(syscall(SYS_gettid)));
  thread_local const clockid_t cpu_clock = [] {
    clockid_t id = CLOCK_THREAD_CPUTIME_ID;
    (void)pthread_getcpuclockid(pthread_self(), &id);
    return id;
  }();
  thread_local uint64_t bound_serial = 0;
  thread_local int bound_place = -1;
  WorkerPlace& place = places[static_cast<size_t>(index)];
  place.tid.store(tid, std::memory_order_relaxed);
  if (!bind) return;
  const bool anywhere = moving.load(std::memory_order_relaxed);
  const int where = anywhere ? -2 : index;
  if (bound_serial != serial || bound_place != where) {
    bound_serial = serial;
    bound_place = where;
    const size_t seat = static_cast<size_t>(place.seat.load(std::memory_order_relaxed));
    (void)BindThisThread(anywhere ? shared_cpus : bindings[seat]);
  }
  // Last: from here on others may trade places with this worker.
  place.cpu_clock.store(cpu_clock, std::memory_order_relaxed);
  place.region.store(started.value.load(std::memory_order_relaxed), std::memory_order_release);
}

// Words of workers that sat out many regions could carry a tag that has come round again.
void ThreadTeam::State::FreshRanges(int count) {
  for (int i = fresh_ranges; i < count; ++i) {
    for (size_t slot = 0; slot < kTileSlots; ++slot) {
      ranges[slot * static_cast<size_t>(threads) + static_cast<size_t>(i)].value.store(
          Range{tile_op, 0, 0}.Word(), std::memory_order_relaxed);
    }
  }
  fresh_ranges = count;
}

void Worker::Barrier() {
  if (index_ == 0) {
    auto& passed = team_->state_->barriers;
    passed.store(passed.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  if (count_ > 1) team_->state_->Barrier(index_, count_);
}

std::pair<size_t, size_t> Worker::Share(size_t n, size_t grain) const {
  return ShareOf(index_, n, grain);
}

void Worker::TouchShare(uint8_t* data, size_t bytes, size_t grain) const {
  constexpr size_t kPage = 4096;
  const auto [begin, end] = Share(bytes, grain);
  for (size_t at = begin; at < end; at += kPage) data[at] = 1;
}

std::pair<size_t, size_t> Worker::ShareOf(int worker, size_t n, size_t grain) const {
  DCHECK(grain > 0);
  const size_t units = n / grain + (n % grain != 0);
  const size_t index = static_cast<size_t>(worker);
  const auto at = [&](size_t unit) { return unit < units ? unit * grain : n; };
  if (const std::vector<uint64_t>& edges = team_->state_->edges; !edges.empty()) {
    const uint64_t sum = edges[static_cast<size_t>(count_)];
    // units * edge / sum without overflow: edges are below 2^26.
    const auto edge = [&](size_t i) {
      return units / sum * edges[i] + units % sum * edges[i] / sum;
    };
    return {at(edge(index)), at(edge(index + 1))};
  }
  const size_t each = units / count_;
  const size_t more = units % count_;  // the first `more` workers take one unit extra
  const size_t begin = each * index + std::min(index, more);
  const size_t end = begin + each + (index < more);
  return {at(begin), at(end)};
}

// A share is taken front to back (one stream for the prefetcher) in eight runs or so, and in
// smaller ones at its end, where a thread without work takes runs from the back of whoever has
// most left. A thread that loses its CPU thus holds up one run.
Worker::TileRun Worker::TakeRun(std::span<const size_t> parts) {
  ThreadTeam::State& state = *team_->state_;
  Padded<uint64_t>* const words =
      &state.ranges[tile_op_ % kTileSlots * static_cast<size_t>(state.threads)];
  size_t tiles = 0;
  for (const size_t part : parts) tiles += part;
  DCHECK(parts.size() < kMostUnits);
  const size_t unit = tiles / (kMostUnits - parts.size()) + 1;
  const auto share_size = static_cast<uint32_t>(tiles / unit / static_cast<size_t>(count_));
  const uint32_t most = share_size / 8 + 1, least = most / 4 + 1;
  // Where worker i's list begins and ends: the parts of all workers before it come first.
  const auto list_of = [&](int i) {
    size_t first = 0, end = 0;
    for (const size_t part : parts) {
      const auto [from, to] = ShareOf(i, Units(part, unit), 1);
      first += from;
      end += to;
    }
    return Range{tile_op_, static_cast<uint32_t>(first), static_cast<uint32_t>(end)};
  };
  // What is left of it, and the word that says so.
  const auto read = [&](int i, uint64_t& seen) {
    seen = words[i].value.load(std::memory_order_relaxed);
    const Range range = Range::Of(seen);
    const auto later = static_cast<int32_t>(range.tag - tile_op_);
    if (later == 0) return range;
    if (later > 0) return Range{tile_op_, 0, 0};
    return list_of(i);
  };

  int from = index_;
  for (;;) {
    uint64_t seen;
    Range range = read(from, seen);
    const uint32_t left = range.back - range.front;
    const uint32_t run = std::min(left, std::clamp(left / 2, least, most));
    if (run > 0) {
      const uint32_t begin = from == index_ ? range.front : range.back - run;
      if (from == index_) {
        range.front += run;
      } else {
        range.back -= run;
      }
      // Relaxed: what the tiles read and write is ordered by barriers.
      if (!words[from].value.compare_exchange_strong(seen, range.Word(),
                                                     std::memory_order_relaxed)) {
        continue;
      }
      return {from, list_of(from).front, begin, begin + run, unit};
    }
    uint32_t best = 0;
    for (int i = 0; i < count_; ++i) {
      const Range other = read(i, seen);
      if (other.back - other.front > best) {
        best = other.back - other.front;
        from = i;
      }
    }
    if (best == 0) return {0, 0, 0, 0, 1};
  }
}

ThreadTeam::ThreadTeam() : state_(std::make_unique<State>()) {}
ThreadTeam::~ThreadTeam() = default;

Result<std::unique_ptr<ThreadTeam>> ThreadTeam::Create(int threads) {
  return Create(threads, ThisMachine());
}

Result<std::unique_ptr<ThreadTeam>> ThreadTeam::Create(int threads, const Topology& machine) {
  if (threads < 0 || threads > kMaxThreads) {
    return Status(StatusCode::kInvalidArgument, "threads: expected 0 (one per usable core) to " +
                                                    std::to_string(kMaxThreads) + ", found " +
                                                    std::to_string(threads));
  }
  static std::atomic<uint64_t> serials{0};
  std::unique_ptr<ThreadTeam> team(new ThreadTeam());
  State& state = *team->state_;
  state.threads = threads > 0 ? threads : machine.DefaultThreads();
  state.times = std::vector<WorkerTimes>(static_cast<size_t>(state.threads));
  state.usable_cpus = machine.UsableCpus();
  state.MakeNodes(machine);
  state.serial = ++serials;
  state.bindings = WorkerBindings(machine, state.threads);
  state.shared_cpus = SharedCpus(machine, state.threads);
  state.ranges = std::vector<Padded<uint64_t>>(kTileSlots * static_cast<size_t>(state.threads));
  state.places = std::vector<WorkerPlace>(static_cast<size_t>(state.threads));
  for (int i = 0; i < state.threads; ++i) state.places[static_cast<size_t>(i)].seat = i;
  // OMP_PROC_BIND and its kin: the user has placed the threads already.
  state.bind = omp_get_proc_bind() == omp_proc_bind_false;
  if (state.bind) state.seat_class = SeatClasses(machine, state.threads);
  return team;
}

int ThreadTeam::size() const { return state_->threads; }

uint64_t ThreadTeam::barriers() const { return state_->barriers.load(std::memory_order_relaxed); }

uint64_t ThreadTeam::wait_ns() const {
  uint64_t sum = 0;
  for (const auto& mine : state_->times) sum += mine.waited_ns.load(std::memory_order_relaxed);
  return sum;
}

uint64_t ThreadTeam::lost_ns() const {
  uint64_t sum = 0;
  for (const auto& mine : state_->times) sum += mine.lost_ns.load(std::memory_order_relaxed);
  return sum;
}

uint64_t ThreadTeam::slept_ns() const {
  uint64_t sum = 0;
  for (const auto& mine : state_->times) sum += mine.slept_ns.load(std::memory_order_relaxed);
  return sum;
}

std::vector<int> ThreadTeam::ThreadIds() const {
  std::vector<int> ids;
  for (const WorkerPlace& place : state_->places) {
    const int tid = place.tid.load(std::memory_order_relaxed);
    if (tid != 0) ids.push_back(tid);
  }
  return ids;
}

void ThreadTeam::LetWorkersMove(bool moving) {
  CHECK(!state_->running.load(std::memory_order_relaxed));
  state_->moving.store(moving, std::memory_order_relaxed);
}

void ThreadTeam::SetRates(std::span<const double> rates) {
  CHECK(!state_->running.load(std::memory_order_relaxed));
  CHECK(rates.empty() || rates.size() == static_cast<size_t>(state_->threads));
  state_->edges.clear();
  if (rates.empty()) return;
  const double most = *std::max_element(rates.begin(), rates.end());
  state_->edges.push_back(0);
  for (const double rate : rates) {
    CHECK(rate > 0);
    const auto weight = static_cast<uint64_t>(rate / most * 65535 + 1);
    state_->edges.push_back(state_->edges.back() + weight);
  }
}

void ThreadTeam::Run(const std::function<void(Worker&)>& fn, int threads) {
  State* const state = state_.get();
  CHECK(threads >= 0 && threads <= state->threads);
  CHECK(!state->running.exchange(true, std::memory_order_acquire));
  ShortenIdleSpin();
  const int wanted = threads == 0 ? state->threads : threads;
  state->FreshRanges(wanted);
  ThreadTeam* const self = this;
  const auto* const body = &fn;
  const uint64_t run = state->started.value.load(std::memory_order_relaxed) + 1;
  state->started.value.store(run, std::memory_order_release);
  // A worker that gets no CPU to begin on has lost it since the region began.
  const auto begin = Clock::now();
  const uint64_t leader_cpu = ThreadCpuNs();
  // firstprivate: workers get the values, and touch nothing on this stack.
#pragma omp parallel num_threads(wanted) default(none) \
    firstprivate(self, state, body, begin, leader_cpu)
  {
    (void)state->started.value.load(std::memory_order_acquire);
    const uint64_t cpu = ThreadCpuNs();
    Worker worker;
    worker.team_ = self;
    worker.index_ = omp_get_thread_num();
    worker.count_ = omp_get_num_threads();  // OMP_THREAD_LIMIT may give fewer than asked for
    worker.tile_op_ = state->tile_op;
    state->BindWorker(worker.index_);
    WorkerTimes& mine = state->times[static_cast<size_t>(worker.index_)];
    const uint64_t slept = mine.slept_ns.load(std::memory_order_relaxed);
    const uint64_t begin_cpu = worker.index_ == 0 ? leader_cpu : cpu;
    (*body)(worker);
    // Ours spins briefly; OpenMP's join, left to wait for a worker without a CPU, spins for 7 ms.
    if (worker.count_ > 1) state->Barrier(worker.index_, worker.count_);
    if (worker.index_ == 0) state->tile_op = worker.tile_op_;
    const uint64_t used =
        ThreadCpuNs() - begin_cpu + mine.slept_ns.load(std::memory_order_relaxed) - slept;
    const uint64_t wall = NsSince(begin);
    if (wall > used) AddTo(mine.lost_ns, wall - used);
    mine.region_ns.store(wall, std::memory_order_relaxed);
    state->finished.value.fetch_add(1, std::memory_order_release);
  }
  const int count = state->finished.value.exchange(0, std::memory_order_acquire);
  state->AddLateJoin(NsSince(begin), count);
  state->running.store(false, std::memory_order_release);
}

}  // namespace sluice
