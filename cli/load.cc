// sluice load: sends load to a server and measures what its clients would.
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "cli/bench_output.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/load_flags.h"
#include "cli/load_report.h"
#include "cli/progress.h"
#include "cli/wrap.h"
#include "src/base/atomic_file.h"
#include "src/load/generator.h"
#include "src/load/probe.h"
#include "src/load/sweep.h"
#include "src/text/json_text.h"

namespace sluice::load {
namespace {

constexpr size_t kMostSweepSteps = 20;
constexpr size_t kMostWarmUpClients = 8;

// The files of --output, made before any load: one that cannot be written costs no run.
class Outputs {
 public:
  Status Open(const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      const size_t dot = path.rfind('.');
      const std::string kind = dot == std::string::npos ? "" : path.substr(dot + 1);
      if (kind != "json" && kind != "csv" && kind != "html" && kind != "svg") {
        return Status(
            StatusCode::kInvalidArgument,
            "--output: expected a file that ends in .json, .csv, .html or .svg, found " + path);
      }
      ASSIGN_OR_RETURN(std::unique_ptr<AtomicFile> file, AtomicFile::Create(path));
      files_.emplace_back(kind, std::move(file));
    }
    return Status();
  }

  Status Write(const LoadResult& result) {
    for (auto& [kind, file] : files_) {
      const std::string text = kind == "json"   ? ToJson(ResultJson(result, true)) + "\n"
                               : kind == "csv"  ? ResultCsv(result)
                               : kind == "html" ? LoadHtml(result)
                                                : LoadSvg(result);
      RETURN_IF_ERROR(
          file->WriteAt(0, {reinterpret_cast<const uint8_t*>(text.data()), text.size()}));
      RETURN_IF_ERROR(file->Commit());
    }
    return Status();
  }

 private:
  std::vector<std::pair<std::string, std::unique_ptr<AtomicFile>>> files_;
};

std::string ProgressNote(const RunProgress& p) {
  char text[120];
  std::snprintf(text, sizeof(text), "%.0f tok/s, %zu in flight%s",
                p.seconds > 0 ? static_cast<double>(p.output_tokens) / p.seconds : 0.0, p.running,
                p.failed > 0 ? (", " + std::to_string(p.failed) + " failed").c_str() : "");
  return text;
}

class Session {
 public:
  Session(const LoadFlags& flags, LoadPlan plan)
      : json_(flags.json),
        plan_(std::move(plan)),
        client_(io_, plan_.target, plan_.client),
        prompts_(plan_.prompts),
        colour_(isatty(STDOUT_FILENO) == 1) {}

  Result<int> Run(Outputs* outputs) {
    RETURN_IF_ERROR(client_.Resolve());
    ASSIGN_OR_RETURN(ProbeResult probe, Probe(client_, plan_.dialect, plan_.request));
    interrupt_.emplace();
    plan_.request = probe.request;
    prompts_.set_form(probe.form);
    Begin(probe);
    Print(LoadHead(result_, colour_));
    const double alone_s = WarmUp();
    if (InterruptGuard::interrupted()) {
      return Status(StatusCode::kCancelled, "interrupted while warming up; nothing was measured");
    }
    const bool many = plan_.sweep || plan_.shapes.size() > 1;
    if (many) Print(LoadTableHead(plan_.slo, colour_));
    if (plan_.sweep) {
      RunSweep(alone_s);
    } else {
      for (const LoadShape& shape : plan_.shapes) {
        if (InterruptGuard::interrupted()) break;
        const LoadStep& step = RunStep(shape);
        Print(many ? LoadTableRow(step, plan_.slo, colour_)
                   : LoadStepText(step, plan_.slo, colour_));
      }
    }
    result_.interrupted = InterruptGuard::interrupted();
    Print(KneeText(result_));
    if (many) PrintErrors();
    if (json_) {
      std::printf("%s\n", ToJson(ResultJson(result_, false)).c_str());
    }
    RETURN_IF_ERROR(outputs->Write(result_));
    if (result_.interrupted) return kExitInterrupted;
    size_t ok = 0;
    for (const LoadStep& step : result_.steps) ok += step.summary.ok;
    return ok > 0 ? kExitOk : kExitFailure;
  }

