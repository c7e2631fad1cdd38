#include "src/machine/thread_team.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "src/machine/topology.h"

namespace sluice {
namespace {

std::unique_ptr<ThreadTeam> Team(int threads) {
  auto team = ThreadTeam::Create(threads);
  EXPECT_TRUE(team.ok()) << team.status().message();
  return *std::move(team);
}

TEST(ThreadTeam, RefusesCountsOutOfRange) {
  for (int threads : {-1, 1025, 1 << 30}) {
    const auto team = ThreadTeam::Create(threads);
    ASSERT_FALSE(team.ok());
    EXPECT_NE(team.status().message().find("threads"), std::string::npos);
  }
}

TEST(ThreadTeam, DefaultsToTheUsableCores) {
  EXPECT_EQ(Team(0)->size(), ThisMachine().DefaultThreads());
}

// Earlier teams bind their threads; that must not look like a smaller machine.
TEST(ThreadTeam, DefaultIsTheSameAfterThreadsWereBound) {
  const int before = Team(0)->size();
  Team(1)->Run([](Worker&) {});
  EXPECT_EQ(Team(0)->size(), before);
}

TEST(ThreadTeam, RunsEveryWorkerOnce) {
  for (int threads : {1, 2, 3, 4, 9}) {
    auto team = Team(threads);
    std::vector<std::atomic<int>> ran(threads);
    const auto leader = std::this_thread::get_id();
    team->Run([&](Worker& worker) {
      EXPECT_EQ(worker.count(), threads);
      EXPECT_EQ(worker.index() == 0, std::this_thread::get_id() == leader);
      ran[worker.index()].fetch_add(1);
    });
    for (const auto& times : ran) EXPECT_EQ(times.load(), 1);
  }
}

TEST(ThreadTeam, RunsOnFewerWorkersWhenAsked) {
  auto team = Team(4);
  for (int threads : {1, 3, 4, 2}) {
    std::atomic<int> ran{0};
    team->Run(
        [&](Worker& worker) {
          EXPECT_EQ(worker.count(), threads);
          worker.Barrier();
          ran.fetch_add(1);
          worker.Barrier();
          EXPECT_EQ(ran.load(), threads);
        },
        threads);
  }
}

// Plain (not atomic) data crosses each barrier: worker i writes its cell, then reads every other's.
void ExchangeAcrossBarriers(int threads, int rounds) {
  auto team = Team(threads);
  std::vector<int> cells(threads, -1);
  std::vector<int> wrong(threads, 0);
  team->Run([&](Worker& worker) {
    for (int round = 0; round < rounds; ++round) {
      cells[worker.index()] = round;
      worker.Barrier();
      for (int cell : cells) wrong[worker.index()] += cell != round;
      worker.Barrier();
    }
  });
  for (int errors : wrong) EXPECT_EQ(errors, 0);
  EXPECT_EQ(team->barriers(), static_cast<uint64_t>(2 * rounds));
}

TEST(Barrier, PublishesWritesOneThreadPerCpu) {
  ExchangeAcrossBarriers(ThisMachine().UsableCpus(), 5000);
}

TEST(Barrier, PublishesWritesOversubscribed) {
  ExchangeAcrossBarriers(ThisMachine().UsableCpus() + 1, 500);
  ExchangeAcrossBarriers(4 * ThisMachine().UsableCpus() + 3, 100);
}

// A worker that comes late by much more than the spin time: the others sleep and must wake.
TEST(Barrier, WakesSleepers) {
  auto team = Team(3);
  int value = 0;
  for (int round = 0; round < 5; ++round) {
    team->Run([&](Worker& worker) {
      if (worker.index() == round % 3) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        ++value;
      }
      worker.Barrier();
      EXPECT_EQ(value, round + 1);
    });
  }
}

// Workers that wait may trade cores with one that is stopped. Whatever they did, each worker of a
// team that has every core is bound to one of its own afterwards.
TEST(Barrier, NoTwoWorkersEndOnOneCore) {
  const int threads = Team(0)->size();
  if (static_cast<size_t>(threads) != ThisMachine().cores.size()) GTEST_SKIP() << "not all cores";
  auto team = Team(threads);
  std::vector<pid_t> tids(threads);
  std::vector<int> cells(threads);
  for (int round = 0; round < 20; ++round) {
    team->LetWorkersMove(round == 9);
    team->Run([&](Worker& worker) {
      for (int i = 0; i < 3; ++i) {
        if (worker.index() == (round + i) % threads) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        cells[worker.index()] = i;
        worker.Barrier();
        for (const int cell : cells) EXPECT_EQ(cell, i);
        worker.Barrier();
      }
      tids[worker.index()] = gettid();
    });
    if (round == 9) continue;
    cpu_set_t all;
    CPU_ZERO(&all);
    for (const pid_t tid : tids) {  // idle now: nobody trades
      cpu_set_t one, both;
      ASSERT_EQ(sched_getaffinity(tid, sizeof(one), &one), 0);
      CPU_AND(&both, &all, &one);
      EXPECT_EQ(CPU_COUNT(&both), 0) << round;
      CPU_OR(&all, &all, &one);
    }
  }
}

TEST(Barrier, ManyShortRegions) {
  auto team = Team(2);
  std::vector<size_t> sums(2);
  for (size_t i = 0; i < 2000; ++i) {
    team->Run([&](Worker& worker) { sums[worker.index()] += i; });
  }
  EXPECT_EQ(sums[0], 1999u * 1000u);
  EXPECT_EQ(sums[1], sums[0]);
}

TEST(ThreadTeam, TwoTeamsTakeTurns) {
  auto a = Team(2), b = Team(5);
  for (int round = 0; round < 20; ++round) {
    std::atomic<int> ran{0};
    const auto count = [&](Worker& worker) {
      worker.Barrier();
      ran.fetch_add(1);
    };
    a->Run(count);
    b->Run(count);
    EXPECT_EQ(ran.load(), 7);
  }
}

TEST(ThreadTeam, AnotherThreadMayLead) {
  auto team = Team(2);
  std::atomic<int> ran{0};
  team->Run([&](Worker&) { ran.fetch_add(1); });
  std::thread([&] { team->Run([&](Worker&) { ran.fetch_add(1); }); }).join();
  team->Run([&](Worker&) { ran.fetch_add(1); });
  EXPECT_EQ(ran.load(), 6);
}

TEST(Share, PartitionsInGrains) {
  for (int threads : {1, 2, 3, 7}) {
    auto team = Team(threads);
    for (size_t n : {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{17}, size_t{1000},
                     size_t{262144}, SIZE_MAX - 1}) {
      for (size_t grain : {size_t{1}, size_t{16}, size_t{64}}) {
        std::vector<std::pair<size_t, size_t>> shares(threads);
        team->Run([&](Worker& worker) { shares[worker.index()] = worker.Share(n, grain); });
        size_t at = 0;
        for (const auto& [begin, end] : shares) {
          EXPECT_EQ(begin, at);
          EXPECT_LE(begin, end);
          EXPECT_TRUE(end == n || end % grain == 0) << end;
          EXPECT_LE((end - begin) / grain, n / grain / threads + 1) << "uneven";
          at = end;
        }
        EXPECT_EQ(at, n);
      }
    }
  }
}

TEST(Share, FollowsTheRatesOfTheWorkers) {
  auto team = Team(3);
  const double rates[] = {1.0, 0.5, 0.25};
  team->SetRates(rates);
  for (size_t n : {size_t{0}, size_t{1}, size_t{7000}, SIZE_MAX - 1}) {
    std::vector<std::pair<size_t, size_t>> shares(3);
    team->Run([&](Worker& worker) { shares[worker.index()] = worker.Share(n); });
    size_t at = 0;
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(shares[i].first, at);
      at = shares[i].second;
      EXPECT_NEAR(static_cast<double>(at - shares[i].first) / 7000,
                  static_cast<double>(n) / 7000 * rates[i] / 1.75,
                  static_cast<double>(n) * 1e-8 + 1);
    }
    EXPECT_EQ(at, n);
  }
  // Fewer workers share by the same rates; tiles begin with the same shares and are all done.
  std::vector<int> done(300);
  size_t second = 0;
  team->Run(
      [&](Worker& worker) {
        if (worker.index() == 1) second = worker.Share(300).first;
        worker.ForTiles(300, [&](size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) ++done[i];
        });
      },
      2);
  EXPECT_NEAR(static_cast<double>(second), 200, 1);
  EXPECT_EQ(std::count(done.begin(), done.end(), 1), 300);
  team->SetRates({});
  team->Run([&](Worker& worker) {
    if (worker.index() == 1) second = worker.Share(300).first;
  });
  EXPECT_EQ(second, 100u);
}

