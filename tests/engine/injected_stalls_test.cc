// That causes of slowness, injected into real runs, stand in the account under their names and in
// their size. The size is not taken from a clock, which a busy machine moves, but from what the
// system itself counted meanwhile: ready time, the group's stops, CPU time. bench/stalls.py does
// the same with a real model and a slow disk.
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "src/engine/engine.h"
#include "src/machine/quota.h"
#include "src/machine/topology.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/runner.h"
#include "tests/model/tiny_model.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

std::vector<int> AllCpus() {
  std::vector<int> cpus;
  for (const Core& core : ThisMachine().cores) {
    cpus.insert(cpus.end(), core.cpus.begin(), core.cpus.end());
  }
  return cpus;
}

double CpuSeconds() {
  rusage u = {};
  getrusage(RUSAGE_SELF, &u);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(u.ru_utime) + seconds(u.ru_stime);
}

// A program on each CPU that wants all of it, as long as this lives.
class Hogs {
 public:
  Hogs() {
    for (const int cpu : AllCpus()) {
      const pid_t parent = getpid(), child = fork();
      if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(static_cast<size_t>(cpu), &set);
        sched_setaffinity(0, sizeof(set), &set);
        for (volatile unsigned turn = 0; getppid() == parent;) turn = turn + 1;
        _exit(0);
      }
      if (child > 0) children_.push_back(child);
    }
  }
  ~Hogs() {
    for (const pid_t child : children_) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }

 private:
  std::vector<pid_t> children_;
};

// A control group below this process's own, in which a fifth of a CPU is all there is; this process
// is in it as long as this lives.
class QuotaGroup {
 public:
  QuotaGroup() {
    std::ifstream mounts("/proc/self/mountinfo");
    for (std::string line; std::getline(mounts, line) && folder_.empty();) {
      std::istringstream left(line.substr(0, line.find(" - "))),
          right(line.substr(line.find(" - ") + 3));
      std::string word, mount, kind, source, controllers;
      left >> word >> word >> word >> word >> mount;
      right >> kind >> source >> controllers;
      if (kind == "cgroup" && ("," + controllers + ",").find(",cpu,") != std::string::npos) {
        Enter(mount + Own(",cpu,"), {{"cpu.cfs_period_us", "20000"}, {"cpu.cfs_quota_us", "4000"}});
      } else if (kind == "cgroup2") {
        Enter(mount + Own(",,"), {{"cpu.max", "4000 20000"}});
      }
    }
  }
  ~QuotaGroup() {
    if (folder_.empty()) return;
    (void)Write(home_ + "/cgroup.procs", std::to_string(getpid()));
    rmdir(folder_.c_str());
  }
  bool entered() const { return !folder_.empty(); }

 private:
  // This process's place in the hierarchy of a controller; ",,": the second version's.
  static std::string Own(const std::string& controller) {
    std::ifstream in("/proc/self/cgroup");
    for (std::string line; std::getline(in, line);) {
      const size_t first = line.find(':'), second = line.find(':', first + 1);
      const std::string names = "," + line.substr(first + 1, second - first - 1) + ",";
      if (names.find(controller) != std::string::npos) return line.substr(second + 1);
    }
    return "";
  }
  static bool Write(const std::string& file, const std::string& text) {
    std::ofstream out(file);
    out << text << std::flush;
    return out.good();
  }
  void Enter(const std::string& home, const std::vector<std::pair<std::string, std::string>>& set) {
    const std::string folder = home + "/sluice-test-" + std::to_string(getpid());
    std::error_code error;
    if (!fs::create_directory(folder, error)) return;
    bool done = true;
    for (const auto& [name, text] : set) done = done && Write(folder + "/" + name, text);
    if (done && Write(folder + "/cgroup.procs", std::to_string(getpid()))) {
      home_ = home;
      folder_ = folder;
    } else {
      rmdir(folder.c_str());
    }
  }

  std::string home_, folder_;
};

class InjectedStalls : public testing::Test {
 protected:
  struct Run {
    StallTimes stalls;
    int workers = 0, cpus = 0;
    double passes_s = 0;
    // By the system's own account.
    double wall_s = 0, cpu_s = 0, ready_s = 0, stopped_s = 0;

    double lost_s() const {
      return stalls[Cause::kBarrier] + stalls[Cause::kPageFaults] + stalls[Cause::kThrottled] +
             stalls[Cause::kPreempted];
    }
  };

