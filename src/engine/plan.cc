#include "src/engine/plan.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "src/engine/scheduler.h"

namespace sluice {
namespace {

// One request on its way through the schedule.
struct Simulated {
  size_t computed = 0, generated = 0;
  double first_s = 0, last_s = 0;
};

class Simulation {
 public:
  Simulation(const ModelWork& model, const MachineSpeed& speed, const Workload& w)
      : model_(model), speed_(speed), w_(w), requests_(std::max<size_t>(1, w.concurrency)) {
    most_ = w.max_sequences > 0 ? w.max_sequences : requests_.size();
  }

  std::vector<Simulated> Run() {
    while (Step()) {
    }
    return requests_;
  }

 private:
  bool Streams(const Simulated& r) const {
    return w_.prompt - std::min(r.computed, w_.prompt) <= 1;
  }

  // As Engine::Step: a row of every stream, then prompts in order of arrival.
  bool Step() {
    std::vector<size_t> running;
    for (size_t i = 0; i < requests_.size() && running.size() < most_; ++i) {
      if (requests_[i].generated < w_.output) running.push_back(i);
    }
    if (running.empty()) return false;
    const auto streams = static_cast<size_t>(std::count_if(
        running.begin(), running.end(), [&](size_t i) { return Streams(requests_[i]); }));
    const bool pure = streams == running.size();
    size_t room = std::max(w_.chunk, running.size());
    std::vector<std::pair<size_t, size_t>> rows;  // request, rows
    for (const size_t i : running) {
      if (Streams(requests_[i])) rows.emplace_back(i, 1);
    }
    room -= rows.size();
    size_t prompt_rows = std::min(pace_.Rows(w_.max_stall_s, streams > 0, w_.chunk), room);
    for (const size_t i : running) {
      if (prompt_rows == 0) break;
      if (Streams(requests_[i])) continue;
      const size_t n = std::min(prompt_rows, w_.prompt - requests_[i].computed);
      rows.emplace_back(i, n);
      prompt_rows -= n;
    }
    // Steps of decode change slowly: many are taken as one.
    size_t steps = 1;
    if (pure) {
      size_t left = w_.output;
      for (const size_t i : running) left = std::min(left, w_.output - requests_[i].generated);
      steps = std::max<size_t>(1, left / 32);
    }
    std::vector<RowRange> ranges;
    size_t sampled = 0;
    for (const auto& [i, n] : rows) {
      ranges.push_back({requests_[i].computed + steps / 2, n});
      sampled += requests_[i].computed + n >= w_.prompt;
    }
    const double seconds = PassSeconds(ranges, sampled);
    now_ += static_cast<double>(steps) * seconds;
    size_t all = 0, of_prompts = 0;
    for (const RowRange& range : ranges) {
      all += range.rows;
      if (range.rows > 1) of_prompts += range.rows;
    }
    for (size_t i = 0; i < steps; ++i) pace_.Learn(seconds, all, of_prompts);
    for (const auto& [i, n] : rows) {
      Simulated& r = requests_[i];
      r.computed += n * steps;
      if (r.computed < w_.prompt) continue;
      if (r.generated == 0) r.first_s = now_;
      r.generated += steps;
      r.last_s = now_;
    }
    return true;
  }

  double PassSeconds(const std::vector<RowRange>& ranges, size_t sampled) const {
    PassWork work;
    model_.Add(ranges, sampled, w_.kv_type, &work);
    size_t rows = 0;
    for (const RowRange& range : ranges) rows += range.rows;
    return PredictPass(model_, work, rows, speed_).total();
  }

