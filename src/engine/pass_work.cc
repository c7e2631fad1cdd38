#include "src/engine/pass_work.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sluice {
namespace {

// Positions seen by rows at [first, first + rows), summed up; `window` 0: all before.
double SeenPositions(size_t first, size_t rows, size_t window) {
  double seen = 0;
  for (size_t p = first; p < first + rows; ++p) {
    seen += static_cast<double>(window == 0 ? p + 1 : std::min(p + 1, window));
  }
  return seen;
}

}  // namespace

const char* CeilingRemark(double pct, double pass_bytes, uint64_t cache_bytes) {
  constexpr double kMeasuredLowPct = 105;  // less is within what two measurements differ by
  if (pct > 100 && pass_bytes > 0 && pass_bytes <= static_cast<double>(cache_bytes)) {
    return "in cache";
  }
  return pct > kMeasuredLowPct ? "ceiling measured low" : "";
}

KernelMatrix MatrixOf(const Weight& w) {
  return {w.format, w.data, w.panels, w.exact, w.rows, w.k, w.dots_bf16};
}

double PassWork::macs() const {
  return std::accumulate(matrix_macs.begin(), matrix_macs.end(), attention_macs);
}

WorkCounter::WorkCounter(const Model& model, KvType kv_type) : model_(model), kv_type_(kv_type) {
  const Config& c = model.config();
  const double used = static_cast<double>(c.moe.used);
  for (const LayerWeights& layer : model.weights().layers) {
    ForEachMatrix(
        layer,
        [&](const Weight& w) {
          AddMatrix(w, static_cast<double>(w.experts));
          dense_bytes_ += static_cast<double>(w.bytes());
        },
        [&](const Weight& w) {
          AddMatrix(w, used);
          expert_bytes_ += static_cast<double>(w.bytes());
        });
  }
  const Weight& out = model.weights().output;
  KernelOf(out).output_macs += static_cast<double>(out.rows * out.k);
  output_bytes_ = static_cast<double>(out.bytes());
  for (size_t i = 0; i < c.layers; ++i) windowed_layers_ += c.Windowed(i);
}

WorkCounter::Kernel& WorkCounter::KernelOf(const Weight& w) {
  const auto same = [&](const Kernel& k) {
    return k.largest.format == w.format && k.largest.panels == w.panels &&
           k.largest.exact == w.exact;
  };
  auto found = std::find_if(kernels_.begin(), kernels_.end(), same);
  if (found == kernels_.end()) {
    kernels_.push_back({MatrixOf(w)});
    return kernels_.back();
  }
  if (w.rows * w.k > found->largest.rows * found->largest.k) found->largest = MatrixOf(w);
  return *found;
}

void WorkCounter::AddMatrix(const Weight& w, double used) {
  KernelOf(w).macs += used * static_cast<double>(w.rows * w.k);
}

double WorkCounter::AttentionMacs(const BatchSegment& s) const {
  const Config& c = model_.config();
  const auto first = static_cast<size_t>(s.first_position);
  const double per_position = static_cast<double>(c.heads * (c.key_dim + c.value_dim));
  const double full = static_cast<double>(c.layers - windowed_layers_);
  double seen = full * SeenPositions(first, s.rows, 0);
  if (windowed_layers_ > 0) {
    seen += static_cast<double>(windowed_layers_) * SeenPositions(first, s.rows, c.window);
  }
  return per_position * seen;
}

void WorkCounter::Add(const Batch& batch, PassWork* work) const {
  const MoeConfig& moe = model_.config().moe;
  const auto rows = static_cast<double>(batch.rows());
  const auto logit_rows = static_cast<double>(batch.logit_rows.size());
  work->matrix_macs.resize(kernels_.size());
  for (size_t i = 0; i < kernels_.size(); ++i) {
    work->matrix_macs[i] += rows * kernels_[i].macs + logit_rows * kernels_[i].output_macs;
  }
  work->bytes += dense_bytes_;
  if (moe.experts > 0) {
    const double skipped = 1 - static_cast<double>(moe.used) / static_cast<double>(moe.experts);
    work->bytes += expert_bytes_ * (1 - std::pow(skipped, rows));
  }
  if (logit_rows > 0) work->bytes += output_bytes_;
  for (const BatchSegment& s : batch.segments) {
    const size_t length = static_cast<size_t>(s.first_position) + s.rows;
    const auto kv_bytes = static_cast<double>(model_.KvBytesPerToken(kv_type_, length));
    work->bytes += kv_bytes;
    work->kv_bytes += kv_bytes;
    work->attention_macs += AttentionMacs(s);
  }
}

Result<ComputeRates> WorkCounter::MeasureRates(ThreadTeam& team, int threads, size_t tokens,
                                               double seconds) const {
  ComputeRates rates;
  for (const Kernel& k : kernels_) {
    ASSIGN_OR_RETURN(const double rate,
                     MeasureMatMulRate(team, threads, k.largest, tokens, seconds));
    rates.matrix.push_back(rate);
  }
  ASSIGN_OR_RETURN(
      rates.attention,
      MeasureAttentionRate(team, threads, KvShapeOf(model_.config(), kv_type_), seconds));
  return rates;
}

double ComputeSeconds(const PassWork& work, const ComputeRates& rates) {
  double seconds = 1e-9 * work.attention_macs / rates.attention;
  for (size_t i = 0; i < work.matrix_macs.size(); ++i) {
    seconds += 1e-9 * work.matrix_macs[i] / rates.matrix[i];
  }
  return seconds;
}

}  // namespace sluice
