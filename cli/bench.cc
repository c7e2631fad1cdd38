// sluice bench: how fast a model runs here, and what the machine allows.
#include "src/engine/bench.h"

#include <boost/json.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "cli/bench_flags.h"
#include "cli/bench_output.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/roofline_svg.h"
#include "cli/words.h"
#include "src/base/atomic_file.h"
#include "src/file/summary.h"
#include "src/machine/machine_profile.h"
#include "src/machine/simd_target.h"
#include "src/machine/topology.h"
#include "src/text/json_text.h"

namespace sluice {
namespace {

struct Flags {
  BenchFlags rows;
  size_t repetitions = 5;
  double delay_s = 0;
  bool no_warmup = false, progress = false, calibrate = false;
  std::string output = "md", svg;
  std::optional<std::string> versus;
};

void Warn(const std::string& text) { Say("bench", text); }

template <class... T>
std::string Printf(const char* format, T... values) {
  char buffer[160];
  std::snprintf(buffer, sizeof(buffer), format, values...);
  return buffer;
}

BenchModel Describe(const Gguf& gguf) {
  BenchModel m;
  m.path = gguf.path();
  for (const ClassSummary& c : SummariseClasses(gguf)) {
    m.bytes += c.bytes;
    m.parameters += c.parameters;
  }
  const double millions = static_cast<double>(m.parameters) / 1e6;
  m.type = ArchitectureOf(gguf) + " " +
           (millions < 1000 ? Printf("%.0fM", millions) : Printf("%.1fB", millions / 1000)) + " " +
           QuantisationOf(gguf);
  return m;
}

// One configuration that is measured: all rows, or, with --vs, all rows of one side.
class Side {
 public:
  Side(char name, std::vector<BenchPlan> plans) : name_(name), plans_(std::move(plans)) {}

  const std::vector<BenchPlan>& plans() const { return plans_; }

  // Makes row i ready. The model is loaded when its setup is not that of the row before.
  Status Start(size_t i, bool warm_up) {
    const BenchSetup& setup = plans_[i].setup;
    if (!runner_ || setup != plans_[i - 1].setup) RETURN_IF_ERROR(Load(i));
    return bench_->Start(plans_[i].test, warm_up);
  }
  Status Sample() { return bench_->Sample(); }

  BenchRow Finish(size_t i) {
    BenchRow row;
    row.setup = plans_[i].setup;
    row.setup.weights = runner_->model().load_mode();
    row.setup.threads = runner_->decode_threads();
    row.setup.threads_batch = runner_->prefill_threads();
    row.setup.kv_type = runner_->kv_type();
    row.model = model_;
    row.result = bench_->Finish();
    row.time = UtcTime();
    row.side = name_;
    const BenchTest& t = row.result.test;
    if (t.prompt == 0) {
      double& alone = alone_ns_[{t.generate, t.depth}];
      if (t.concurrency == 1) alone = row.result.avg_ns();
      if (alone > 0) row.t_ratio = row.result.avg_ns() / alone;
    }
    return row;
  }

 private:
  Status Load(size_t i) {
    const BenchSetup& setup = plans_[i].setup;
    std::vector<BenchTest> tests;  // of every row that this load serves
    for (; i < plans_.size() && plans_[i].setup == setup; ++i) tests.push_back(plans_[i].test);
    bench_.reset();
    runner_.reset();
    alone_ns_.clear();
    RunnerOptions o;
    o.weights = setup.weights;
    ASSIGN_OR_RETURN(o.placement.huge_pages, ParseHugePages(setup.huge_pages));
    o.kv_type = setup.kv_type;
    o.relaxed = setup.relaxed;
    o.portable = setup.portable;
    o.placement.lock = setup.mlock;
    ASSIGN_OR_RETURN(o.placement.numa, ParseNumaMode(setup.numa));
    o.warn = Warn;
    o.adapt_threads = false;  // what -t says is what is measured
    o.threads = setup.threads;
    o.threads_batch = setup.threads_batch;
    SizeForTests(tests, setup.batch, &o);
    Result<std::unique_ptr<ModelRunner>> runner = [&] {
      Progress bar("preparing weights");
      return ModelRunner::Create(setup.model, o, [&](uint64_t done, uint64_t total) {
        bar.Update(done, total);
        return !InterruptGuard::interrupted();
      });
    }();
    if (!runner.ok()) return runner.status();
    runner_ = *std::move(runner);
    ReportNotes("bench", runner_->load_note());
    const int cpus = ThisMachine().UsableCpus(), threads = runner_->team().size();
    if (threads > cpus) {
      Warn(
          Printf("%d threads share the %d CPUs that the affinity mask and quota allow; expect "
                 "less than -t %d gives",
                 threads, cpus, cpus));
    }
    model_ = Describe(runner_->model().gguf());
    bench_ = std::make_unique<Bench>(*runner_, setup.batch);
    return Status();
  }