  // Requests for a while with so many threads. What slows them is injected when the ceilings are
  // known, as they are of a machine that was quiet once: a probe that is slowed as well, and
  // a sanitizer's is slow to begin with, explains the time by itself.
  Run Requests(int threads, const std::function<void()>& inject = [] {}) {
    TinyShape shape = TinyLlama("Q4_0");
    shape.layers = 4;
    shape.dim = 256;
    shape.ffn_dim = 768;
    const TinyModel tiny(shape);
    RunnerOptions o = TestOptions(256);
    o.threads = threads;
    o.adapt_threads = false;  // a smaller team is another remedy
    const auto runner = MakeRunner(tiny.Write(folder_.path("m.gguf")), o);
    const Result<std::unique_ptr<Tokenizer>> tokenizer = Tokenizer::Load(runner->model().gguf());
    EXPECT_TRUE(tokenizer.ok());
    Run run;
    run.workers = threads;
    run.cpus = ThisMachine().cpus;
    RequestWork work;
    (void)runner->MeasureCeilings();
    inject();
    Engine engine(*runner, **tokenizer, {});  // finds the control groups
    const double cpu_s = CpuSeconds(), ready_s = ReadySeconds(*runner);
    ThrottleMeter stops;
    const auto begin = Clock::now();
    do {
      Request r;
      r.prompt = tiny.Tokens(8);
      r.max_tokens = 200;
      r.ignore_eos = true;
      r.on_finish = [&](const Sequence& s) { work += s.stats().work; };
      EXPECT_TRUE(engine.Add(std::move(r)).ok());
      for (bool more = true; more;) more = *engine.Step();
      run.wall_s = std::chrono::duration<double>(Clock::now() - begin).count();
    } while (run.wall_s < 0.6);
    run.stopped_s = stops.Next().seconds;
    run.ready_s = ReadySeconds(*runner) - ready_s;
    run.cpu_s = CpuSeconds() - cpu_s;
    run.stalls = work.Stalls();
    run.passes_s = work.prefill.seconds + work.decode.seconds;
    return run;
  }

  // Of the team's threads, which had no CPU though they were ready to run; < 0: nobody counts.
  static double ReadySeconds(ModelRunner& runner) {
    double sum = 0;
    for (const int tid : runner.team().ThreadIds()) {
      std::ifstream in("/proc/self/task/" + std::to_string(tid) + "/schedstat");
      double ran = 0, ready = 0;
      if (!(in >> ran >> ready)) return -1;
      sum += 1e-9 * ready;
    }
    return sum;
  }

  // Of `counted` seconds of the workers, each of which holds up the others at most; or of `most`.
  // What is lost between passes has no name.
  static void ExpectNamed(const Run& run, Cause cause, double counted_s, double most_s = 0) {
    const double named_s = run.stalls[cause] * run.workers, slack_s = 0.03 * run.wall_s;
    const double between_s = run.wall_s - run.passes_s;
    EXPECT_GT(named_s, 0.7 * (counted_s - run.workers * between_s) - slack_s) << Tell(run);
    EXPECT_LT(named_s, 1.1 * std::max(run.workers * counted_s, most_s) + slack_s) << Tell(run);
  }
  static std::string Tell(const Run& run) {
    std::ostringstream text;
    text << run.workers << " workers, " << run.wall_s << " s, passes " << run.passes_s << ", cpu "
         << run.cpu_s << ", ready " << run.ready_s << ", stopped " << run.stopped_s << ";";
    for (size_t i = 0; i < kCauses; ++i) {
      text << " " << CauseName(static_cast<Cause>(i)) << " " << run.stalls.seconds[i];
    }
    return text.str();
  }

  const TempFolder folder_;
};

TEST_F(InjectedStalls, OtherProgramsArePreemptedInTheTimeThatThreadsWereReady) {
  if (ThisMachine().cpus > 16) GTEST_SKIP() << "would fill " << ThisMachine().cpus << " CPUs";
  for (int threads = 1; threads <= std::min(2, ThisMachine().cpus); ++threads) {
    std::optional<Hogs> hogs;
    const Run run = Requests(threads, [&] { hogs.emplace(); });
    if (run.ready_s < 0 || run.stopped_s > 0) GTEST_SKIP() << "no schedstat, or a quota as well";
    EXPECT_GT(run.ready_s, 0.1 * run.wall_s) << Tell(run);
    // A hypervisor's time is nobody's ready time.
    ExpectNamed(run, Cause::kPreempted, run.ready_s, run.workers * run.wall_s - run.cpu_s);
    EXPECT_EQ(run.stalls[Cause::kThrottled], 0) << Tell(run);
  }
}

TEST_F(InjectedStalls, AQuotaIsThrottledInTheTimeThatTheGroupWasStopped) {
  for (int threads = 1; threads <= std::min(2, ThisMachine().cpus); ++threads) {
    std::optional<QuotaGroup> group;
    const Run run = Requests(threads, [&] { group.emplace(); });
    if (!group->entered())
      GTEST_SKIP() << "no control group with a CPU controller can be made here";
    if (run.stopped_s < 0.1 * run.wall_s) GTEST_SKIP() << "others left no more than the quota";
    ExpectNamed(run, Cause::kThrottled, run.stopped_s);
  }
}

// Their turns are no loss: what is lost is what the CPUs were not used for by them. Between passes
// one thread runs.
TEST_F(InjectedStalls, TwiceTooManyThreadsLoseWhatTheyDoNotUse) {
  if (ThisMachine().cpus > 16) GTEST_SKIP() << "too many threads";
  const Run run = Requests(2 * ThisMachine().cpus);
  const double unused_s = run.cpus * run.passes_s - (run.cpu_s - (run.wall_s - run.passes_s));
  const double named_s = run.cpus * (run.stalls[Cause::kPreempted] + run.stalls[Cause::kBarrier]);
  const double between_s = run.wall_s - run.passes_s;  // it may have lost its CPU there
  EXPECT_NEAR(named_s, unused_s, 0.3 * unused_s + 0.1 * run.cpus * run.wall_s + between_s)
      << Tell(run);
}

}  // namespace
}  // namespace sluice
