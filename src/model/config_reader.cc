#include "src/model/config_reader.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace sluice {

namespace {

// Bounds that no model we know comes near; they keep sums of sizes far from overflow.
constexpr size_t kMostLayers = 1024, kMostHeads = 4096, kMostExperts = 4096;
constexpr size_t kMostDim = size_t{1} << 20, kMostHeadDim = 4096;
constexpr size_t kMostContext = size_t{1} << 30, kMostVocab = size_t{1} << 24;

std::string Number(double v) {
  std::string s = std::to_string(v);
  s.erase(s.find_last_not_of('0') + 1);
  if (s.back() == '.') s.pop_back();
  return s;
}

}  // namespace

ConfigReader::ConfigReader(const Gguf& gguf) : gguf_(gguf) {
  Result<std::optional<std::string_view>> arch = gguf.String("general.architecture");
  if (!arch.ok()) {
    status_ = arch.status();
  } else if (!*arch || (*arch)->empty()) {
    Fail(StatusCode::kCorrupt, "metadata key general.architecture is missing");
  } else {
    architecture_ = std::string(**arch);
  }
}

void ConfigReader::Fail(StatusCode code, std::string message) {
  if (status_.ok()) status_ = Status(code, std::move(message));
}

bool ConfigReader::Has(std::string_view key) const { return gguf_.Find(Key(key)) != nullptr; }

size_t ConfigReader::Count(std::string_view key, size_t least, size_t most) {
  if (!Has(key)) Fail(StatusCode::kCorrupt, "metadata key " + Key(key) + " is missing");
  return CountOr(key, least, least, most);
}

size_t ConfigReader::CountOr(std::string_view key, size_t fallback, size_t least, size_t most) {
  Result<std::optional<uint64_t>> value = gguf_.U64(Key(key));
  if (!value.ok()) {
    if (status_.ok()) status_ = value.status();
    return fallback;
  }
  if (!*value) return fallback;
  if (**value < least || **value > most) {
    Fail(StatusCode::kCorrupt, "metadata key " + Key(key) + ": expected " + std::to_string(least) +
                                   " to " + std::to_string(most) + ", found " +
                                   std::to_string(**value));
    return fallback;
  }
  return static_cast<size_t>(**value);
}

float ConfigReader::FloatOr(std::string_view key, float fallback) {
  Result<std::optional<double>> value = gguf_.F64(Key(key));
  if (!value.ok()) {
    if (status_.ok()) status_ = value.status();
    return fallback;
  }
  if (!*value) return fallback;
  const float f = static_cast<float>(**value);
  if (!std::isfinite(f)) {
    Fail(StatusCode::kCorrupt, "metadata key " + Key(key) + ": expected a finite number");
    return fallback;
  }
  return f;
}

float ConfigReader::PositiveOr(std::string_view key, float fallback) {
  const float f = FloatOr(key, fallback);
  if (f <= 0) {
    Fail(StatusCode::kCorrupt,
         "metadata key " + Key(key) + ": expected a number above 0, found " + Number(f));
  }
  return f;
}

float ConfigReader::Positive(std::string_view key) {
  if (!Has(key)) Fail(StatusCode::kCorrupt, "metadata key " + Key(key) + " is missing");
  return PositiveOr(key, 1);
}

bool ConfigReader::IsEncoder() const {
  const Result<std::optional<bool>> causal = gguf_.Bool(Key("attention.causal"));
  return causal.ok() && !causal->value_or(true);
}

bool ConfigReader::BoolOr(std::string_view key, bool fallback) {
  Result<std::optional<bool>> value = gguf_.Bool(Key(key));
  if (!value.ok()) {
    if (status_.ok()) status_ = value.status();
    return fallback;
  }
  return value->value_or(fallback);
}

std::string ConfigReader::StringOr(std::string_view key, std::string fallback) {
  Result<std::optional<std::string_view>> value = gguf_.String(Key(key));
  if (!value.ok()) {
    if (status_.ok()) status_ = value.status();
    return fallback;
  }
  return *value ? std::string(**value) : fallback;
}

namespace {

void ReadRopeScaling(ConfigReader& r, Config* c) {
  RopeConfig& rope = c->rope;
  const std::string type =
      r.StringOr("rope.scaling.type", r.Has("rope.scale_linear") ? "linear" : "none");
  rope.original_context =
      r.CountOr("rope.scaling.original_context_length", c->context, 1, kMostContext);
  rope.attention_factor = r.PositiveOr("rope.scaling.attn_factor", 1);
  rope.factor = r.PositiveOr("rope.scaling.factor", r.PositiveOr("rope.scale_linear", 1));
  if (type == "linear") {
    rope.scaling = RopeScaling::kLinear;
  } else if (type == "yarn") {
    rope.scaling = RopeScaling::kYarn;
    rope.beta_fast = r.PositiveOr("rope.scaling.yarn_beta_fast", 32);
    rope.beta_slow = r.PositiveOr("rope.scaling.yarn_beta_slow", 1);
    if (rope.factor > 1) rope.attention_factor *= 0.1f * std::log(rope.factor) + 1;
  } else if (type != "none" && type != "longrope") {  // LongRoPE is its factor tensors
    r.Fail(StatusCode::kUnsupported, "metadata key " + c->architecture +
                                         ".rope.scaling.type: expected none, linear, yarn or "
                                         "longrope, found " +
                                         type);
  }
}

}  // namespace

