#include "src/machine/thread_team.h"

#include <omp.h>
#include <sched.h>

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

constexpr int kCounters = 4;
constexpr int kMaxThreads = 1024;
// Longer than any wait between well balanced shares, shorter than what a waiting process would
// miss.
constexpr auto kSpin = std::chrono::microseconds(70);
constexpr int kPausesPerLook = 32;  // about 1 us between looks at the clock, which cost 25 ns
constexpr int kYields = 4;

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

// Where each worker may run. A core of its own only when the team takes every core: two programs
// (or two containers under a quota) that each bound their few threads to the first cores would
// share those and leave the rest idle. Fewer threads keep to the fastest kind of core if they all
// fit.
std::vector<std::vector<int>> WorkerBindings(const Topology& machine, int threads) {
  const size_t count = threads;
  std::vector<std::vector<int>> bindings(count);
  if (count == machine.cores.size() && threads <= machine.UsableCpus()) {
    for (size_t i = 0; i < count; ++i) bindings[i] = machine.cores[i].cpus;
    return bindings;
  }
  size_t fast = 0;
  for (const Core& core : machine.cores) fast += core.kind == 0;
  std::vector<int> all;  // also undoes the binding of an earlier team
  for (const Core& core : machine.cores) {
    if (count > fast || core.kind == 0) all.insert(all.end(), core.cpus.begin(), core.cpus.end());
  }
  std::fill(bindings.begin(), bindings.end(), all);
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

  // The barrier: workers add themselves to `arrived`; the last one clears it and moves `epoch` on.
  Padded<uint32_t> epoch;
  Padded<int> arrived;
  Padded<size_t> counters[kCounters];
  std::vector<Padded<uint64_t>> ranges;  // [kTileSlots][threads] RangeWord
  uint32_t tile_op = 0;                  // ForTiles calls of all earlier regions
  int fresh_ranges = 0;                  // workers whose words belong to recent calls

  // OpenMP's own fork and join order memory too, but invisibly to a thread sanitizer; these two do
  // it in sight: the leader releases `started`, workers release `finished`.
  Padded<uint64_t> started;
  Padded<int> finished;

  std::atomic<bool> running{false};
  std::atomic<uint64_t> barriers{0};        // written by worker 0
  std::vector<Padded<uint64_t>> waited_ns;  // [threads] each written by its worker

  void WaitForEpochAfter(uint32_t seen, bool spin, Clock::time_point start) const;
  void Barrier(int index, int count);
  void BindWorker(int index) const;
  void FreshRanges(int count);
};

// Spins first (another worker's share ends within microseconds), then offers the CPU to a worker
// that may be waiting for it, then sleeps. With more workers than CPUs spinning would only keep
// them from running: 4-45x slower where engines do that.
void ThreadTeam::State::WaitForEpochAfter(uint32_t seen, bool spin, Clock::time_point start) const {
  const auto moved = [&] { return epoch.value.load(std::memory_order_acquire) != seen; };
  if (spin) {
    const auto end = start + kSpin;
    do {
      for (int i = 0; i < kPausesPerLook; ++i) {
        if (moved()) return;
        hwy::Pause();
      }
    } while (Clock::now() < end);
  }
  for (int i = 0; i < kYields; ++i) {
    if (moved()) return;
    sched_yield();
  }
  while (!moved()) epoch.value.wait(seen, std::memory_order_acquire);  // a futex on Linux
}

void ThreadTeam::State::Barrier(int index, int count) {
  // Cannot change before this worker has arrived.
  const uint32_t seen = epoch.value.load(std::memory_order_relaxed);
  if (arrived.value.fetch_add(1, std::memory_order_acq_rel) + 1 < count) {
    // Two looks at the clock, 25 ns each (Zen 4), the first of which the spin needs anyway; a
    // worker that finds the others there already takes none.
    if (epoch.value.load(std::memory_order_acquire) != seen) return;
    const auto start = Clock::now();
    WaitForEpochAfter(seen, count <= usable_cpus, start);
    const std::chrono::nanoseconds waited = Clock::now() - start;
    auto& sum = waited_ns[static_cast<size_t>(index)].value;
    sum.store(sum.load(std::memory_order_relaxed) + static_cast<uint64_t>(waited.count()),
              std::memory_order_relaxed);
    return;
  }
  arrived.value.store(0, std::memory_order_relaxed);
  epoch.value.fetch_add(1, std::memory_order_seq_cst);  // seq_cst: pairs with the sleepers' count
  epoch.value.notify_all();                             // no system call when nobody sleeps
}

