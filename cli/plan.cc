// sluice plan: what a model needs and how fast it will be, before it is loaded; what to
// change to reach a goal; and afterwards whether that was right.
#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/model_path.h"
#include "cli/plan_report.h"
#include "cli/words.h"
#include "src/base/atomic_file.h"
#include "src/file/summary.h"
#include "src/machine/memory_use.h"
#include "src/text/json_text.h"

namespace sluice {
namespace {

struct PlanFlags {
  std::string model, kv_type = "auto", weights = "auto", svg, advise, devices_file;
  std::vector<std::string> on;
  size_t prompt = 512, output = 128, concurrency = 1, max_seqs = 0, context = 0, chunk = 512;
  double max_stall_ms = 200;
  int threads = 0, threads_batch = 0;
  size_t pairs = 5;
  bool has_prompt = false, check = false, measure = false, json = false;
};

// What people quantise to: fast here, and no worse than their size.
constexpr const char* kFormats[] = {"BF16", "Q8_0", "Q6_K",   "Q5_K",
                                    "Q4_K", "Q4_0", "IQ4_XS", "MXFP4"};

constexpr int64_t kFresh_s = 600;  // measurements that are not made again

class Planner {
 public:
  explicit Planner(const PlanFlags& flags) : flags_(flags) {}

  Status Run() {
    ASSIGN_OR_RETURN(path_, FindOrOffer(flags_.model));
    RETURN_IF_ERROR(ReadWorkload());
    RETURN_IF_ERROR(ChooseKvType());
    ChooseThreads();
    if (flags_.check) return Check();
    ASSIGN_OR_RETURN(devices_, AllDevices(flags_.devices_file));
    ASSIGN_OR_RETURN(const LoadMode mode, ParseLoadMode(flags_.weights));
    ASSIGN_OR_RETURN(const ModelWork model, ModelWork::Of(path_, mode != LoadMode::kGguf));
    const bool one = flags_.on.size() == 1 && flags_.on[0] != "all";
    if (one) {
      ASSIGN_OR_RETURN(device_, FindDevice(devices_, flags_.on[0]));
    } else {
      RETURN_IF_ERROR(Measure(model));
    }
    if (!flags_.advise.empty()) return GiveAdvice(model);
    PlanReport report;
    RETURN_IF_ERROR(Fill(model, &report));
    if (!flags_.svg.empty()) RETURN_IF_ERROR(WriteSvg(model, report));
    if (flags_.json) {
      std::printf("%s\n", ToJson(PlanJson(report)).c_str());
    } else {
      PrintPlan(report);
    }
    return Status();
  }

 private:
  Status ReadWorkload() {
    workload_.prompt = flags_.prompt;
    workload_.output = flags_.output;
    workload_.concurrency = flags_.concurrency;
    workload_.max_sequences = flags_.max_seqs;
    workload_.context = flags_.context;
    workload_.chunk = std::max(flags_.chunk, flags_.concurrency);
    workload_.max_stall_s = flags_.max_stall_ms / 1000;
    if (flags_.context > 0 && flags_.context < flags_.prompt + flags_.output) {
      return Status(StatusCode::kInvalidArgument,
                    "--ctx-size " + std::to_string(flags_.context) +
                        ": expected room for --prompt and --output, " +
                        std::to_string(flags_.prompt + flags_.output) + " positions");
    }
    return Status();
  }

  Status ChooseKvType() {
    ASSIGN_OR_RETURN(const std::optional<KvType> wanted, ParseKvType(flags_.kv_type));
    ASSIGN_OR_RETURN(const std::unique_ptr<Gguf> gguf, Gguf::Open(path_));
    const Result<Config> config = ReadConfig(*gguf);
    if (!config.ok()) return config.status().Within(path_);
    const Config& c = *config;
    workload_.kv_type = wanted.value_or(DefaultKvType(c, false));
    if (workload_.kv_type != KvType::kQ8 || (c.key_dim % 32 == 0 && c.value_dim % 32 == 0)) {
      return Status();
    }
    return Status(StatusCode::kUnsupported,
                  "--kv-type q8 needs head sizes that are multiples of 32; this model's are " +
                      std::to_string(c.key_dim) + " and " + std::to_string(c.value_dim) +
                      "; use f16");
  }

