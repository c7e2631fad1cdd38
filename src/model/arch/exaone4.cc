// EXAONE 4 (LG AI Research 2025): norms only after attention and MLP, q and k
// normed per head. The 32B kind has a window: three local layers to one global,
// the global ones without rope.
#include "src/model/architecture.h"
#include "src/model/decoder.h"

namespace sluice {
namespace {

void ReadConfig(ConfigReader& r, Config* c) {
  c->qk_norm = QkNorm::kPerHead;
  ReadDecoderConfig(r, c);
  ReadWindow(r, c, [](size_t layer) { return layer % 4 != 3; });
  if (c->window == 0) return;
  for (size_t i = 3; i < c->no_rope.size(); i += 4) c->no_rope[i] = 1;
}

void Bind(Binder& b, const Config& c, Weights* w) {
  BindDecoder(b, c,
              {.attn_norm = nullptr,
               .ffn_norm = nullptr,
               .attn_post_norm = "post_attention_norm",
               .ffn_post_norm = "post_ffw_norm"},
              w);
}

}  // namespace

extern const Architecture kExaone4{"exaone4", ReadConfig, Bind, DecoderForward};

}  // namespace sluice
