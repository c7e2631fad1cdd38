// StableLM 2 (Bellagente et al. 2024): LayerNorm with bias, part of each head
// rotated, biases on q, k, v, SwiGLU; the 12B kind runs attention and MLP in
// parallel from one norm and norms each head with weights of its own.
#include "src/model/architecture.h"
#include "src/model/decoder.h"

namespace sluice {
namespace {

void ReadConfig(ConfigReader& r, Config* c) {
  c->norm = NormKind::kLayer;
  ReadDecoderConfig(r, c);
  // The layout says it plainly: with one norm per layer, both branches read it.
  c->parallel_residual = !r.gguf().FindTensor("blk.0.ffn_norm.weight");
  if (r.gguf().FindTensor("blk.0.attn_q_norm.weight")) {
    r.Fail(StatusCode::kUnsupported,
           "tensor blk.0.attn_q_norm.weight: StableLM's per-head norms are not supported");
  }
}

void Bind(Binder& b, const Config& c, Weights* w) {
  DecoderNames names;
  if (c.parallel_residual) names.ffn_norm = nullptr;
  BindDecoder(b, c, names, w);
}

}  // namespace

extern const Architecture kStableLm{"stablelm", ReadConfig, Bind, DecoderForward};

}  // namespace sluice