 private:
  void Print(const std::string& text) const {
    if (json_) return;
    std::fputs(text.c_str(), stdout);
    std::fflush(stdout);
  }

  void Begin(const ProbeResult& probe) {
    result_.version = SLUICE_VERSION;
    result_.time = UtcTime();
    result_.url = plan_.target.url;
    result_.dialect = DialectName(probe.request.dialect);
    result_.model = probe.request.model;
    const bool drawn = plan_.prompts.texts.empty();
    result_.prompts = plan_.description + (!drawn           ? ""
                                           : probe.form.ids ? ", sent as ids"
                                                            : ", sent as words");
    result_.settings = plan_.settings;
    result_.slo = plan_.slo;
    result_.notes = probe.notes;
  }

  // The median time of an answer without load; 0: not known.
  double WarmUp() {
    LoadRun run;
    run.warm_up = true;
    run.clients = 1;
    run.requests = std::max<size_t>(plan_.warm_up, plan_.sweep && plan_.sweep_first == 0 ? 2 : 0);
    if (run.requests == 0) return 0;
    if (!plan_.sweep && !plan_.shapes.empty() && !plan_.shapes[0].open) {
      run.clients = std::min(plan_.shapes[0].clients, kMostWarmUpClients);
    }
    const std::vector<LoadSample> samples = Measure("warming up", std::move(run));
    return Summarise(samples, plan_.slo).e2e_sent.p50;
  }

  std::vector<LoadSample> Measure(const std::string& title, LoadRun run) {
    Progress bar(title, Progress::Unit::kCount);
    const size_t total = run.requests;
    run.interrupted = InterruptGuard::interrupted;
    run.progress = [&bar, total](const RunProgress& p) {
      bar.Update(p.ended, total, ProgressNote(p));
    };
    return RunLoad(io_, client_, prompts_, plan_.request, std::move(run));
  }

  const LoadStep& RunStep(const LoadShape& shape) {
    LoadStep step;
    step.open = shape.open;
    step.rate = shape.rate;
    step.clients = shape.clients;
    LoadRun run;
    run.open = shape.open;
    run.arrivals.emplace(ArrivalsOf(shape));
    run.clients = shape.clients;
    run.requests = plan_.requests;
    run.duration_s = plan_.duration_s;
    // Every step has prompts of its own, so that none finds its own in the server's cache; those of
    // a trace belong to its times.
    if (plan_.prompts.trace.empty()) run.first_index = next_index_;
    const size_t before = client_.connections();
    step.samples = Measure(step.Name(), std::move(run));
    step.connections = client_.connections() - before;
    step.summary = Summarise(step.samples, plan_.slo);
    next_index_ += step.samples.size();
    return result_.steps.emplace_back(std::move(step));
  }

  Arrivals ArrivalsOf(const LoadShape& shape) const {
    if (shape.rate > 0) return Arrivals(shape.rate, plan_.burstiness, plan_.prompts.seed);
    std::vector<double> times;
    for (const TraceEntry& entry : plan_.prompts.trace) times.push_back(entry.due_s);
    return Arrivals(std::move(times));
  }

  // Whether all were due within the time that one takes: a server that keeps up and one that does
  // not look the same.
  static bool TellsNothing(const LoadStep& step) {
    return static_cast<double>(step.samples.size()) < step.rate * step.summary.e2e.p50;
  }

