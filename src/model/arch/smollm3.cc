// SmolLM3 (Hugging Face 2025): Llama's shape, every fourth layer without rope.
#include "src/model/architecture.h"
#include "src/model/decoder.h"

namespace sluice {
namespace {

void ReadConfig(ConfigReader& r, Config* c) {
  c->rope.style = RopeStyle::kAdjacent;
  ReadDecoderConfig(r, c);
  for (size_t i = 3; i < c->no_rope.size(); i += 4) c->no_rope[i] = 1;
}

void Bind(Binder& b, const Config& c, Weights* w) { BindDecoder(b, c, {}, w); }

}  // namespace

extern const Architecture kSmolLm3{"smollm3", ReadConfig, Bind, DecoderForward};

}  // namespace sluice
