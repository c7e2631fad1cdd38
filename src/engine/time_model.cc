#include "src/engine/time_model.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <utility>

namespace sluice {
namespace {

// Positions seen by rows at [first, first + rows), summed up; `window` 0: all before.
double SeenPositions(RowRange range, size_t window) {
  // Row p sees p + 1 positions until the window is full.
  const auto sum_to = [](double n) { return n * (n + 1) / 2; };
  const size_t end = range.first + range.rows;
  const size_t full_from = window == 0 ? end : std::clamp(window, range.first, end);
  return sum_to(static_cast<double>(full_from)) - sum_to(static_cast<double>(range.first)) +
         static_cast<double>(window * (end - full_from));
}

void AddTo(const std::vector<double>& from, double times, std::vector<double>* to) {
  to->resize(std::max(to->size(), from.size()));
  for (size_t i = 0; i < from.size(); ++i) (*to)[i] += times * from[i];
}

}  // namespace

double PassWork::macs() const {
  return std::accumulate(matrix_macs.begin(), matrix_macs.end(), attention_macs);
}

void PassWork::Add(const PassWork& other, double times) {
  AddTo(other.matrix_macs, times, &matrix_macs);
  AddTo(other.matrix_bytes, times, &matrix_bytes);
  attention_macs += times * other.attention_macs;
  row_attention_macs += times * other.row_attention_macs;
  kv_bytes += times * other.kv_bytes;
  written_bytes += times * other.written_bytes;
  bytes += times * other.bytes;
}

void PassWork::Clear() {
  std::fill(matrix_macs.begin(), matrix_macs.end(), 0.0);
  std::fill(matrix_bytes.begin(), matrix_bytes.end(), 0.0);
  attention_macs = row_attention_macs = kv_bytes = written_bytes = bytes = 0;
}

ModelWork::ModelWork(const Config& config, const Weights& weights) : config_(config) {
  for (const LayerWeights& layer : weights.layers) {
    ForEachMatrix(
        layer,
        [&](const Weight& w) {
          const bool router = &w == &layer.router || &w == &layer.shared_router;
          matrices_.push_back({w, router ? Use::kRouter : Use::kDense});
        },
        [&](const Weight& w) { matrices_.push_back({w, Use::kExpert}); });
    for (const NormWeights& norm :
         {layer.attn_norm, layer.attn_post_norm, layer.ffn_norm, layer.ffn_post_norm}) {
      if (norm) normed_values_ += config.dim;
    }
    if (layer.q_norm) normed_values_ += config.q_dim();
    if (layer.k_norm) normed_values_ += config.k_dim();
  }
  matrices_.push_back({weights.output, Use::kOutput});
  for (Matrix& m : matrices_) {
    m.shape.data = nullptr;  // shapes outlive the memory
    m.shape.bias = nullptr;
  }
  embedding_bytes_ = static_cast<double>(weights.embedding.bytes());
  embedding_row_bytes_ = weights.embedding.format->RowBytes(config.dim);
  for (size_t i = 0; i < config_.layers; ++i) windowed_layers_ += config_.Windowed(i);
  Count();
}

Result<ModelWork> ModelWork::Of(const std::string& path, bool panels) {
  ASSIGN_OR_RETURN(std::unique_ptr<Gguf> gguf, Gguf::Open(path));
  ASSIGN_OR_RETURN(const std::unique_ptr<ThreadTeam> team, ThreadTeam::Create(1));
  // Binds the matrices where they lie in the file, which is only mapped.
  Result<std::unique_ptr<Model>> model = Model::Load(
      std::move(gguf), LoadMode::kGguf, BestActivations(Activations::kInt8, false), *team);
  if (!model.ok()) return model.status().Within(path);
  ModelWork work((*model)->config(), (*model)->weights());
  if (!panels) return work;
  for (Matrix& m : work.matrices_) m.shape.panels = m.shape.format->panel_block_bytes > 0;
  work.Count();
  return work;
}

ModelWork ModelWork::In(const Format& format) const {
  ModelWork other = *this;
  for (Matrix& m : other.matrices_) {
    if (m.use == Use::kRouter || m.shape.k % format.block_values != 0) continue;
    m.shape.format = &format;
    m.shape.panels = format.panel_block_bytes > 0;
    m.shape.dots_bf16 = MultipliesBf16(format);
  }
  other.Count();
  return other;
}

// Of all experts; panels end with rows of zeros.
double ModelWork::BytesOf(const Weight& w) {
  const size_t blocks = w.k / w.format->block_values;
  const size_t one =
      w.panels ? (w.rows + kPanelRows - 1) / kPanelRows * blocks * w.format->panel_block_bytes
               : w.rows * w.format->RowBytes(w.k);
  return static_cast<double>(w.experts) * static_cast<double>(one);
}

size_t ModelWork::KernelOf(const Weight& w) const {
  const auto same = [&](const Kernel& k) {
    return k.format == w.format && k.panels == w.panels && k.exact == w.exact;
  };
  return static_cast<size_t>(std::find_if(kernels_.begin(), kernels_.end(), same) -
                             kernels_.begin());
}

void ModelWork::Count() {
  kernels_.clear();
  for (const Matrix& m : matrices_) {
    const Weight& w = m.shape;
    const size_t index = KernelOf(w);
    if (index == kernels_.size()) {
      kernels_.push_back({w.format, w.panels, w.exact, w.dots_bf16});
      kernels_.back().value_bytes = BytesOf(w) / static_cast<double>(w.experts * w.rows * w.k);
    }
    Kernel& kernel = kernels_[index];
    const double macs = static_cast<double>(w.rows * w.k), bytes = BytesOf(w);
    switch (m.use) {
      case Use::kDense:
      case Use::kRouter:
        kernel.macs += macs * static_cast<double>(w.experts);
        kernel.dense_bytes += bytes;
        break;
      case Use::kExpert:
        kernel.macs += macs * static_cast<double>(config_.moe.used);
        kernel.expert_bytes += bytes;
        break;
      case Use::kOutput:
        kernel.output_macs += macs;
        kernel.output_bytes += bytes;
        break;
    }
  }
}

void ModelWork::Add(std::span<const RowRange> ranges, size_t logit_rows, KvType kv_type,
                    PassWork* work) const {
  double rows = 0;
  for (const RowRange& range : ranges) rows += static_cast<double>(range.rows);
  const auto logits = static_cast<double>(logit_rows);
  double experts_read = 0;  // a share of them
  if (const MoeConfig& moe = config_.moe; moe.experts > 0) {
    const double skipped = 1 - static_cast<double>(moe.used) / static_cast<double>(moe.experts);
    experts_read = 1 - std::pow(skipped, rows);
  }
  work->matrix_macs.resize(kernels_.size());
  work->matrix_bytes.resize(kernels_.size());
  for (size_t i = 0; i < kernels_.size(); ++i) {
    const Kernel& k = kernels_[i];
    work->matrix_macs[i] += rows * k.macs + logits * k.output_macs;
    const double bytes =
        k.dense_bytes + experts_read * k.expert_bytes + (logit_rows > 0 ? k.output_bytes : 0);
    work->matrix_bytes[i] += bytes;
    work->bytes += bytes;
  }
  const double per_position =
      static_cast<double>(config_.heads) * static_cast<double>(config_.key_dim + config_.value_dim);
  const auto windowed = static_cast<double>(windowed_layers_);
  const double full = static_cast<double>(config_.layers) - windowed;
  for (const RowRange& range : ranges) {
    const double read =
        static_cast<double>(KvBytesRead(config_, kv_type, range.first + range.rows));
    work->kv_bytes += read;
    work->bytes += read;
    work->written_bytes += static_cast<double>(range.rows * KvBytesRead(config_, kv_type, 1));
    const double macs = per_position * (full * SeenPositions(range, 0) +
                                        windowed * SeenPositions(range, config_.window));
    work->attention_macs += macs;
    if (range.rows == 1) work->row_attention_macs += macs;
  }
}

PassWork ModelWork::Decode(size_t rows, size_t context, KvType kv_type) const {
  const std::vector<RowRange> ranges(rows, RowRange{context, 1});
  PassWork work;
  Add(ranges, rows, kv_type, &work);
  return work;
}

uint64_t ModelWork::WeightBytesPerToken() const {
  PassWork work;
  const RowRange row;
  Add({&row, 1}, 1, KvType::kF16, &work);
  return embedding_row_bytes_ + static_cast<uint64_t>(std::llround(work.bytes - work.kv_bytes));
}

double ModelWork::WeightBytes() const {
  double bytes = 0;
  for (const Matrix& m : matrices_) bytes += BytesOf(m.shape);
  return bytes;
}

double ModelWork::Parameters() const {
  double values = 0;
  for (const Matrix& m : matrices_) {
    values += static_cast<double>(m.shape.experts * m.shape.rows * m.shape.k);
  }
  return values;
}

size_t ModelWork::Barriers(size_t rows) const {
  const bool shared_rows = rows > kPrivateRows;
  const size_t attention = config_.latent.kv_rank > 0 ? 6 : 3;
  const size_t mlp = config_.moe.experts > 0 ? 3 : 2;
  return config_.layers * (attention + mlp + (shared_rows ? 3 : 0)) + 2;
}

// ---- Time ---------------------------------------------------------------------------------------

double KernelSpeed::GmacsAt(double rows) const {
  if (gmac_s.empty()) return 0;
  if (rows <= gmac_s.front().first) return gmac_s.front().second;
  for (size_t i = 1; i < gmac_s.size(); ++i) {
    const auto& [low, low_rate] = gmac_s[i - 1];
    const auto& [high, high_rate] = gmac_s[i];
    if (rows > high) continue;
    return low_rate + (high_rate - low_rate) * std::log(rows / low) / std::log(high / low);
  }
  return gmac_s.back().second;
}

namespace {

double Over(double amount, double giga_rate) {
  return giga_rate > 0 ? 1e-9 * amount / giga_rate : 0;
}

double ComputeRoof(const PassWork& work, const MachineSpeed& speed) {
  double seconds = Over(work.attention_macs, speed.attention_gmac_s);
  for (size_t i = 0; i < work.matrix_macs.size() && i < speed.kernels.size(); ++i) {
    seconds += Over(work.matrix_macs[i], speed.kernels[i].best_gmac_s);
  }
  return seconds;
}

double BeyondRate(const MachineSpeed& speed) {
  return speed.memory_gb_s > 0 ? speed.memory_gb_s : speed.read_gb_s;
}

// Caches hold a part of a token's weights, but not of the experts and keys of many.
double MemoryRoof(const PassWork& work, const MachineSpeed& speed) {
  const double near = std::min(work.bytes, speed.read_bytes);
  return Over(near, speed.read_gb_s) + Over(work.bytes - near, BeyondRate(speed));
}

}  // namespace

double RoofSeconds(const PassWork& work, const MachineSpeed& speed) {
  return std::max(MemoryRoof(work, speed), ComputeRoof(work, speed));
}
bool ComputeBinds(const PassWork& work, const MachineSpeed& speed) {
  return ComputeRoof(work, speed) > MemoryRoof(work, speed);
}

PassTime PredictPass(const ModelWork& model, const PassWork& work, size_t rows,
                     const MachineSpeed& speed) {
  PassTime time;
  const Config& c = model.config();
  const auto n = static_cast<double>(rows);
  double all_bytes = 0;
  for (const double bytes : work.matrix_bytes) all_bytes += bytes;
  const double near_share = all_bytes > 0 ? std::min(1.0, speed.read_bytes / all_bytes) : 0;
  for (size_t i = 0; i < work.matrix_macs.size() && i < speed.kernels.size(); ++i) {
    const KernelSpeed& kernel = speed.kernels[i];
    const double macs = work.matrix_macs[i], bytes = work.matrix_bytes[i];
    // A weight that is read is multiplied with so many rows, on average.
    const double each = bytes > 0 ? macs * model.kernels()[i].value_bytes / bytes : n;
    const double stream = kernel.stream_gb_s > 0 ? kernel.stream_gb_s : speed.read_gb_s;
    const double seconds =
        std::max(Over(bytes, stream), Over(macs, speed.compute_share * kernel.GmacsAt(each)));
    // These rates are of weights from memory; what caches hold of them comes sooner.
    const double memory_s = Over(bytes, BeyondRate(speed));
    const double read_s = Over(near_share * bytes, speed.read_gb_s) + (1 - near_share) * memory_s;
    const double sooner_s = std::max(0.0, memory_s - read_s);
    time.weights_s += std::max(read_s, seconds - sooner_s);
  }
  const double prompt_macs = work.attention_macs - work.row_attention_macs;
  time.attention_s = Over(prompt_macs, speed.compute_share * speed.attention_gmac_s);
  if (work.row_attention_macs > 0) {
    time.attention_s +=
        std::max(Over(work.row_attention_macs, speed.compute_share * speed.row_attention_gmac_s),
                 Over(work.kv_bytes, BeyondRate(speed)));
  }
  // Norms, the attention's output quantised, rotations and two residual sums: values per row, each
  // about as dear as one normed and quantised. The MLP's activated in its tiles.
  const size_t ffn =
      c.moe.experts > 0 ? c.moe.used * c.moe.ffn_dim + c.moe.shared_ffn_dim : c.ffn_dim;
  const auto layers = static_cast<double>(c.layers);
  const double normed = static_cast<double>(model.normed_values()) +
                        layers * static_cast<double>(2 * c.dim + c.q_dim() + c.k_dim());
  const double gated = layers * static_cast<double>(ffn);
  // Few rows are normed by every thread for itself; tiles are always shared.
  const auto threads = static_cast<double>(speed.threads);
  time.rows_s = 1e-9 * n *
                (speed.row_ns * normed / (rows > kPrivateRows ? threads : 1) +
                 speed.gate_ns * gated / threads);
  time.barriers_s = 1e-6 * speed.barrier_us * static_cast<double>(model.Barriers(rows));
  return time;
}

}  // namespace sluice
