// Seed-OSS (ByteDance 2025): Llama's shape with biases on q, k, v and rotated
// halves; the file calls the norm before the MLP post_attention_norm.
#include "src/model/architecture.h"
#include "src/model/decoder.h"

namespace sluice {
namespace {

void ReadConfig(ConfigReader& r, Config* c) { ReadDecoderConfig(r, c); }

void Bind(Binder& b, const Config& c, Weights* w) {
  BindDecoder(b, c, {.ffn_norm = "post_attention_norm"}, w);
}

}  // namespace

extern const Architecture kSeedOss{"seed_oss", ReadConfig, Bind, DecoderForward};

}  // namespace sluice