  const char name_;
  const std::vector<BenchPlan> plans_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<Bench> bench_;
  BenchModel model_;
  std::map<std::pair<size_t, size_t>, double> alone_ns_;  // by tokens and depth, of one sequence
};

std::string LabelOf(const BenchTest& t) {
  return BenchTestName(t) + (t.concurrency > 1 ? " \u00d7 " + std::to_string(t.concurrency) : "");
}

// What makes a row doubtful, or nothing.
std::string Doubts(const BenchResult& r) {
  constexpr double kSpread = 0.10, kOtherPct = 5, kStealPct = 1;
  constexpr double kLongEnoughNs = 2e8;  // the system counts CPU time in steps of 10 ms
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : "; ") + what; };
  const std::vector<double> ts = r.samples_ts();
  if (ts.size() > 1 && Spread(ts) > kSpread) {
    add(Printf("the samples spread over %.0f %% of their median", 100 * Spread(ts)));
  }
  const bool counted = Mean(r.samples_ns) * static_cast<double>(ts.size()) > kLongEnoughNs;
  if (counted && r.other_pct > kOtherPct) {
    add(Printf("other programs took %.0f %% of the CPUs", r.other_pct));
  }
  if (counted && r.steal_pct > kStealPct) {
    add(Printf("the hypervisor took %.0f %% of the CPUs", r.steal_pct));
  }
  if (r.throttled > 0) {
    add(Printf("the CPU quota stopped the process in %llu periods: fewer threads fit it",
               static_cast<unsigned long long>(r.throttled)));
  }
  if (r.read_bandwidth_gb_s == 0) add("too little free memory to measure the read bandwidth");
  return text;
}

class Session {
 public:
  Session(const Flags& flags, std::vector<Side> sides, BenchFormat format)
      : flags_(flags),
        sides_(std::move(sides)),
        versus_(sides_.size() > 1),
        printer_(format, AllPlans(sides_), versus_) {}

  Result<int> Run() {
    std::unique_ptr<AtomicFile> svg;  // made first: a path that cannot be written costs no run
    if (!flags_.svg.empty()) {
      ASSIGN_OR_RETURN(svg, AtomicFile::Create(flags_.svg));
    }
    for (size_t i = 0; i < Rows() && !interrupt_.interrupted(); ++i) {
      if (i > 0) Delay();
      const Status status = RunRow(i);
      if (status.code() == StatusCode::kCancelled) break;  // interrupted while it loaded
      RETURN_IF_ERROR(status);
    }
    printer_.End();
    if (svg && !points_.empty()) RETURN_IF_ERROR(WriteSvg(*svg));
    return interrupt_.interrupted() ? kExitInterrupted : kExitOk;
  }

 private:
  static std::vector<BenchPlan> AllPlans(const std::vector<Side>& sides) {
    std::vector<BenchPlan> all;
    for (const Side& s : sides) all.insert(all.end(), s.plans().begin(), s.plans().end());
    return all;
  }
  size_t Rows() const { return sides_[0].plans().size(); }