TEST(ThreadTeam, WorkersThatMayMoveDoTheSame) {
  auto team = Team(2);
  for (const bool moving : {true, false, true}) {
    team->LetWorkersMove(moving);
    std::atomic<int> ran{0};
    team->Run([&](Worker&) { ran.fetch_add(1); });
    EXPECT_EQ(ran.load(), 2);
  }
}

// Eight workers that compute on one CPU each have it for an eighth of the time.
TEST(ThreadTeam, CountsTimeThatOthersHadTheCpu) {
  auto team = Team(4 * ThisMachine().UsableCpus());
  const uint64_t before = team->lost_ns();
  std::atomic<int> sum{0};
  team->Run([&](Worker&) {
    for (int i = 0; i < 20'000'000; ++i) sum.store(i, std::memory_order_relaxed);
  });
  EXPECT_GT(team->lost_ns(), before);
}

// No time limit: a wait that does not end is the failure.
template <class Condition>
void WaitUntil(const Condition& condition) {
  while (!condition()) std::this_thread::yield();
}

// Each tile is done once, in ascending runs, whoever is late.
TEST(ForTiles, EveryTileOnce) {
  for (int threads : {1, 2, 3, 7}) {
    auto team = Team(threads);
    for (size_t tiles : {0, 1, 2, 6, 7, 63, 1000, 65535, 65536, 300001}) {
      std::vector<int> done(tiles);  // plain: no two workers may touch one tile
      team->Run([&](Worker& worker) {
        worker.ForTiles(tiles, [&](size_t begin, size_t end) {
          EXPECT_LT(begin, end);
          for (size_t i = begin; i < end; ++i) ++done[i];
        });
        worker.Barrier();
        for (int times : done) ASSERT_EQ(times, 1);
      });
    }
  }
}

