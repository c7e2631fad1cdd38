// The one thread team. A step of the engine is one parallel region: every
// thread runs the same function (SPMD), splits each op's rows by its index, and
// meets the others at Barrier(). Built on OpenMP; threads pinned through hwloc.
#ifndef SLUICE_SRC_MACHINE_THREAD_TEAM_H_
#define SLUICE_SRC_MACHINE_THREAD_TEAM_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "src/base/status.h"
#include "src/machine/topology.h"

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
  // Writes one byte to each page of this worker's Share(bytes, grain) of fresh memory, so that the
  // system gives it (an untouched page is the kernel's one zero page), on this worker's node.
  void TouchShare(uint8_t* data, size_t bytes, size_t grain = 4096) const;
  // Calls fn(begin, end) for runs of tiles so that over all workers of the region each
  // tile of [0, tiles) is done once. Every worker calls it with the same `tiles` and in the same
  // order among its ForTiles and Barrier calls. A worker begins with its own Share(tiles); which
  // other tiles it gets depends on time, so no byte may depend on who does a tile, and whoever
  // reads the results waits for a Barrier(). Returns when no tile is left to take.
  template <class F>
  void ForTiles(size_t tiles, F&& fn) {
    ForTiles(std::span<const size_t>(&tiles, 1),
             [&](size_t, size_t begin, size_t end) { fn(begin, end); });
  }
  // The same over several lists of tiles at once, parts[p] tiles in list p: fn(p, begin, end). A
  // worker begins with its own Share of every list, so that the rows of several matrices that lie
  // on its NUMA node are its own.
  template <class F>
  void ForTiles(std::span<const size_t> parts, F&& fn) {
    if (count_ == 1) {
      for (size_t p = 0; p < parts.size(); ++p) {
        if (parts[p] > 0) fn(p, size_t{0}, parts[p]);
      }
      return;
    }
    ++tile_op_;
    for (TileRun run = TakeRun(parts); run.begin < run.end; run = TakeRun(parts)) {
      size_t at = run.first;
      for (size_t p = 0; at < run.end; ++p) {
        const auto [begin, end] = ShareOf(run.owner, Units(parts[p], run.unit), 1);
        const size_t from = std::max(at, run.begin), to = std::min(at + end - begin, run.end);
        if (from < to) {
          fn(p, (begin + from - at) * run.unit, std::min(parts[p], (begin + to - at) * run.unit));
        }
        at += end - begin;
      }
    }
  }

 private:
  friend class ThreadTeam;
  // Units [begin, end) of the list that belongs to worker `owner`: its shares of all parts, one
  // after another, counted from `first`. A unit is that many tiles.
  struct TileRun {
    int owner;
    size_t first, begin, end, unit;
  };
  static size_t Units(size_t tiles, size_t unit) { return tiles / unit + (tiles % unit != 0); }
  std::pair<size_t, size_t> ShareOf(int worker, size_t n, size_t grain) const;
  // The next run of this worker in its latest ForTiles; empty when none is left.
  TileRun TakeRun(std::span<const size_t> parts);

  ThreadTeam* team_ = nullptr;
  int index_ = 0, count_ = 1;
  uint32_t tile_op_ = 0;  // number of the latest ForTiles; the same on every worker
};

class ThreadTeam {
 public:
  // `threads` = 0: one per physical core that the affinity mask and the cgroup quota (rounded down)
  // allow.
  static Result<std::unique_ptr<ThreadTeam>> Create(int threads);
  // The same on a machine of these cores (tests; ThisMachine() otherwise).
  static Result<std::unique_ptr<ThreadTeam>> Create(int threads, const Topology& machine);
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
  // other programs (or a quota) kept its CPU from it, perhaps before it could begin.
  uint64_t lost_ns() const;
  // Of wait_ns, what was slept: waits that outlasted the spinning of well balanced shares.
  uint64_t slept_ns() const;
  // The kernel's numbers of the threads that have worked in a region so far; between regions.
  std::vector<int> ThreadIds() const;

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