  void ChooseThreads() {
    const MachineProfile profile =
        flags_.threads == 0 ? ProfileOfThisMachine() : DefaultProfile(ThisMachine());
    decode_threads_ = flags_.threads > 0 ? flags_.threads : profile.decode_threads;
    prefill_threads_ = flags_.threads_batch > 0 ? flags_.threads_batch
                       : flags_.threads > 0     ? flags_.threads
                                                : profile.prefill_threads;
    // More threads than run at once take turns: nothing is faster for it, and measuring them is
    // slow. More than a quota is for run no more of the time.
    decode_threads_ = ThisMachine().RunningAllTheTime(decode_threads_);
    prefill_threads_ = ThisMachine().RunningAllTheTime(prefill_threads_);
    ceilings_ = KeptCeilings(decode_threads_, prefill_threads_);
  }

  // All that is needed, at once, unless the profile has it from the last minutes: formats that were
  // measured at different moments cannot be compared on a shared machine.
  Status Measure(const ModelWork& model) {
    CeilingList list = CeilingsOf(model, workload_.kv_type);
    for (const Format* format : Candidates(model)) {
      list.kernels.push_back({format, true});
      list.reads.push_back(model.In(*format).WeightBytesPerToken());
    }
    if (!flags_.advise.empty()) {
      const KvShape q8{model.config().key_dim, model.config().value_dim, KvType::kQ8};
      if (q8.key_dim % 32 == 0 && q8.value_dim % 32 == 0) {
        list.attention.push_back({q8, list.attention[0].group});
      }
    }
    const auto since = static_cast<int64_t>(std::time(nullptr)) - kFresh_s;
    if (!flags_.measure && Lacking(list, ceilings_, since).empty()) return Status();
    ASSIGN_OR_RETURN(const std::unique_ptr<ThreadTeam> team,
                     ThreadTeam::Create(std::max(decode_threads_, prefill_threads_)));
    RETURN_IF_ERROR(MeasureCeilings(*team, decode_threads_, prefill_threads_, list, &ceilings_));
    KeepCeilings(ceilings_);
    return Status();
  }

  // Formats to compare with: those in which some matrix of the model has whole blocks.
  std::vector<const Format*> Candidates(const ModelWork& model) const {
    std::vector<const Format*> formats;
    for (const char* name : kFormats) {
      const Format* format = FindFormat(name);
      if (format != nullptr && model.config().dim % format->block_values == 0) {
        formats.push_back(format);
      }
    }
    return formats;
  }

  MachineSpeed Speed(const ModelWork& model, KvType kv_type, CeilingOf of) const {
    if (device_) return SpeedOf(model, *device_);
    return SpeedHere(model, kv_type, ceilings_, of, prefill_threads_);
  }

  double RoomBytes() const {
    if (!device_) return static_cast<double>(ThisMachine().UsableMemoryBytes());
    return device_->memory_gb > 0 ? 1e9 * device_->memory_gb : 1e15;
  }

  Result<PlanRow> Row(const std::string& label, const ModelWork& model, const Workload& w,
                      const MachineSpeed& speed, double room) const {
    PlanRow row;
    row.label = label;
    row.context = w.prompt + w.output / 2;
    row.prediction = Predict(model, speed, w);
    ASSIGN_OR_RETURN(row.memory, PlanMemory(model, w, prefill_threads_, room));
    return row;
  }

  // Powers of two up to the context that the model was trained for, or that was asked for.
  std::vector<size_t> Contexts(const Config& c) const {
    std::vector<size_t> contexts;
    const size_t most = std::max({c.context, workload_.positions(), size_t{512}});
    for (size_t n = 512; n <= std::min(most, size_t{131072}); n *= 2) contexts.push_back(n);
    return contexts;
  }