void ReadDecoderConfig(ConfigReader& r, Config* c) {
  c->architecture = r.architecture();
  if (auto name = r.gguf().String("general.name"); name.ok() && *name) c->name = **name;
  c->layers = r.Count("block_count", 1, kMostLayers);
  c->dim = r.Count("embedding_length", 1, kMostDim);
  c->ffn_dim = r.Count("feed_forward_length", 1, kMostDim);
  c->context = r.Count("context_length", 1, kMostContext);
  c->heads = r.Count("attention.head_count", 1, kMostHeads);
  c->kv_heads = r.CountOr("attention.head_count_kv", c->heads, 1, kMostHeads);
  if (c->heads % c->kv_heads != 0) {
    r.Fail(StatusCode::kCorrupt, "the " + std::to_string(c->heads) +
                                     " query heads are no multiple of the " +
                                     std::to_string(c->kv_heads) + " kv heads");
  }
  if (!r.Has("attention.key_length") && c->dim % c->heads != 0) {
    r.Fail(StatusCode::kCorrupt, "the width " + std::to_string(c->dim) + " is no multiple of the " +
                                     std::to_string(c->heads) + " heads");
  }
  c->key_dim = r.CountOr("attention.key_length", c->dim / c->heads, 1, kMostHeadDim);
  c->value_dim = r.CountOr("attention.value_length", c->key_dim, 1, kMostHeadDim);
  if (c->key_dim % 8 != 0 || c->value_dim % 8 != 0) {
    r.Fail(StatusCode::kUnsupported, "head sizes are multiples of 8 here; this model's keys have " +
                                         std::to_string(c->key_dim) + " and its values " +
                                         std::to_string(c->value_dim));
  }
  c->norm_eps = r.Positive(c->norm == NormKind::kRms ? "attention.layer_norm_rms_epsilon"
                                                     : "attention.layer_norm_epsilon");
  c->attention_scale = 1 / std::sqrt(static_cast<float>(c->key_dim));
  c->pooling = static_cast<Pooling>(r.CountOr("pooling_type", static_cast<size_t>(Pooling::kLast),
                                              0, static_cast<size_t>(Pooling::kRank)));
  if (r.IsEncoder()) {
    r.Fail(StatusCode::kUnsupported, "metadata key " + c->architecture +
                                         ".attention.causal: expected true, found false; this is "
                                         "an encoder, and only decoders run here");
  }

  c->windowed.assign(c->layers, 0);
  c->no_rope.assign(c->layers, 0);
  if (c->rope.style != RopeStyle::kNone) {
    c->rope.dims = r.CountOr("rope.dimension_count", c->key_dim, 2, c->key_dim);
    if (c->rope.dims % 2 != 0) {
      r.Fail(StatusCode::kCorrupt, "metadata key " + c->architecture +
                                       ".rope.dimension_count: expected an even number, found " +
                                       std::to_string(c->rope.dims));
    }
    c->rope.base = r.PositiveOr("rope.freq_base", 10000);
    ReadRopeScaling(r, c);
  }

  const GgufTensor* embedding = r.gguf().FindTensor("token_embd.weight");
  if (!embedding) {
    r.Fail(StatusCode::kCorrupt, "tensor token_embd.weight is missing");
  } else if (embedding->shape[1] < 1 || embedding->shape[1] > kMostVocab) {
    r.Fail(StatusCode::kCorrupt, "tensor token_embd.weight: expected 1 to " +
                                     std::to_string(kMostVocab) + " rows, found " +
                                     std::to_string(embedding->shape[1]));
  } else {
    c->vocab = embedding->shape[1];
  }
}

void ReadExperts(ConfigReader& r, Config* c) {
  MoeConfig& moe = c->moe;
  moe.experts = r.CountOr("expert_count", 0, 0, kMostExperts);
  if (moe.experts == 0) return;
  moe.used = r.Count("expert_used_count", 1, moe.experts);
  moe.ffn_dim = r.CountOr("expert_feed_forward_length", c->ffn_dim, 1, kMostDim);
  moe.dense_layers = r.CountOr("leading_dense_block_count", 0, 0, c->layers);
  moe.weights_scale = r.PositiveOr("expert_weights_scale", 1);
  moe.groups = r.CountOr("expert_group_count", 1, 1, kMaxExpertGroups);
  moe.groups_used = r.CountOr("expert_group_used_count", moe.groups, 1, moe.groups);
  if (moe.experts % moe.groups != 0) {
    r.Fail(StatusCode::kCorrupt, "the " + std::to_string(moe.experts) +
                                     " experts are no multiple of the " +
                                     std::to_string(moe.groups) + " groups");
  } else if (moe.used > moe.experts / moe.groups * moe.groups_used) {
    r.Fail(StatusCode::kCorrupt, std::to_string(moe.used) + " experts per token do not fit in " +
                                     std::to_string(moe.groups_used) + " groups of " +
                                     std::to_string(moe.experts / moe.groups));
  }
  const size_t shared = r.CountOr("expert_shared_count", 0, 0, kMostExperts);
  moe.shared_ffn_dim = r.CountOr("expert_shared_feed_forward_length",
                                 std::min(shared * moe.ffn_dim, kMostDim), 0, kMostDim);
}

}  // namespace sluice
