// Phi 2 (LayerNorm with bias, attention and MLP in parallel from one norm, part
// of each head rotated) and Phi 3 (Abdin et al. 2024: fused qkv and gate/up,
// LongRoPE factors chosen by the length of the sequence).
#include "src/model/architecture.h"
#include "src/model/decoder.h"

namespace sluice {
namespace {

void ReadPhi2(ConfigReader& r, Config* c) {
  c->norm = NormKind::kLayer;
  c->parallel_residual = true;
  c->gated_mlp = false;
  c->gate = Gate::kGeluTanh;
  ReadDecoderConfig(r, c);
}

// Phi 3's sliding_window key is 0 or switched off by every engine: full attention.
void ReadPhi3(ConfigReader& r, Config* c) { ReadDecoderConfig(r, c); }

void BindPhi2(Binder& b, const Config& c, Weights* w) {
  BindDecoder(b, c, {.ffn_norm = nullptr}, w);
}

void BindPhi3(Binder& b, const Config& c, Weights* w) { BindDecoder(b, c, {}, w); }

}  // namespace

extern const Architecture kPhi2{"phi2", ReadPhi2, BindPhi2, DecoderForward};
extern const Architecture kPhi3{"phi3", ReadPhi3, BindPhi3, DecoderForward};

}  // namespace sluice
