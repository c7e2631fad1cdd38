// What a model is, as numbers: read once from GGUF metadata by its
// architecture's read_config, checked there, never changed. Everything a
// decoder can vary on that two architectures share is a field here; what only
// one uses lives in that architecture's file.
#ifndef SLUICE_SRC_MODEL_CONFIG_H_
#define SLUICE_SRC_MODEL_CONFIG_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/model/pooling.h"

namespace sluice {

enum class NormKind : uint8_t { kRms, kLayer };
enum class RopeStyle : uint8_t {
  kNone,
  kAdjacent,  // pairs (2i, 2i + 1)
  kHalves,    // pairs (i, i + dims / 2)
};
enum class RopeScaling : uint8_t { kNone, kLinear, kYarn };
enum class Gate : uint8_t { kSilu, kGeluTanh, kGeluErf, kRelu, kClampedSwiGlu };
enum class QkNorm : uint8_t { kNone, kPerHead, kWholeProjection };
enum class Routing : uint8_t {
  kSoftmax,          // over all experts, then the top k
  kSoftmaxSelected,  // over the selected logits only
  kSigmoid,          // scores, plus a bias for the selection only
};

struct RopeConfig {
  RopeStyle style = RopeStyle::kHalves;
  size_t dims = 0;  // rotated values per head, even, <= key_dim
  float base = 10000;
  float base_window = 0;  // of sliding-window layers; 0: same as base
  RopeScaling scaling = RopeScaling::kNone;
  bool scale_window = true;  // false: scaling is for full layers only (Gemma 3)
  float factor = 1;
  size_t original_context = 0;  // before scaling (YaRN, LongRoPE)
  float beta_fast = 32, beta_slow = 1;
  bool truncate_ramp = true;   // YaRN bounds floored and ceiled
  float attention_factor = 1;  // multiplies cos and sin
};

constexpr size_t kMaxExpertGroups = 256;

struct MoeConfig {
  size_t experts = 0;  // 0: dense
  size_t used = 0;
  size_t ffn_dim = 0;         // per expert
  size_t shared_ffn_dim = 0;  // all shared experts together; 0: none
  size_t dense_layers = 0;    // leading layers with a plain MLP
  Routing routing = Routing::kSoftmax;
  bool renormalise = true;  // selected weights sum to 1
  float weights_scale = 1;
  size_t groups = 1, groups_used = 1;  // selection limited to the best groups
};

// Multi-head latent attention (DeepSeek): sizes of the compressed projections.
struct LatentConfig {
  size_t q_rank = 0;  // 0: q is projected directly
  size_t kv_rank = 0;
  size_t nope_dim = 0;  // per head, not rotated
  size_t rope_dim = 0;  // per head, rotated; one key shared by all heads
  size_t head_value_dim = 0;
};

struct Config {
  std::string architecture;
  std::string name;

  size_t layers = 0, dim = 0, ffn_dim = 0, vocab = 0;
  size_t heads = 0, kv_heads = 0;
  size_t key_dim = 0, value_dim = 0;  // per kv head, as stored in the KV cache
  size_t context = 0;                 // trained context length

  NormKind norm = NormKind::kRms;
  float norm_eps = 1e-5f;
  QkNorm qk_norm = QkNorm::kNone;
  bool parallel_residual = false;  // x + attention(norm x) + mlp(norm' x)
  bool gated_mlp = true;           // gate and up; otherwise one matrix and the activation
  Gate gate = Gate::kSilu;

  float embedding_scale = 1;
  float residual_scale = 1;
  float attention_scale = 0;  // scores = scale * q.k; set by read_config
  float attention_soft_cap = 0, logit_soft_cap = 0;
  float logit_scale = 1;             // multiplies the logits
  Pooling pooling = Pooling::kLast;  // of embeddings, where nobody asks for another

  size_t window = 0;              // positions a sliding-window layer sees, itself included; 0: none
  std::vector<uint8_t> windowed;  // [layers] 1: sliding-window layer
  std::vector<uint8_t> no_rope;   // [layers] 1: positions are not rotated
  RopeConfig rope;
  MoeConfig moe;
  LatentConfig latent;

  bool Windowed(size_t layer) const { return window > 0 && windowed[layer]; }
  bool Sparse(size_t layer) const { return moe.experts > 0 && layer >= moe.dense_layers; }
  size_t q_dim() const { return heads * key_dim; }
  size_t k_dim() const { return kv_heads * key_dim; }
  size_t v_dim() const { return kv_heads * value_dim; }
};

}  // namespace sluice
#endif  // SLUICE_SRC_MODEL_CONFIG_H_
