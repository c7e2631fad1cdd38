// The one thread team. A step of the engine is one parallel region: every
// thread runs the same function (SPMD), splits each op's rows by its index, and
// meets the others at Barrier(). Built on OpenMP; threads pinned through hwloc.
#ifndef SLUICE_SRC_MACHINE_THREAD_TEAM_H_
#define SLUICE_SRC_MACHINE_THREAD_TEAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "src/base/status.h"

namespace sluice {

class ThreadTeam;

// One thread's view of the running region. Lives on that thread; never shared.
class Worker {
 public:
  int index() const { return index_; }  // 0 .. count-1; 0 leads
  int count() const { return count_; }
  // Waits for every worker of the region; memory written before is visible after.
  void Barrier();
  // This worker's contiguous share of [0, n), in multiples of `grain` (the last share may be
  // ragged). Static: the same for the same n, count and grain.
  std::pair<size_t, size_t> Share(size_t n, size_t grain = 1) const;
  // Calls fn(begin, end) for runs of tiles so that over all workers of the region each
  // tile of [0, tiles) is done once. Every worker calls it with the same `tiles` and in the same
  // order among its ForTiles and Barrier calls. A worker begins with its own Share(tiles); which
  // other tiles it gets depends on time, so no byte may depend on who does a tile, and whoever
  // reads the results waits for a Barrier(). Returns when no tile is left to take.
  template <class F>
  void ForTiles(size_t tiles, F&& fn) {
    if (count_ == 1) {
      if (tiles > 0) fn(size_t{0}, tiles);
      return;
    }
    ++tile_op_;
    for (std::pair<size_t, size_t> run; (run = TakeRun(tiles)).first < run.second;) {
      fn(run.first, run.second);
    }
  }
  // Next index of a shared counter, for dynamic work lists; Barrier() before reuse. Counters: 0..3,
  // reset by ResetCounter (one worker, between barriers).
  size_t Next(int counter);
  void ResetCounter(int counter);

 private:
  friend class ThreadTeam;
  std::pair<size_t, size_t> ShareOf(int worker, size_t n, size_t grain) const;
  // The next run of this worker in its latest ForTiles; empty when none is left.
  std::pair<size_t, size_t> TakeRun(size_t tiles);

  ThreadTeam* team_ = nullptr;
  int index_ = 0, count_ = 1;
  uint32_t tile_op_ = 0;  // number of the latest ForTiles; the same on every worker
};

class ThreadTeam {
 public:
  // `threads` = 0: one per physical core that the affinity mask and the cgroup quota (rounded down)
  // allow.
  static Result<std::unique_ptr<ThreadTeam>> Create(int threads);
  ~ThreadTeam();

  int size() const;
  // Runs fn on `threads` workers (0: all; the calling thread is worker 0) and returns when all
  // have. fn must not throw. Not re-entrant; one caller at a time.
  void Run(const std::function<void(Worker&)>& fn, int threads = 0);

  // Barriers passed by worker 0 since creation (tests count barriers per layer).
  uint64_t barriers() const;
  // Time that workers have waited in barriers since creation, the one that ends Run included, added
  // up over the workers. Against size() times the time in Run it is the share that was lost.
  uint64_t wait_ns() const;
  // Time in Run, added up over the workers, in which a worker neither ran nor slept in a barrier:
  // other programs (or a quota) kept its CPU from it.
  uint64_t lost_ns() const;

  // Between regions. True: from the next one on workers are not bound to a core each but run on any
  // core of the team (for a core that another program keeps busy).
  void LetWorkersMove(bool moving);
  // Between regions. Shares become proportional to these relative speeds of the workers, one each
  // and above 0; empty: equal shares.
  void SetRates(std::span<const double> rates);

 private:
  friend class Worker;
  ThreadTeam();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_THREAD_TEAM_H_