// A worker that is stopped before it comes, or in its first run, leaves the rest to the others.
TEST(ForTiles, OthersDoTheShareOfALateWorker) {
  auto team = Team(3);
  constexpr size_t kTiles = 240;
  for (const bool inside : {false, true}) {
    for (int late = 0; late < 3; ++late) {
      std::vector<int> by(kTiles, -1);
      std::atomic<size_t> others{0};
      size_t mine = 0;
      team->Run([&](Worker& worker) {
        const bool me = worker.index() == late;
        const auto wait = [&] { WaitUntil([&] { return others + mine == kTiles; }); };
        if (me && !inside) wait();
        worker.ForTiles(kTiles, [&](size_t begin, size_t end) {
          for (size_t i = begin; i < end; ++i) by[i] = worker.index();
          if (me) {
            mine += end - begin;
            wait();
          } else {
            others += end - begin;
          }
        });
      });
      EXPECT_EQ(std::count(by.begin(), by.end(), -1), 0);
      // One run is an eighth of a share at most (and one tile).
      EXPECT_EQ(mine, static_cast<size_t>(std::count(by.begin(), by.end(), late)));
      EXPECT_LE(mine, inside ? 11u : 0u);
    }
  }
}

// Calls without barriers between them: a worker may be many calls behind when it wakes, the words
// that say what is left of its call have been used again, and it must take nothing.
TEST(ForTiles, AWorkerManyCallsBehindTakesNothing) {
  auto team = Team(2);
  for (const int calls : {1, 3, 8, 9, 40}) {
    std::vector<std::vector<int>> done(calls, std::vector<int>(100));
    for (int late = 0; late < 2; ++late) {
      std::atomic<int> left{0};
      team->Run([&](Worker& worker) {
        const bool me = worker.index() == late;
        for (int call = 0; call < calls; ++call) {
          worker.ForTiles(call % 3 == 2 ? 1 : 100, [&](size_t begin, size_t end) {
            for (size_t i = begin; i < end; ++i) ++done[call][i];
            if (me) WaitUntil([&] { return left == calls; });
          });
          if (!me) left = call + 1;
        }
      });
      for (int call = 0; call < calls; ++call) {
        for (size_t i = 0; i < 100; ++i) {
          ASSERT_EQ(done[call][i], (late + 1) * (i == 0 || call % 3 != 2)) << call << " " << i;
        }
      }
    }
  }
}

TEST(ForTiles, ManyShortCallsWithBarriers) {
  for (int threads : {2, 5}) {
    auto team = Team(threads);
    std::vector<size_t> cells(64);
    for (int region = 0; region < 20; ++region) {
      const int count = region % 2 ? threads : threads - 1;
      team->Run(
          [&](Worker& worker) {
            for (int round = 0; round < 100; ++round) {
              worker.ForTiles(cells.size(), [&](size_t begin, size_t end) {
                for (size_t i = begin; i < end; ++i) ++cells[i];
              });
              worker.Barrier();
            }
          },
          count);
    }
    for (size_t cell : cells) ASSERT_EQ(cell, 2000u);
  }
}

// What keeps the prefetchers and the right NUMA node busy.
TEST(ForTiles, BeginsWithTheOwnShare) {
  auto team = Team(4);
  std::atomic<int> begun{0};
  std::vector<size_t> first(4, SIZE_MAX);
  team->Run([&](Worker& worker) {
    worker.ForTiles(400, [&](size_t begin, size_t) {
      if (first[worker.index()] != SIZE_MAX) return;
      first[worker.index()] = begin;
      ++begun;
      WaitUntil([&] { return begun == 4; });
    });
  });
  for (size_t i = 0; i < 4; ++i) EXPECT_EQ(first[i], 100 * i);
}

