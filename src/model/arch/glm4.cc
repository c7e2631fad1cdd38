// GLM-4 0414 (norms before and after, part of each head rotated in adjacent
// pairs, fused gate/up) and the GLM-4.5 mixture (sigmoid routing with a
// selection bias, leading dense layers, a shared expert).
#include "src/model/architecture.h"
#include "src/model/decoder.h"

namespace sluice {
namespace {

void ReadGlm4(ConfigReader& r, Config* c) {
  c->rope.style = RopeStyle::kAdjacent;
  ReadDecoderConfig(r, c);
}

void ReadGlm4Moe(ConfigReader& r, Config* c) {
  // The larger models norm q and k heads, the smaller (Air) do not; only the tensors tell.
  if (r.gguf().FindTensor("blk.0.attn_q_norm.weight")) c->qk_norm = QkNorm::kPerHead;
  ReadDecoderConfig(r, c);
  ReadExperts(r, c);
  c->moe.routing = Routing::kSigmoid;
  c->moe.renormalise = r.BoolOr("expert_weights_norm", true);
  // Layers of the multi-token-prediction head stand last and are not run.
  c->layers -= r.CountOr("nextn_predict_layers", 0, 0, c->layers - 1);
}

void BindGlm4(Binder& b, const Config& c, Weights* w) {
  BindDecoder(b, c, {.attn_post_norm = "post_attention_norm", .ffn_post_norm = "post_ffw_norm"}, w);
}

void BindGlm4Moe(Binder& b, const Config& c, Weights* w) {
  BindDecoder(b, c, {.ffn_norm = "post_attention_norm"}, w);
}

}  // namespace

extern const Architecture kGlm4{"glm4", ReadGlm4, BindGlm4, DecoderForward};
extern const Architecture kGlm4Moe{"glm4moe", ReadGlm4Moe, BindGlm4Moe, DecoderForward};

}  // namespace sluice
