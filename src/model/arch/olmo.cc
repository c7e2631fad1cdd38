// OLMo 2 (norms only after attention and MLP) and OLMoE (Muennighoff et al.
// 2024: norms before, chosen experts not renormalised); both norm q and k over
// the whole projection.
#include "src/model/architecture.h"
#include "src/model/decoder.h"

namespace sluice {
namespace {

void ReadOlmo2(ConfigReader& r, Config* c) {
  c->qk_norm = QkNorm::kWholeProjection;
  ReadDecoderConfig(r, c);
}

void ReadOlmoe(ConfigReader& r, Config* c) {
  ReadOlmo2(r, c);
  ReadExperts(r, c);
  c->moe.renormalise = false;
}

void BindOlmo2(Binder& b, const Config& c, Weights* w) {
  BindDecoder(b, c,
              {.attn_norm = nullptr,
               .ffn_norm = nullptr,
               .attn_post_norm = "post_attention_norm",
               .ffn_post_norm = "post_ffw_norm"},
              w);
}

void BindOlmoe(Binder& b, const Config& c, Weights* w) { BindDecoder(b, c, {}, w); }

}  // namespace

extern const Architecture kOlmo2{"olmo2", ReadOlmo2, BindOlmo2, DecoderForward};
extern const Architecture kOlmoe{"olmoe", ReadOlmoe, BindOlmoe, DecoderForward};

}  // namespace sluice
