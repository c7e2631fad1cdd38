// GPT-NeoX and Pythia (Black et al. 2022; Biderman et al. 2023): fused qkv, part
// of each head rotated, attention and MLP in parallel from two norms, exact GELU.
#include "src/model/architecture.h"
#include "src/model/decoder.h"

namespace sluice {
namespace {

void ReadConfig(ConfigReader& r, Config* c) {
  c->norm = NormKind::kLayer;
  c->gated_mlp = false;
  c->gate = Gate::kGeluErf;
  ReadDecoderConfig(r, c);
  c->parallel_residual = r.BoolOr("use_parallel_residual", true);
}

void Bind(Binder& b, const Config& c, Weights* w) { BindDecoder(b, c, {}, w); }

}  // namespace

extern const Architecture kGptNeoX{"gptneox", ReadConfig, Bind, DecoderForward};

}  // namespace sluice