  const ModelWork& model_;
  const MachineSpeed& speed_;
  const Workload w_;
  std::vector<Simulated> requests_;
  size_t most_ = 1;
  PrefillPace pace_;
  double now_ = 0;
};

double PerSecond(double count, double seconds) { return seconds > 0 ? count / seconds : 0; }

// The whole prompt's chunks at the roofs.
double PrefillRoofSeconds(const ModelWork& model, const MachineSpeed& speed, const Workload& w) {
  double seconds = 0;
  for (size_t at = 0; at < w.prompt; at += w.chunk) {
    const RowRange range{at, std::min(w.chunk, w.prompt - at)};
    PassWork work;
    model.Add({&range, 1}, at + range.rows == w.prompt, w.kv_type, &work);
    seconds += RoofSeconds(work, speed);
  }
  return seconds;
}

}  // namespace

Prediction Predict(const ModelWork& model, const MachineSpeed& speed, const Workload& workload) {
  Workload w = workload;
  w.prompt = std::max<size_t>(1, w.prompt);
  w.output = std::max<size_t>(1, w.output);
  w.concurrency = std::max<size_t>(1, w.concurrency);
  Prediction p;
  Workload alone = w;
  alone.concurrency = alone.output = 1;
  p.prefill_s = Simulation(model, speed, alone).Run()[0].first_s;

  const std::vector<Simulated> requests = Simulation(model, speed, w).Run();
  const auto n = static_cast<double>(requests.size());
  for (const Simulated& r : requests) {
    p.ttft_s += r.first_s / n;
    p.last_ttft_s = std::max(p.last_ttft_s, r.first_s);
    p.total_s = std::max(p.total_s, r.last_s);
    if (w.output > 1) p.token_s += (r.last_s - r.first_s) / static_cast<double>(w.output - 1) / n;
  }
  p.queue_s = std::max(0.0, p.ttft_s - p.prefill_s);

  const size_t together =
      w.max_sequences > 0 ? std::min(w.max_sequences, w.concurrency) : w.concurrency;
  const PassWork step = model.Decode(together, w.prompt + w.output / 2, w.kv_type);
  p.step = PredictPass(model, step, together, speed);
  p.step_s = p.step.total();
  p.decode_tok_s = PerSecond(static_cast<double>(together), p.step_s);
  p.decode_roof_tok_s = PerSecond(static_cast<double>(together), RoofSeconds(step, speed));
  p.decode_compute_binds = ComputeBinds(step, speed);
  p.bytes_per_step = step.bytes;
  p.weight_bytes_per_step = step.bytes - step.kv_bytes;
  p.macs_per_step = step.macs();
  p.prefill_tok_s = PerSecond(static_cast<double>(w.prompt), p.prefill_s);
  p.prefill_roof_tok_s =
      PerSecond(static_cast<double>(w.prompt), PrefillRoofSeconds(model, speed, w));
  return p;
}

Result<MemoryPlan> PlanMemory(const ModelWork& model, const Workload& w, int threads,
                              double room_bytes) {
  const Config& c = model.config();
  constexpr size_t kMostContext = size_t{1} << 30;
  if (w.positions() > kMostContext) {
    return Status(StatusCode::kInvalidArgument,
                  "--ctx-size: expected at most " + std::to_string(kMostContext) +
                      " positions, found " + std::to_string(w.positions()));
  }
  MemoryPlan m;
  m.room_bytes = room_bytes;
  m.weights_bytes = model.WeightBytes();
  const size_t chunk = std::min(w.chunk, w.positions());
  // Reserved and not touched: only its size is wanted.
  ASSIGN_OR_RETURN(
      const std::unique_ptr<Workspace> workspace,
      Workspace::Create(c, chunk, static_cast<size_t>(std::max(1, threads)), w.positions()));
  m.workspace_bytes = static_cast<double>(workspace->bytes());
  const size_t together =
      w.max_sequences > 0 ? std::min(w.max_sequences, w.concurrency) : w.concurrency;
  // Each token of the vocabulary: its text, its entries in the tables, a logit per sequence.
  constexpr double kProgram = 24e6, kPerToken = 170;
  m.program_bytes =
      kProgram + static_cast<double>(c.vocab) * (kPerToken + 4.0 * static_cast<double>(together));
  m.kv_token_bytes = static_cast<double>(KvBytesRead(c, w.kv_type, 1));
  m.kv_sequence_bytes = static_cast<double>(KvPageBytes(KvShapeOf(c, w.kv_type))) *
                        static_cast<double>(KvPagesPerSequence(c, w.positions(), chunk));
  const double rest = m.weights_bytes + m.workspace_bytes + m.program_bytes;
  const double fit = (room_bytes - rest) / m.kv_sequence_bytes;
  m.sequences_fit = fit >= 1 ? static_cast<size_t>(std::min(fit, 1e6)) : 0;
  m.resident_bytes = rest + m.kv_sequence_bytes * static_cast<double>(together);
  return m;
}

}  // namespace sluice
