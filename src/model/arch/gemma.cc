// Gemma 1, 2 and 3 (Gemma Team 2024, 2025): GeGLU, embeddings times sqrt(dim),
// tied output; norm weights in the file already contain the +1. Gemma 2 adds
// norms after each block, soft caps, a window on every other layer; Gemma 3
// replaces the caps by q/k norms and has one global layer in six, the local
// ones with a rope base of their own and no scaling.
#include <cmath>

#include "src/model/architecture.h"
#include "src/model/decoder.h"

namespace sluice {
namespace {

void ReadGemma(ConfigReader& r, Config* c) {
  c->gate = Gate::kGeluTanh;
  ReadDecoderConfig(r, c);
  c->embedding_scale = std::sqrt(static_cast<float>(c->dim));
}

// The 27B models scale scores by the width per head instead of the key length; only their depth
// tells.
void ScaleByWidth(size_t layers_of_27b, Config* c) {
  if (c->layers != layers_of_27b) return;
  c->attention_scale = 1 / std::sqrt(static_cast<float>(c->dim) / static_cast<float>(c->heads));
}

void ReadGemma2(ConfigReader& r, Config* c) {
  ReadGemma(r, c);
  ScaleByWidth(46, c);
  c->attention_soft_cap = r.PositiveOr("attn_logit_softcapping", 50);
  c->logit_soft_cap = r.PositiveOr("final_logit_softcapping", 30);
  ReadWindow(r, c, [](size_t layer) { return layer % 2 == 0; });
}

void ReadGemma3(ConfigReader& r, Config* c) {
  c->qk_norm = QkNorm::kPerHead;
  ReadGemma(r, c);
  ScaleByWidth(62, c);
  c->rope.base_window = r.PositiveOr("rope.freq_base_swa", 10000);
  c->rope.scale_window = false;
  if (r.Has("final_logit_softcapping")) {
    c->logit_soft_cap = r.PositiveOr("final_logit_softcapping", 30);
  }
  ReadWindow(r, c, [](size_t layer) { return layer % 6 != 5; });
}

void BindGemma(Binder& b, const Config& c, Weights* w) { BindDecoder(b, c, {}, w); }

void BindPostNorms(Binder& b, const Config& c, Weights* w) {
  BindDecoder(b, c, {.attn_post_norm = "post_attention_norm", .ffn_post_norm = "post_ffw_norm"}, w);
}

}  // namespace

extern const Architecture kGemma{"gemma", ReadGemma, BindGemma, DecoderForward};
extern const Architecture kGemma2{"gemma2", ReadGemma2, BindPostNorms, DecoderForward};
extern const Architecture kGemma3{"gemma3", ReadGemma3, BindPostNorms, DecoderForward};

}  // namespace sluice