// Once per thread and team; alternating teams on one thread pay a microsecond each time. A refusal
// (a sandbox, a shrunk mask) costs speed only.
void ThreadTeam::State::BindWorker(int index) const {
  thread_local uint64_t bound_serial = 0;
  thread_local int bound_index = -1;
  if (!bind || (bound_serial == serial && bound_index == index)) return;
  bound_serial = serial;
  bound_index = index;
  (void)BindThisThread(bindings[index]);
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

std::pair<size_t, size_t> Worker::ShareOf(int worker, size_t n, size_t grain) const {
  DCHECK(grain > 0);
  const size_t units = n / grain + (n % grain != 0);
  const size_t index = static_cast<size_t>(worker);
  const size_t each = units / count_;
  const size_t more = units % count_;  // the first `more` workers take one unit extra
  const size_t begin = each * index + std::min(index, more);
  const size_t end = begin + each + (index < more);
  const auto at = [&](size_t unit) { return unit < units ? unit * grain : n; };
  return {at(begin), at(end)};
}

// A share is taken front to back (one stream for the prefetcher) in eight runs or so, and in
// smaller ones at its end, where a thread without work takes runs from the back of whoever has
// most left. A thread that loses its CPU thus holds up one run.
std::pair<size_t, size_t> Worker::TakeRun(size_t tiles) {
  ThreadTeam::State& state = *team_->state_;
  Padded<uint64_t>* const words =
      &state.ranges[tile_op_ % kTileSlots * static_cast<size_t>(state.threads)];
  const size_t unit = tiles / kMostUnits + 1;
  const size_t units = tiles / unit + (tiles % unit != 0);
  const auto most = static_cast<uint32_t>(units / (8 * static_cast<size_t>(count_)) + 1);
  const uint32_t least = most / 4 + 1;
  // What is left of worker i's share, and the word that says so.
  const auto read = [&](int i, uint64_t& seen) {
    seen = words[i].value.load(std::memory_order_relaxed);
    const Range range = Range::Of(seen);
    const auto later = static_cast<int32_t>(range.tag - tile_op_);
    if (later == 0) return range;
    if (later > 0) return Range{tile_op_, 0, 0};
    const auto [begin, end] = ShareOf(i, units, 1);
    return Range{tile_op_, static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
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
      return {begin * unit, std::min(tiles, (begin + run) * unit)};
    }
    uint32_t best = 0;
    for (int i = 0; i < count_; ++i) {
      const Range other = read(i, seen);
      if (other.back - other.front > best) {
        best = other.back - other.front;
        from = i;
      }
    }
    if (best == 0) return {0, 0};
  }
}

size_t Worker::Next(int counter) {
  DCHECK(counter >= 0 && counter < kCounters);
  return team_->state_->counters[counter].value.fetch_add(1, std::memory_order_relaxed);
}

void Worker::ResetCounter(int counter) {
  DCHECK(counter >= 0 && counter < kCounters);
  team_->state_->counters[counter].value.store(0, std::memory_order_relaxed);
}

ThreadTeam::ThreadTeam() : state_(std::make_unique<State>()) {}
ThreadTeam::~ThreadTeam() = default;

Result<std::unique_ptr<ThreadTeam>> ThreadTeam::Create(int threads) {
  if (threads < 0 || threads > kMaxThreads) {
    return Status(StatusCode::kInvalidArgument, "threads: expected 0 (one per usable core) to " +
                                                    std::to_string(kMaxThreads) + ", found " +
                                                    std::to_string(threads));
  }
  static std::atomic<uint64_t> serials{0};
  const Topology& machine = ThisMachine();
  std::unique_ptr<ThreadTeam> team(new ThreadTeam());
  State& state = *team->state_;
  state.threads = threads > 0 ? threads : machine.DefaultThreads();
  state.waited_ns = std::vector<Padded<uint64_t>>(static_cast<size_t>(state.threads));
  state.usable_cpus = machine.UsableCpus();
  state.serial = ++serials;
  state.bindings = WorkerBindings(machine, state.threads);
  state.ranges = std::vector<Padded<uint64_t>>(kTileSlots * static_cast<size_t>(state.threads));
  // OMP_PROC_BIND and its kin: the user has placed the threads already.
  state.bind = omp_get_proc_bind() == omp_proc_bind_false;
  return team;
}

int ThreadTeam::size() const { return state_->threads; }

uint64_t ThreadTeam::barriers() const { return state_->barriers.load(std::memory_order_relaxed); }

uint64_t ThreadTeam::wait_ns() const {
  uint64_t sum = 0;
  for (const auto& waited : state_->waited_ns) sum += waited.value.load(std::memory_order_relaxed);
  return sum;
}

void ThreadTeam::Run(const std::function<void(Worker&)>& fn, int threads) {
  State* const state = state_.get();
  CHECK(threads >= 0 && threads <= state->threads);
  CHECK(!state->running.exchange(true, std::memory_order_acquire));
  ShortenIdleSpin();
  const int wanted = threads == 0 ? state->threads : threads;
  state->FreshRanges(wanted);
  for (auto& counter : state->counters) counter.value.store(0, std::memory_order_relaxed);
  ThreadTeam* const self = this;
  const auto* const body = &fn;
  const uint64_t run = state->started.value.load(std::memory_order_relaxed) + 1;
  state->started.value.store(run, std::memory_order_release);
  // firstprivate: workers get the values, and touch nothing on this stack.
#pragma omp parallel num_threads(wanted) default(none) firstprivate(self, state, body)
  {
    (void)state->started.value.load(std::memory_order_acquire);
    Worker worker;
    worker.team_ = self;
    worker.index_ = omp_get_thread_num();
    worker.count_ = omp_get_num_threads();  // OMP_THREAD_LIMIT may give fewer than asked for
    worker.tile_op_ = state->tile_op;
    state->BindWorker(worker.index_);
    (*body)(worker);
    state->finished.value.fetch_add(1, std::memory_order_release);
    // Ours spins briefly; OpenMP's join, left to wait for a worker without a CPU, spins for 7 ms.
    if (worker.count_ > 1) state->Barrier(worker.index_, worker.count_);
    if (worker.index_ == 0) state->tile_op = worker.tile_op_;
  }
  (void)state->finished.value.exchange(0, std::memory_order_acquire);
  state->running.store(false, std::memory_order_release);
}

}  // namespace sluice