  void RunSweep(double alone_s) {
    double first = plan_.sweep_first;
    if (first == 0) first = alone_s > 0 ? 0.5 / alone_s : 1;
    Sweep sweep(first, plan_.sweep_factor, kMostSweepSteps);
    std::map<double, std::string> too_much;
    while (const std::optional<double> rate = sweep.Next()) {
      if (InterruptGuard::interrupted()) return;
      const LoadStep& step = RunStep({true, *rate, 0});
      if (InterruptGuard::interrupted()) return Print(LoadTableRow(step, plan_.slo, colour_));
      const std::string reason = TooMuch(step.summary, plan_.slo, plan_.attainment);
      std::string row = LoadTableRow(step, plan_.slo, colour_);
      if (!reason.empty()) {
        constexpr size_t kIndent = 14;
        const size_t columns = ColumnsOf(stdout, SIZE_MAX);
        const bool fits = TextColumns(row) + 1 + TextColumns(reason) <= columns;
        row.insert(row.size() - 1,
                   fits ? "  " + reason
                        : "\n" + std::string(kIndent, ' ') + Wrapped(reason, kIndent, columns));
      }
      Print(row);
      if (reason.empty() && TellsNothing(step)) {
        result_.knee_rate = sweep.knee();
        result_.knee_reason =
            "faster, all requests have left before one is answered: more (-n) tell";
        return;
      }
      too_much[*rate] = reason;
      sweep.Tell(reason.empty());
    }
    result_.knee_rate = sweep.knee();
    char text[64];
    std::snprintf(text, sizeof(text), "at %.4g req/s ", sweep.broken());
    result_.knee_reason = sweep.broken() > 0
                              ? text + too_much[sweep.broken()]
                              : "the server kept up with the highest rate that was tried";
  }

  void PrintErrors() const {
    for (const LoadStep& step : result_.steps) {
      for (const auto& [kind, error] : step.summary.errors) {
        Print("failed at " + step.Name() + ": " + std::to_string(error.count) + " x " + kind +
              ": " + error.first + "\n");
      }
    }
  }

  const bool json_;
  LoadPlan plan_;
  boost::asio::io_context io_{1};
  Client client_;
  PromptSource prompts_;
  const bool colour_;
  std::optional<InterruptGuard> interrupt_;  // from when there is something to show
  LoadResult result_;
  uint64_t next_index_ = 0;
};

Result<int> CompareFiles(const LoadFlags& flags) {
  std::vector<LoadResult> results;
  for (const std::string& path : flags.compare) {
    ASSIGN_OR_RETURN(const std::string text, ReadAll(path));
    ASSIGN_OR_RETURN(LoadResult result, ParseResult(path, text));
    results.push_back(std::move(result));
  }
  const Comparison comparison = Compare(results[0], results[1]);
  std::fputs(
      ComparisonText(flags.compare[0], flags.compare[1], comparison, isatty(STDOUT_FILENO) == 1)
          .c_str(),
      stdout);
  return kExitOk;
}

Result<int> Run(const LoadFlags& flags) {
  if (!flags.compare.empty()) return CompareFiles(flags);
  ASSIGN_OR_RETURN(LoadPlan plan, flags.Plan());
  Outputs outputs;
  RETURN_IF_ERROR(outputs.Open(flags.outputs));
  return Session(flags, std::move(plan)).Run(&outputs);
}

}  // namespace
}  // namespace sluice::load

namespace sluice {

void AddLoad(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<load::LoadFlags>();
  CLI::App* c = app.add_subcommand(
      "load", "Send load to a server, sluice's or another's, and measure latency and throughput");
  flags->AddTo(*c);
  c->footer(
      "Without --rate it is a closed loop of --concurrency clients (1). Latencies of an open loop "
      "count from when a request was due, so a server that stalls cannot hide it.\n"
      "Examples:\n  sluice load http://127.0.0.1:8080 --rate 2 --slo ttft=2s,tpot=100ms\n"
      "  sluice load http://127.0.0.1:8080 --sweep --duration 20 -o report.html\n"
      "  sluice load http://127.0.0.1:11434 --dialect ollama --concurrency 1,2,4,8\n"
      "  sluice load --compare before.json after.json");
  c->callback([flags, exit_code] {
    std::signal(SIGPIPE, SIG_IGN);
    Result<int> code = load::Run(*flags);
    *exit_code = code.ok() ? *code : ReportError("load", code.status());
  });
}

}  // namespace sluice
