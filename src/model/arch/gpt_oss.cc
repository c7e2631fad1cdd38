// gpt-oss (OpenAI 2025): a learned sink logit per head, a window on even layers,
// biased experts with a clamped SwiGLU, soft-max over the selected experts.
#include "src/model/architecture.h"
#include "src/model/decoder.h"

namespace sluice {
namespace {

void ReadConfig(ConfigReader& r, Config* c) {
  c->gate = Gate::kClampedSwiGlu;
  c->rope.truncate_ramp = false;
  ReadDecoderConfig(r, c);
  ReadExperts(r, c);
  c->moe.routing = Routing::kSoftmaxSelected;
  ReadWindow(r, c, [](size_t layer) { return layer % 2 == 0; });
}

void Bind(Binder& b, const Config& c, Weights* w) {
  BindDecoder(b, c, {.ffn_norm = "post_attention_norm"}, w);
}

}  // namespace

extern const Architecture kGptOss{"gpt-oss", ReadConfig, Bind, DecoderForward};

}  // namespace sluice