  // A prompt that fills the context but for the output.
  Workload AtContext(size_t context) const {
    Workload w = workload_;
    w.context = context;
    w.output = std::min(w.output, std::max<size_t>(1, context / 2));
    w.prompt = context - w.output;
    return w;
  }

  Status Fill(const ModelWork& model, PlanReport* r) {
    ASSIGN_OR_RETURN(const std::unique_ptr<Gguf> gguf, Gguf::Open(path_));
    r->model = path_;
    r->quantisation = QuantisationOf(*gguf);
    r->here = !device_;
    r->where = device_ ? device_->name + ", " + device_->description : ThisMachine().cpu_name;
    r->workload = workload_;
    r->now = Speed(model, workload_.kv_type, CeilingOf::kNow);
    r->good = Speed(model, workload_.kv_type, CeilingOf::kGood);
    r->prediction = Predict(model, r->now, workload_);
    r->best = Predict(model, r->good, workload_);
    ASSIGN_OR_RETURN(r->memory, PlanMemory(model, workload_, prefill_threads_, RoomBytes()));
    if (!device_) r->available_bytes = static_cast<double>(AvailableMemoryBytes());
    for (const size_t context : Contexts(model.config())) {
      const Workload w = AtContext(context);
      ASSIGN_OR_RETURN(PlanRow row, Row(std::to_string(context), model, w, r->now, RoomBytes()));
      r->contexts.push_back(std::move(row));
    }
    ASSIGN_OR_RETURN(PlanRow as_is, Row("as it is", model, workload_, r->now, RoomBytes()));
    as_is.current = true;
    r->formats.push_back(std::move(as_is));
    for (const Format* format : Candidates(model)) {
      const ModelWork other = model.In(*format);
      ASSIGN_OR_RETURN(PlanRow row,
                       Row(format->name, other, workload_,
                           Speed(other, workload_.kv_type, CeilingOf::kNow), RoomBytes()));
      r->formats.push_back(std::move(row));
    }
    return FillDevices(model, r);
  }

  // --on all, or several: one row each.
  Status FillDevices(const ModelWork& model, PlanReport* r) {
    if (flags_.on.empty() || device_) return Status();
    std::vector<Device> chosen;
    for (const std::string& name : flags_.on) {
      if (name == "all") {
        chosen = devices_;
        break;
      }
      ASSIGN_OR_RETURN(Device device, FindDevice(devices_, name));
      chosen.push_back(std::move(device));
    }
    for (const Device& d : chosen) {
      const double room = d.memory_gb > 0 ? 1e9 * d.memory_gb : 1e15;
      ASSIGN_OR_RETURN(PlanRow row, Row(d.name, model, workload_, SpeedOf(model, d), room));
      r->devices.push_back(std::move(row));
    }
    return Status();
  }

  Status WriteSvg(const ModelWork& model, const PlanReport& report) {
    const std::vector<size_t> contexts = Contexts(model.config());
    std::vector<PlanCurve> curves;
    const auto add = [&](const std::string& label, const ModelWork& work) {
      PlanCurve curve;
      curve.label = label;
      const MachineSpeed speed = Speed(work, workload_.kv_type, CeilingOf::kNow);
      const size_t n = std::max<size_t>(1, workload_.concurrency);
      for (const size_t context : contexts) {
        const PassWork step = work.Decode(n, context, workload_.kv_type);
        const auto rows = static_cast<double>(n);
        curve.tok_s.push_back(rows / PredictPass(work, step, n, speed).total());
        curve.roof_tok_s.push_back(rows / RoofSeconds(step, speed));
      }
      curves.push_back(std::move(curve));
    };
    add(report.quantisation + ", as it is", model);
    for (const char* name : {"BF16", "Q8_0", "Q4_0"}) {
      const Format* format = FindFormat(name);
      if (model.config().dim % format->block_values == 0) add(name, model.In(*format));
    }
    const std::string svg = PlanSvg(report, contexts, curves);
    ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file, AtomicFile::Create(flags_.svg));
    RETURN_IF_ERROR(file->WriteAt(0, {reinterpret_cast<const uint8_t*>(svg.data()), svg.size()}));
    return file->Commit();
  }