  void Delay() const {
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::duration<double>(flags_.delay_s);
    while (!interrupt_.interrupted() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  // Samples in turns: what slows the machine for a while slows both sides.
  Status RunRow(size_t i) {
    size_t samples = 0;
    {
      const std::string name = BenchTestName(sides_[0].plans()[i].test);
      Progress bar(Printf("row %zu of %zu ", i + 1, Rows()) + name, Progress::Unit::kCount);
      const auto report = [&](size_t done) {
        bar.Update(done, flags_.repetitions);
        if (flags_.progress && !bar.visible()) {
          Warn(Printf("row %zu of %zu, %s: %zu of %zu samples", i + 1, Rows(), name.c_str(), done,
                      flags_.repetitions));
        }
      };
      report(0);
      for (Side& side : sides_) RETURN_IF_ERROR(side.Start(i, !flags_.no_warmup));
      while (samples < flags_.repetitions && !interrupt_.interrupted()) {
        for (Side& side : sides_) RETURN_IF_ERROR(side.Sample());
        report(++samples);
      }
    }
    if (samples > 0) Publish(i);
    return Status();
  }

  void Publish(size_t i) {
    std::vector<BenchRow> rows;
    for (Side& side : sides_) rows.push_back(side.Finish(i));
    if (versus_) {
      rows[1].ratio = RatioOfMedians(rows[1].result.samples_ts(), rows[0].result.samples_ts());
    }
    for (const BenchRow& row : rows) {
      printer_.Print(row);
      AddPoint(row);
      const std::string doubts = Doubts(row.result);
      if (!doubts.empty()) {
        Warn((versus_ ? std::string(1, row.side) + " " : "") + LabelOf(row.result.test) +
             ": doubtful: " + doubts);
      }
    }
  }

  void AddPoint(const BenchRow& row) {
    const BenchResult& r = row.result;
    RooflinePoint p;
    p.label = LabelOf(r.test);
    p.series = row.model.type + ", " + std::to_string(r.threads) + " threads, " +
               LoadModeName(row.setup.weights) + ", KV " + KvTypeName(*row.setup.kv_type);
    if (versus_) p.series = std::string(1, row.side) + ": " + p.series;
    p.mac_per_byte = r.work.macs() / r.work.bytes;
    p.gmac_s = r.gmac_s();
    p.bandwidth_gb_s = r.read_bandwidth_gb_s;
    p.compute_gmac_s = 1e-9 * r.work.macs() / r.compute_s;
    points_.push_back(std::move(p));
  }

  Status WriteSvg(AtomicFile& file) const {
    const std::string svg = RooflineSvg(ThisMachine().cpu_name + ", " + SimdTarget(), points_);
    RETURN_IF_ERROR(file.WriteAt(0, {reinterpret_cast<const uint8_t*>(svg.data()), svg.size()}));
    return file.Commit();
  }

  const Flags& flags_;
  std::vector<Side> sides_;
  const bool versus_;
  BenchPrinter printer_;
  InterruptGuard interrupt_;
  std::vector<RooflinePoint> points_;
};

Result<BenchFormat> ParseFormat(const std::string& word) {
  if (word == "md") return BenchFormat::kMarkdown;
  if (word == "csv") return BenchFormat::kCsv;
  if (word == "json") return BenchFormat::kJson;
  if (word == "jsonl") return BenchFormat::kJsonl;
  if (word == "sql") return BenchFormat::kSql;
  return Status(StatusCode::kInvalidArgument,
                "--output: expected md, csv, json, jsonl or sql, found " + word);
}

// Measures the machine anew, shows what is kept of it.
Result<int> CalibrateMachine(BenchFormat format) {
  ASSIGN_OR_RETURN(const MachineProfile profile, Recalibrate());
  boost::json::array rates;
  for (const ThreadRates& r : profile.rates) {
    rates.push_back(boost::json::object{
        {"threads", r.threads}, {"read_gb_s", r.read_gb_s}, {"gmac_s", r.gmac_s}});
    if (format == BenchFormat::kMarkdown) {
      std::printf("%3d threads: %7.1f GB/s read, %7.1f GMAC/s\n", r.threads, r.read_gb_s, r.gmac_s);
    }
  }
  if (format == BenchFormat::kMarkdown) {
    std::printf("barrier %.2f us; decode runs on %d threads, prefill on %d\n", profile.barrier_us,
                profile.decode_threads, profile.prefill_threads);
  } else {
    const boost::json::object o{{"key", profile.key},
                                {"rates", std::move(rates)},
                                {"barrier_us", profile.barrier_us},
                                {"decode_threads", profile.decode_threads},
                                {"prefill_threads", profile.prefill_threads}};
    std::printf("%s\n", ToJson(o).c_str());
  }
  return kExitOk;
}

// A ratio of two different tests would say nothing of the configurations.
Status CheckSameTests(const std::vector<BenchPlan>& a, const std::vector<BenchPlan>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].test == b[i].test) continue;
    return Status(StatusCode::kInvalidArgument,
                  "--vs: expected the same tests on both sides (no -p, -n, -pg, -d, -np in it), "
                  "found " +
                      LabelOf(a[i].test) + " and " + LabelOf(b[i].test));
  }
  return Status();
}

