#include "src/machine/topology.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <set>

namespace sluice {
namespace {

TEST(Topology, DescribesThisMachine) {
  const Topology& machine = ThisMachine();
  EXPECT_FALSE(machine.cpu_name.empty());
  ASSERT_FALSE(machine.cores.empty());
  std::set<int> cpus;
  for (const Core& core : machine.cores) {
    EXPECT_FALSE(core.cpus.empty());
    EXPECT_LT(core.kind, machine.core_kinds);
    cpus.insert(core.cpus.begin(), core.cpus.end());
  }
  EXPECT_EQ(static_cast<int>(cpus.size()), machine.cpus) << "no CPU belongs to two cores";
  EXPECT_LE(machine.cpus, machine.machine_cpus);
  EXPECT_LE(static_cast<int>(machine.cores.size()), machine.machine_cores);
  EXPECT_GT(machine.memory_bytes, 64u << 20);
  EXPECT_LE(machine.UsableMemoryBytes(), machine.memory_bytes);
}

Topology Machine(int cores, int smt, std::optional<double> quota) {
  Topology machine;
  for (int i = 0; i < cores; ++i) {
    Core core;
    for (int j = 0; j < smt; ++j) core.cpus.push_back(i + j * cores);
    machine.cores.push_back(core);
  }
  machine.cpus = cores * smt;
  machine.cpu_quota = quota;
  return machine;
}

// A sanitizer's allocator ends the process when memory runs out.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(__clang__)
// In a process of its own, whose memory is used up: its exit code.
int BindWithoutMemory() {
  const std::vector<int> cpus = ThisMachine().cores[0].cpus;
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{0, 0};
    setrlimit(RLIMIT_AS, &none);
    // Kept in a list, so that no compiler drops them; small ones last, which take what is left.
    void* kept = nullptr;
    for (size_t bytes = 1 << 16; bytes >= sizeof(void*); bytes /= 2) {
      for (void* p; (p = std::malloc(bytes)) != nullptr; kept = p) *static_cast<void**>(p) = kept;
    }
    const bool bound = BindThisThread(cpus);
    _exit(kept == &kept || bound ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(Topology, BindingWithoutMemoryIsRefused) { EXPECT_EQ(BindWithoutMemory(), 0); }
#endif

TEST(Topology, NoMoreThreadsRunAtOnceThanHaveACpu) {
  EXPECT_EQ(Machine(2, 1, std::nullopt).RunningAtOnce(64), 2);
  EXPECT_EQ(Machine(2, 2, std::nullopt).RunningAtOnce(64), 4);
  EXPECT_EQ(Machine(8, 1, std::nullopt).RunningAtOnce(3), 3);
  EXPECT_EQ(Machine(8, 1, 1.5).RunningAtOnce(8), 8);  // until the quota is used up
}

TEST(Topology, NoMoreThreadsRunAllTheTimeThanTheQuotaIsFor) {
  EXPECT_EQ(Machine(2, 1, std::nullopt).RunningAllTheTime(64), 2);
  EXPECT_EQ(Machine(8, 1, std::nullopt).RunningAllTheTime(3), 3);
  EXPECT_EQ(Machine(8, 1, 1.5).RunningAllTheTime(8), 2);
  EXPECT_EQ(Machine(8, 1, 0.2).RunningAllTheTime(8), 1);
}

TEST(Topology, OneThreadPerCoreWithinTheQuotaRoundedDown) {
  EXPECT_EQ(Machine(8, 2, std::nullopt).DefaultThreads(), 8);
  EXPECT_EQ(Machine(8, 2, std::nullopt).UsableCpus(), 16);
  EXPECT_EQ(Machine(96, 2, 7.65).DefaultThreads(), 7);
  EXPECT_EQ(Machine(4, 1, 0.5).DefaultThreads(), 1);
  EXPECT_EQ(Machine(4, 1, 1.5).UsableCpus(), 1);
  EXPECT_EQ(Machine(4, 2, 6.0).DefaultThreads(), 4);
  EXPECT_EQ(Machine(4, 2, 6.0).UsableCpus(), 6);
  EXPECT_EQ(Machine(2, 1, 1e300).DefaultThreads(), 2);
}

TEST(Topology, LimitCapsTheMemory) {
  Topology machine = Machine(1, 1, std::nullopt);
  machine.memory_bytes = 100;
  EXPECT_EQ(machine.UsableMemoryBytes(), 100u);
  machine.memory_limit = 60;
  EXPECT_EQ(machine.UsableMemoryBytes(), 60u);
}

}  // namespace
}  // namespace sluice
