#include "src/engine/pass_work.h"

namespace sluice {

const char* CeilingRemark(double pct, double pass_bytes, uint64_t cache_bytes) {
  constexpr double kMeasuredLowPct = 105;  // less is within what two measurements differ by
  if (pct > kMeasuredLowPct) return "ceiling measured low";
  return pct > 0 && pass_bytes > 0 && pass_bytes <= static_cast<double>(cache_bytes) ? "in cache"
                                                                                     : "";
}

KernelMatrix MatrixOf(const Weight& w) {
  return {w.format, w.data, w.panels, w.exact, w.rows, w.k, w.dots_bf16};
}

WorkCounter::WorkCounter(const Model& model, KvType kv_type)
    : counted_(model.config(), model.weights()), kv_shape_(KvShapeOf(model.config(), kv_type)) {
  largest_.resize(counted_.kernels().size());
  const auto look = [&](const Weight& w) {
    KernelMatrix& largest = largest_[counted_.KernelOf(w)];
    if (w.rows * w.k > largest.rows * largest.k) largest = MatrixOf(w);
  };
  for (const LayerWeights& layer : model.weights().layers) ForEachMatrix(layer, look, look);
  look(model.weights().output);
}

void WorkCounter::Add(const Batch& batch, PassWork* work) const {
  thread_local std::vector<RowRange> ranges;  // asked for with every token: no memory of its own
  ranges.clear();
  for (const BatchSegment& s : batch.segments) {
    ranges.push_back({static_cast<size_t>(s.first_position), s.rows});
  }
  counted_.Add(ranges, batch.logit_rows.size(), kv_shape_.type, work);
}

Result<ComputeRates> WorkCounter::MeasureRates(ThreadTeam& team, int threads, size_t tokens) const {
  constexpr double kSeconds = 0.12;
  ComputeRates rates;
  for (const KernelMatrix& matrix : largest_) {
    ASSIGN_OR_RETURN(const double rate, MeasureMatMulRate(team, threads, matrix, tokens, kSeconds));
    rates.matrix.push_back(rate);
  }
  ASSIGN_OR_RETURN(rates.attention, MeasureAttentionRate(team, threads, kv_shape_, kSeconds));
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