Result<int> Run(const Flags& flags) {
  ASSIGN_OR_RETURN(const BenchFormat format, ParseFormat(flags.output));
  if (flags.calibrate) return CalibrateMachine(format);
  ASSIGN_OR_RETURN(std::vector<BenchPlan> plans, flags.rows.Plans());
  std::vector<Side> sides;
  if (!flags.versus) {
    sides.emplace_back('\0', std::move(plans));
  } else {
    ASSIGN_OR_RETURN(const BenchFlags other, flags.rows.With(*flags.versus));
    ASSIGN_OR_RETURN(std::vector<BenchPlan> others, other.Plans());
    if (plans.size() != others.size()) {
      return Status(StatusCode::kInvalidArgument,
                    "--vs: expected as many rows on both sides, found " +
                        std::to_string(plans.size()) + " and " + std::to_string(others.size()));
    }
    RETURN_IF_ERROR(CheckSameTests(plans, others));
    sides.emplace_back('A', std::move(plans));
    sides.emplace_back('B', std::move(others));
  }
  return Session(flags, std::move(sides), format).Run();
}

}  // namespace

void AddBench(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<Flags>();
  CLI::App* c = app.add_subcommand("bench", "Measure speed, and how far it is from the roof");
  flags->rows.AddTo(*c);
  c->add_option("-r,--repetitions", flags->repetitions, "Samples of each row")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  c->add_option("--delay", flags->delay_s, "Seconds to rest between rows")
      ->check([](const std::string& value) {  // CLI::Range lets NaN pass
        char* end = nullptr;
        const double seconds = std::strtod(value.c_str(), &end);
        const bool fine = *end == '\0' && seconds >= 0 && seconds <= 86400;
        return fine ? std::string() : "expected 0 to 86400, found " + value;
      });
  c->add_flag("--no-warmup", flags->no_warmup, "Time the first pass too");
  c->add_flag("--progress", flags->progress, "Lines on stderr also where it is no terminal");
  c->add_option("-o,--output", flags->output, "md, csv, json, jsonl or sql")
      ->type_name("FORMAT")
      ->capture_default_str();
  c->add_option("--vs", flags->versus,
                "A second model or other flags, in one word: samples in turns A B A B, and the "
                "ratio of the medians with its 95 % interval")
      ->type_name("FLAGS");
  c->add_flag("--calibrate", flags->calibrate,
              "Measure this machine anew (2 s) and keep the thread counts; no model is run");
  c->add_option("--svg", flags->svg, "Draw the roofline, with each row on it, into this file")
      ->type_name("FILE")
      ->check(NamesAFile);
  c->footer(
      "A LIST is N, FIRST-LAST, FIRST-LAST+STEP or FIRST-LAST*FACTOR, or several with commas.\n"
      "GB/s is what was read; the roof is the lower of the read bandwidth, measured beside every "
      "row, and the kernels' own rate, measured once; stall is time waited in barriers.\n"
      "Examples:\n"
      "  sluice bench gemma-3-270m\n"
      "  sluice bench -m A.gguf,B.gguf -p 0 -n 64 -d 0,8192 -t 1-8*2 -o json\n"
      "  sluice bench gemma-3-270m -p 0 -np 1,2,4,8 --svg roofline.svg\n"
      "  sluice bench gemma-3-270m --vs \"--weights gguf\"");
  c->callback([flags, exit_code] {
    const Result<int> code = Run(*flags);
    *exit_code = code.ok() ? *code : ReportError("bench", code.status());
  });
}

}  // namespace sluice