// Every tile of every list once; each worker begins with its share of the first.
TEST(ForTiles, SeveralListsAtOnce) {
  for (int threads : {1, 2, 3, 7}) {
    auto team = Team(threads);
    for (const std::vector<size_t>& parts : std::vector<std::vector<size_t>>{
             {5}, {0, 3, 0}, {100, 7, 300}, {1, 1, 1, 1}, {}, {200'000, 3, 90'000}}) {
      std::vector<std::vector<std::atomic<int>>> done;
      for (const size_t tiles : parts) done.emplace_back(tiles);
      team->Run([&](Worker& worker) {
        worker.ForTiles(parts, [&](size_t part, size_t begin, size_t end) {
          ASSERT_LT(begin, end);
          ASSERT_LE(end, parts[part]);
          for (size_t i = begin; i < end; ++i) ++done[part][i];
        });
      });
      for (const auto& list : done) {
        for (const auto& times : list) ASSERT_EQ(times, 1);
      }
    }
  }
}

// While nobody has finished, a worker does its own share of each list and nothing else.
TEST(ForTiles, OwnSharesOfEveryListFirst) {
  auto team = Team(2);
  const std::vector<size_t> parts = {40, 8};
  std::vector<std::vector<size_t>> first(2);  // of each worker, tiles counted over both lists
  std::atomic<int> halfway{0};
  team->Run([&](Worker& worker) {
    auto& mine = first[static_cast<size_t>(worker.index())];
    bool waited = false;
    worker.ForTiles(parts, [&](size_t part, size_t begin, size_t end) {
      if (waited) return;
      for (size_t i = begin; i < end; ++i) mine.push_back(part * 40 + i);
      if (mine.size() < 20) return;
      waited = true;
      ++halfway;
      WaitUntil([&] { return halfway == 2; });
    });
  });
  for (size_t w = 0; w < 2; ++w) {
    for (const size_t i : first[w]) {
      const bool own = i < 40 ? i / 20 == w : (i - 40) / 4 == w;
      EXPECT_TRUE(own) << w << " did " << i;
    }
  }
}

// Two sockets: workers meet on their node, then the nodes. The machine is made up, so binding
// fails, which may cost speed only.
TEST(Barrier, TwoLevelsOnSeveralNodes) {
  for (const std::vector<int>& nodes :
       std::vector<std::vector<int>>{{0, 0, 1, 1}, {0, 1, 1, 1, 2}, {2, 0, 2}, {1, 1}}) {
    Topology machine;
    for (size_t i = 0; i < nodes.size(); ++i) {
      machine.cores.push_back({.numa_node = nodes[i], .cpus = {static_cast<int>(i)}});
    }
    machine.cpus = static_cast<int>(nodes.size());
    machine.numa_nodes = 1 + *std::max_element(nodes.begin(), nodes.end());
    const int all = static_cast<int>(nodes.size());
    auto team = ThreadTeam::Create(all, machine);
    ASSERT_TRUE(team.ok());
    for (int threads = all; threads > 0; --threads) {
      std::vector<int> cells(static_cast<size_t>(threads));
      std::atomic<int> wrong{0};
      (*team)->Run(
          [&](Worker& worker) {
            for (int round = 1; round <= 300; ++round) {
              cells[static_cast<size_t>(worker.index())] = round;
              worker.Barrier();
              for (const int cell : cells) wrong += cell != round;
              worker.Barrier();
            }
          },
          threads);
      EXPECT_EQ(wrong, 0) << threads << " threads";
    }
  }
}

TEST(ThreadTeam, CountsTheTimeWaited) {
  auto team = Team(2);
  EXPECT_EQ(team->wait_ns(), 0u);
  team->Run([](Worker&) {}, 1);
  EXPECT_EQ(team->wait_ns(), 0u);  // nobody to wait for
  constexpr auto kLate = std::chrono::milliseconds(20);
  std::atomic<bool> arriving{false};
  team->Run([&](Worker& worker) {
    if (worker.index() == 0) {
      arriving.store(true);
    } else {
      while (!arriving.load()) std::this_thread::yield();
      std::this_thread::sleep_for(kLate);
    }
    worker.Barrier();
  });
  const uint64_t waited = team->wait_ns();
  EXPECT_GT(waited, 0u);
  team->Run([](Worker& worker) { worker.Barrier(); });
  EXPECT_GE(team->wait_ns(), waited);
}

}  // namespace
}  // namespace sluice
