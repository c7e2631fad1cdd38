#include "src/model/model.h"

#include <algorithm>

#include "src/base/printable.h"
#include "src/model/ops.h"

namespace sluice {

namespace {

Result<const Architecture*> ArchitectureOf(const ConfigReader& reader) {
  RETURN_IF_ERROR(reader.status());
  const Architecture* a = FindArchitecture(reader.architecture());
  if (!a) {
    std::string known;
    for (const Architecture* k : Architectures())
      known += (known.empty() ? "" : " ") + std::string(k->name);
    const char* const why =
        reader.IsEncoder() ? " is an encoder, and only decoders run here" : " is not supported";
    return Status(StatusCode::kUnsupported, "architecture " + Printable(reader.architecture()) +
                                                why + "; supported are " + known);
  }
  return a;
}

}  // namespace

Result<Config> ReadConfig(const Gguf& gguf) {
  ConfigReader reader(gguf);
  ASSIGN_OR_RETURN(const Architecture* a, ArchitectureOf(reader));
  Config config;
  a->read_config(reader, &config);
  RETURN_IF_ERROR(reader.status());
  return config;
}

Result<std::unique_ptr<Model>> Model::Load(std::unique_ptr<Gguf> gguf, LoadMode mode,
                                           Activations activations, ThreadTeam& team,
                                           const LoadProgress& progress,
                                           const Placement& placement) {
  std::unique_ptr<Model> m(new Model(std::move(gguf), activations));
  ConfigReader reader(*m->gguf_);
  ASSIGN_OR_RETURN(m->architecture_, ArchitectureOf(reader));
  m->architecture_->read_config(reader, &m->config_);
  RETURN_IF_ERROR(reader.status());

  auto bind = [&]() -> Status {
    m->weights_ = Weights();
    Binder binder(*m->gguf_, m->store_);
    m->architecture_->bind(binder, m->config_, &m->weights_);
    return binder.status();
  };
  RETURN_IF_ERROR(bind());  // checks shapes, collects the matrices
  RETURN_IF_ERROR(m->store_.Fill(mode, placement, team, progress));
  RETURN_IF_ERROR(bind());  // hands out where they lie
  m->CountBytes();
  return m;
}

void Model::Forward(ThreadTeam& team, int threads, Workspace& ws, const Batch& batch,
                    const LogitsOut& out, float* hidden) const {
  CHECK(batch.rows() > 0 && batch.rows() <= ws.max_rows);
  CHECK(batch.hidden_rows.empty() || hidden != nullptr);
  ws.logit_rows = batch.logit_rows.size();
  team.Run(
      [&](Worker& worker) {
        Pass pass(config_, weights_, batch, ws, worker);
        architecture_->forward(pass);
        if (!batch.hidden_rows.empty()) WriteHiddenRows(pass, hidden);
        if (batch.logit_rows.empty()) return;
        const Input in = GatherLogitRows(pass, Reads(weights_.output), out.values == nullptr);
        if (out.values) OutputLogits(config_, worker, ws, weights_.output, in, out);
      },
      threads);
}

void Model::Logits(ThreadTeam& team, int threads, const Workspace& ws, size_t first, size_t count,
                   const LogitsOut& out) const {
  CHECK(first + count <= ws.logit_rows);
  const Input in = ws.shared.norm_in.View(ws.logit_rows, config_.dim).Rows(first, count);
  team.Run([&](Worker& worker) { OutputLogits(config_, worker, ws, weights_.output, in, out); },
           threads);
}

bool Model::UsesLongRope(size_t positions) const {
  return weights_.rope.full_long != weights_.rope.full && positions > config_.rope.original_context;
}

void Model::CountBytes() {
  uint64_t bytes = weights_.output.bytes();
  for (const LayerWeights& layer : weights_.layers) {
    ForEachMatrix(
        layer, [&](const Weight& w) { bytes += w.bytes(); },
        [&](const Weight& w) { bytes += w.expert_bytes * config_.moe.used; });
  }
  bytes += weights_.embedding.format->RowBytes(config_.dim);
  weight_bytes_per_token_ = bytes;
}

uint64_t Model::KvBytesPerToken(KvType type, size_t position) const {
  return KvBytesRead(config_, type, position);
}

}  // namespace sluice