  Status GiveAdvice(const ModelWork& model) {
    AdviceQuestion question;
    ASSIGN_OR_RETURN(question.goal, ParseGoal(flags_.advise));
    Goal& goal = question.goal;
    if (flags_.has_prompt && !goal.prompt) goal.prompt = flags_.prompt;
    const size_t output = goal.output.value_or(flags_.output);
    if (goal.context && *goal.context <= output) {
      return Status(StatusCode::kInvalidArgument,
                    "--advise: expected a context of more than the " + std::to_string(output) +
                        " tokens of the output, found " + std::to_string(*goal.context));
    }
    question.model = &model;
    question.workload = workload_;
    question.workload.chunk = std::max(workload_.chunk, question.goal.users.value_or(1));
    question.formats = Candidates(model);
    question.devices = devices_;
    question.threads = prefill_threads_;
    question.room_bytes = RoomBytes();
    question.speed = [this](const ModelWork& m, KvType kv_type) {
      return Speed(m, kv_type, CeilingOf::kNow);
    };
    ASSIGN_OR_RETURN(const std::vector<Advice> advice, Advise(question));
    PlanReport report;
    report.workload = WorkloadOf(question);
    report.here = !device_;
    report.where = device_ ? device_->name : ThisMachine().cpu_name;
    report.model = path_;
    report.now = Speed(model, workload_.kv_type, CeilingOf::kNow);
    report.good = Speed(model, workload_.kv_type, CeilingOf::kGood);
    if (flags_.json) {
      std::printf("%s\n", ToJson(AdviceJson(advice)).c_str());
    } else {
      PrintAdvice(report, question.goal, advice);
    }
    return Status();
  }

  Status Check() {
    RunnerOptions options;
    ASSIGN_OR_RETURN(options.weights, ParseLoadMode(flags_.weights));
    options.threads = decode_threads_;
    options.threads_batch = prefill_threads_;
    SizeForWorkload(workload_, &options);
    ASSIGN_OR_RETURN(const std::unique_ptr<ModelRunner> runner,
                     ModelRunner::Create(path_, options));
    ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                     Tokenizer::Load(runner->model().gguf()));
    // Once unseen: pages of weights, keys and values are touched for the first time.
    RETURN_IF_ERROR(CheckPlan(*runner, *tokenizer, workload_, &ceilings_).status());
    std::vector<CheckSample> samples;
    const InterruptGuard interrupt;
    while (samples.size() < flags_.pairs && !interrupt.interrupted()) {
      ASSIGN_OR_RETURN(CheckSample sample, CheckPlan(*runner, *tokenizer, workload_, &ceilings_));
      samples.push_back(sample);
    }
    KeepCeilings(ceilings_);
    if (samples.empty()) return Status(StatusCode::kCancelled, "interrupted before the first pair");
    const CheckSummary summary = Summarise(samples);
    if (flags_.json) {
      std::printf("%s\n", ToJson(CheckJson(workload_, summary, samples)).c_str());
    } else {
      PrintCheck(workload_, summary);
    }
    return Status();
  }

  const PlanFlags& flags_;
  std::string path_;
  Workload workload_;
  int decode_threads_ = 1, prefill_threads_ = 1;
  Ceilings ceilings_;
  std::vector<Device> devices_;
  std::optional<Device> device_;
};

}  // namespace

