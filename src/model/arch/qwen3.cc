// Qwen 3 (Yang et al. 2025): RMS norm of each query and key head before rope,
// no biases; the MoE renormalises the weights of the chosen experts.
#include "src/model/architecture.h"
#include "src/model/decoder.h"

namespace sluice {
namespace {

void ReadConfig(ConfigReader& r, Config* c) {
  c->qk_norm = QkNorm::kPerHead;
  ReadDecoderConfig(r, c);
  ReadExperts(r, c);
}

void Bind(Binder& b, const Config& c, Weights* w) { BindDecoder(b, c, {}, w); }

}  // namespace

extern const Architecture kQwen3{"qwen3", ReadConfig, Bind, DecoderForward};
extern const Architecture kQwen3Moe{"qwen3moe", ReadConfig, Bind, DecoderForward};

}  // namespace sluice
