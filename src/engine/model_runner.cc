#include "src/engine/model_runner.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <vector>

#include "src/engine/machine_speed.h"
#include "src/engine/pass_work.h"
#include "src/machine/bandwidth.h"
#include "src/machine/machine_profile.h"
#include "src/machine/memory_use.h"
#include "src/machine/topology.h"

namespace sluice {

namespace {

// The trained context, halved until the keys and values of all sequences fit in half of the memory.
size_t DefaultContext(const Config& c, const RunnerOptions& o) {
  const uint64_t budget = ThisMachine().UsableMemoryBytes() / 2;
  const uint64_t page = KvPageBytes(KvShapeOf(c, *o.kv_type));
  const size_t sequences = o.share_memory ? 1 : o.sequences;
  size_t context = c.context;
  while (context > 2048 && KvPagesPerSequence(c, context, o.chunk) * sequences > budget / page) {
    context /= 2;
  }
  return context;
}

Status CheckOptions(const Config& c, const Model& model, const RunnerOptions& o) {
  if (o.kv_type == KvType::kQ8 && (c.key_dim % 32 != 0 || c.value_dim % 32 != 0)) {
    return Status(StatusCode::kUnsupported,
                  "--kv-type q8 needs head sizes that are multiples of 32; this model's are " +
                      std::to_string(c.key_dim) + " and " + std::to_string(c.value_dim) +
                      "; use f16");
  }
  constexpr size_t kMostContext = size_t{1} << 30;
  const uint64_t memory = ThisMachine().UsableMemoryBytes();
  if (o.context > kMostContext ||
      KvPagesPerSequence(c, o.context, o.chunk) >
          memory / KvPageBytes(KvShapeOf(c, *o.kv_type)) / (o.share_memory ? 1 : o.sequences)) {
    return Status(StatusCode::kInvalidArgument,
                  "--ctx-size " + std::to_string(o.context) +
                      ": its keys and values do not fit in the " + std::to_string(memory >> 20) +
                      " MiB of memory here; the model was trained for " +
                      std::to_string(c.context));
  }
  if (model.position_limit() && o.context > model.position_limit()) {
    return Status(StatusCode::kInvalidArgument, "--ctx-size " + std::to_string(o.context) +
                                                    ": this model has learned positions for " +
                                                    std::to_string(model.position_limit()) +
                                                    " tokens and no more");
  }
  return Status();
}

void AppendLine(const std::string& line, std::string* lines) {
  *lines += (lines->empty() ? "" : "\n") + line;
}

// Before anything is loaded.
Status CheckMemory(const RunnerOptions& o) {
  const uint64_t memory = ThisMachine().UsableMemoryBytes();
  if (o.kv_bytes <= memory) return Status();
  return Status(StatusCode::kInvalidArgument, "--kv-memory: expected at most the " +
                                                  std::to_string(memory >> 20) +
                                                  " MiB of memory here, found " +
                                                  std::to_string((o.kv_bytes >> 20) + 1) + " MiB");
}

// Says what was asked for and will not do what it looks like.
void SayDoubts(const Config& c, const RunnerOptions& o) {
  if (!o.warn) return;
  if (c.context > 0 && o.context > c.context) {
    o.warn("a context of " + std::to_string(o.context) + " is more than the " +
           std::to_string(c.context) +
           " positions the model was trained for: beyond them its text may make no sense");
  }
  const int threads = std::max(o.threads, o.threads_batch);
  const int cpus = ThisMachine().cpus;
  if (threads > cpus) {
    o.warn(std::to_string(threads) + " threads take turns on " +
           (cpus == 1 ? "one CPU" : std::to_string(cpus) + " CPUs") +
           ", which is slower than one on each; -t 0 chooses what measured best");
  }
}

// The largest matrix of each float format, held in panels and held in rows.
std::vector<KernelMatrix> FloatMatrices(const Weights& weights) {
  std::vector<KernelMatrix> found;
  const auto look = [&](const Weight& w) {
    if (!OneDnn::Offers(*w.format, OneDnn::Form::kFloats)) return;
    const KernelMatrix m = MatrixOf(w);
    for (KernelMatrix& f : found) {
      if (f.format != m.format || f.panels != m.panels) continue;
      if (f.rows * f.k < m.rows * m.k) f = m;
      return;
    }
    found.push_back(m);
  };
  for (const LayerWeights& layer : weights.layers) ForEachMatrix(layer, look, look);
  look(weights.output);
  return found;
}

}  // namespace

Result<std::unique_ptr<ModelRunner>> ModelRunner::Create(const std::string& path,
                                                         const RunnerOptions& options,
                                                         const LoadProgress& progress) {
  const auto start = std::chrono::steady_clock::now();
  std::unique_ptr<ModelRunner> r(new ModelRunner);
  r->options_ = options;
  RunnerOptions& o = r->options_;
  RETURN_IF_ERROR(CheckMemory(o));
  ASSIGN_OR_RETURN(std::unique_ptr<Gguf> gguf, Gguf::Open(path));
  RETURN_IF_ERROR(r->MakeTeam());
  r->decode_size_ = TeamSize(o.threads);
  Result<std::unique_ptr<Model>> model =
      Model::Load(std::move(gguf), o.weights, BestActivations(o.activations, o.portable), *r->team_,
                  progress, o.placement);
  if (!model.ok()) return model.status().Within(path);
  r->model_ = *std::move(model);

  const Config& c = r->config();
  if (!o.kv_type) o.kv_type = DefaultKvType(c, o.portable);
  if (o.context == 0) o.context = DefaultContext(c, o);
  o.chunk = std::min(o.chunk, o.context);
  RETURN_IF_ERROR(CheckOptions(c, *r->model_, o));
  r->load_note_ = r->model_->load_note();
  SayDoubts(c, o);
  if (o.relaxed) r->ChooseRelaxed();
  ASSIGN_OR_RETURN(r->workspace_,
                   Workspace::Create(c, o.chunk, static_cast<size_t>(r->team_->size()), o.context,
                                     r->relaxed_.get()));
  r->workspace_->portable = o.portable;
  RETURN_IF_ERROR(r->MakePool());
  if (o.placement.lock) {
    Status locked = r->pool_->Lock();
    if (locked.ok()) locked = r->workspace_->Lock();
    if (!locked.ok()) AppendLine(locked.message(), &r->load_note_);
  }
  r->load_seconds_ =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return r;
}

Status ModelRunner::MakePool() {
  const RunnerOptions& o = options_;
  const KvShape shape = KvShapeOf(config(), *o.kv_type);
  const size_t one = KvPagesPerSequence(config(), o.context, o.chunk);
  size_t pages = o.kv_bytes == 0 ? one * o.sequences : o.kv_bytes / KvPageBytes(shape);
  if (o.kv_bytes == 0 && o.share_memory) {
    const uint64_t room = ThisMachine().UsableMemoryBytes() / 2 / KvPageBytes(shape);
    pages = std::max<size_t>(one, std::min<uint64_t>(pages, room));
  }
  most_positions_ = o.context;
  if (pages < one) {
    // Whole spans; a pool too small for a single one is no pool.
    size_t spans = o.context / kSpan;
    while (spans > 0 && PagesOf(spans * kSpan) > pages) --spans;
    most_positions_ = spans * kSpan;
    if (spans == 0) {
      return Status(StatusCode::kInvalidArgument,
                    "--kv-memory: expected at least " +
                        std::to_string(PagesOf(kSpan) * KvPageBytes(shape) >> 10) +
                        " KiB, which 64 positions of this model take, found " +
                        std::to_string(o.kv_bytes >> 10) + " KiB");
    }
  }
  ASSIGN_OR_RETURN(pool_, KvPool::Create(shape, pages));
  return Status();
}

size_t ModelRunner::PagesOf(size_t positions) const {
  return KvPagesOf(config(), positions, options_.context, options_.chunk);
}

Status ModelRunner::MakeTeam() {
  RunnerOptions& o = options_;
  // The profile may measure first, with a team of its own.
  const MachineProfile profile =
      o.threads == 0 ? ProfileOfThisMachine() : DefaultProfile(ThisMachine());
  if (o.threads_batch == 0) o.threads_batch = o.threads == 0 ? profile.prefill_threads : o.threads;
  if (o.threads == 0) o.threads = profile.decode_threads;
  ASSIGN_OR_RETURN(team_, ThreadTeam::Create(std::max(o.threads, o.threads_batch)));
  team_->SetRates(WorkerRates(ThisMachine(), profile, team_->size()));
  return Status();
}

void ModelRunner::ChooseRelaxed() {
  const RunnerOptions& o = options_;
  relaxed_ = std::make_unique<RelaxedMatMul>(FloatMatrices(model_->weights()), kFewRows + 1,
                                             o.chunk, *team_, o.warn, o.relaxed_gain);
  AppendLine(relaxed_->note(), &load_note_);
}

// The probes' buffers are no part of the peak that is reported.
template <class Measure>
Ceilings ModelRunner::Kept(const Measure& measure) {
  Ceilings ceilings = KeptCeilings(ThisMachine().RunningAtOnce(decode_threads()),
                                   ThisMachine().RunningAtOnce(prefill_threads()));
  peak_before_probe_ = PeakRssBytes();
  measure(&ceilings);
  RestartPeakRss();
  KeepCeilings(ceilings);
  return ceilings;
}

void ModelRunner::MeasureRead(double seconds) {
  const uint64_t bytes = model_->WeightBytesPerToken();
  const Ceilings kept = Kept([&](Ceilings* ceilings) {
    const Result<double> gb_s = MeasureReadBandwidth(*team_, seconds, decode_threads(), bytes);
    if (!gb_s.ok()) return;
    read_bandwidth_ = *gb_s;
    ceilings->Add(ReadRate(bytes), *gb_s, std::time(nullptr));
  });
  quiet_bandwidth_ = kept.Good(ReadRate(bytes)).value_or(0);
}

double ModelRunner::ReadBandwidth() {
  constexpr double kSeconds = 0.3;
  if (!read_bandwidth_) MeasureRead(kSeconds);
  return read_bandwidth_.value_or(0);
}

double ModelRunner::MeasureBandwidthAgain() {
  constexpr double kSeconds = 0.1;
  MeasureRead(kSeconds);
  return ReadBandwidth();
}

const PassCeilings& ModelRunner::MeasureCeilings() {
  if (ceilings_) return *ceilings_;
  const ModelWork model(config(), model_->weights());
  const int decode = ThisMachine().RunningAtOnce(decode_threads());
  const int prefill = ThisMachine().RunningAtOnce(prefill_threads());
  const Ceilings kept = Kept([&](Ceilings* ceilings) {
    CeilingList list = CeilingsOf(model, kv_type());
    list.memory = list.streams = false;
    list.reads.clear();  // ReadBandwidth
    // What cannot be measured (memory is short) stays unknown.
    (void)::sluice::MeasureCeilings(*team_, decode, prefill, list, ceilings);
  });
  ceilings_ = CeilingsFrom(model, SpeedHere(model, kv_type(), kept, CeilingOf::kGood, prefill),
                           decode, prefill);
  ceilings_->decode.read_gb_s = ceilings_->prefill.read_gb_s = ReadBandwidth();
  ceilings_->decode.quiet_read_gb_s = ceilings_->prefill.quiet_read_gb_s = QuietBandwidth();
  return *ceilings_;
}

uint64_t ModelRunner::PeakRssBytes() const {
  return std::max(peak_before_probe_, ThisProcessMemory().peak_rss_bytes);
}

std::unique_ptr<KvSequence> ModelRunner::NewSequence() {
  return std::make_unique<KvSequence>(config(), *pool_, options_.context, options_.chunk);
}

void ModelRunner::Forward(const Batch& batch, bool decode, const LogitsOut& out, float* hidden) {
  if (!decode || !options_.adapt_threads) {
    const int threads = last_threads_ = decode ? options_.threads : options_.threads_batch;
    team_->LetWorkersMove(false);
    model_->Forward(*team_, threads, *workspace_, batch, out, hidden);
    return;
  }
  using Clock = std::chrono::steady_clock;
  const int threads = last_threads_ = decode_size_.threads();
  team_->LetWorkersMove(threads < options_.threads);
  const uint64_t lost_ns = team_->lost_ns();
  const auto start = Clock::now();
  model_->Forward(*team_, threads, *workspace_, batch, out, hidden);
  decode_size_.Passed(batch.tokens.size(),
                      std::chrono::duration<double>(Clock::now() - start).count(),
                      static_cast<double>(team_->lost_ns() - lost_ns) * 1e-9);
}

void ModelRunner::Logits(size_t first, size_t count, const LogitsOut& out) {
  model_->Logits(*team_, options_.threads_batch, *workspace_, first, count, out);
}

}  // namespace sluice