void AddPlan(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<PlanFlags>();
  CLI::App* c = app.add_subcommand(
      "plan", "Predict a model's memory and speed before it is loaded; advise; check");
  const auto count = [&](const char* names, size_t& value, const char* help) {
    return c->add_option(names, value, help)
        ->check(CLI::Range(size_t{1}, size_t{1} << 24))
        ->capture_default_str();
  };
  AddModel(*c, &flags->model);
  CLI::Option* prompt = count("--prompt", flags->prompt, "Tokens of each prompt");
  count("--output", flags->output, "Tokens to generate for each");
  count("--concurrency", flags->concurrency, "Requests that arrive at once")
      ->check(CLI::Range(1, 1024));
  c->add_option("--max-num-seqs", flags->max_seqs, "Most that run at once; 0: all of them")
      ->check(CLI::Range(0, 1024));
  c->add_option("-c,--ctx-size", flags->context,
                "Positions of each sequence; 0: --prompt and --output")
      ->check(CLI::Range(size_t{0}, size_t{1} << 30));
  count("-b,--max-num-batched-tokens", flags->chunk, "Most tokens of one pass")
      ->check(CLI::Range(1, 65536));
  c->add_option("--max-stall-ms", flags->max_stall_ms,
                "Longest that a stream waits for prompts, as in serve; 0: no limit")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  c->add_option("--kv-type", flags->kv_type, "Keys and values: f32, f16, bf16, q8; auto")
      ->type_name("TYPE")
      ->capture_default_str();
  c->add_option("--weights", flags->weights, "How they are held: auto, panels, repack or gguf")
      ->type_name("MODE")
      ->capture_default_str();
  c->add_option("-t,--threads", flags->threads, "Decode threads; 0: what measured best")
      ->check(CLI::Range(0, 1024));
  c->add_option("--tb,--threads-batch", flags->threads_batch, "Prefill threads; 0: as --threads")
      ->check(CLI::Range(0, 1024));
  CLI::Option* on =
      c->add_option("--on", flags->on,
                    "Another machine by its published figures (h100-sxm, m4-max, ddr5-dual ...); "
                    "several with commas, or all, for a table")
          ->delimiter(',')
          ->allow_extra_args(false)
          ->type_name("DEVICE")
          ->check(NotEmpty);
  c->add_option(
       "--devices", flags->devices_file,
       "Your own: {\"devices\": [{\"name\": \"box\", \"bandwidth_gb_s\": 200, \"tops\": 4, "
       "\"memory_gb\": 64}]}; by default devices.json in the cache folder")
      ->type_name("FILE")
      ->check(NamesAFile);
  c->add_flag("--measure", flags->measure,
              "Measure this machine's ceilings again instead of using what is kept");
  CLI::Option* svg =
      c->add_option("--svg", flags->svg, "Draw decode speed over the context into this file")
          ->type_name("FILE")
          ->check(NamesAFile);
  CLI::Option* advise =
      c->add_option("--advise", flags->advise,
                    "What to change for a goal: \"TTFT under 2 s at 4k prompts\", "
                    "\"10 tok/s for 4 users\"")
          ->type_name("GOAL")
          ->check(NotEmpty);
  CLI::Option* check =
      c->add_flag("--check", flags->check, "Run it: pairs of a prediction and a run, their medians")
          ->excludes(on)
          ->excludes(svg)
          ->excludes(advise);
  count("--pairs", flags->pairs, "Of --check")->check(CLI::Range(1, 10000))->needs(check);
  svg->excludes(advise);
  c->add_flag("--json", flags->json, "One JSON value");
  c->footer(
      "Examples:\n  sluice plan gemma-3-270m --prompt 4096 --concurrency 4\n"
      "  sluice plan model.gguf --on all\n"
      "  sluice plan model.gguf --advise \"10 tok/s for 4 users\"\n"
      "  sluice plan model.gguf --check --pairs 20");
  c->callback([flags, prompt, exit_code] {
    flags->has_prompt = prompt->count() > 0;
    if (Status s = Planner(*flags).Run(); !s.ok()) *exit_code = ReportError("plan", s);
  });
}

}  // namespace sluice
