// Models of a few thousand random weights, written to a GGUF file: a Llama, a
// Gemma 3 with a window of 16, a mixture of experts. Tests change their keys
// and tensors before writing, to make files that lie. Weights come from
// src/base/random.h, so every machine tests the same model.
#ifndef SLUICE_TESTS_MODEL_TINY_MODEL_H_
#define SLUICE_TESTS_MODEL_TINY_MODEL_H_

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "quant/format.h"
#include "src/base/check.h"
#include "src/base/random.h"
#include "src/file/gguf_writer.h"

namespace sluice {

struct TinyShape {
  std::string architecture = "llama";  // or gemma3
  const char* format = "Q8_0";         // of every matrix
  uint32_t layers = 2, dim = 64, heads = 4, kv_heads = 2, head_dim = 32, ffn_dim = 96;
  uint32_t context = 512;
  uint32_t window = 0;  // gemma3
  uint32_t experts = 0, used = 0;
  uint64_t seed = 1;
};

inline TinyShape TinyLlama(const char* format = "Q8_0") {
  TinyShape s;
  s.format = format;
  return s;
}

// Layer 5 of 7 is a full layer, the others see 16 positions.
inline TinyShape TinyGemma3(const char* format = "Q4_0") {
  TinyShape s;
  s.architecture = "gemma3";
  s.format = format;
  s.layers = 7;
  s.kv_heads = 1;
  s.window = 16;
  return s;
}

inline TinyShape TinyMoe(const char* format = "Q8_0") {
  TinyShape s;
  s.format = format;
  s.experts = 8;
  s.used = 2;
  return s;
}

class TinyModel {
 public:
  static constexpr uint32_t kVocab = 320;
  static constexpr int32_t kBos = 1, kEos = 2, kFirstByte = 3;

  struct Tensor {
    uint32_t type_id = 0;
    std::vector<uint64_t> shape;  // shape[0] is k
    std::vector<uint8_t> bytes;
  };

  explicit TinyModel(const TinyShape& shape = {}) : shape_(shape) {
    AddHyperparameters();
    AddVocabulary();
    AddTensors();
  }

  // Keys with a leading '.' belong to the architecture: ".block_count".
  void SetU32(const std::string& key, uint32_t v) {
    keys_[Key(key)] = [v](GgufWriter& w, const std::string& k) { w.AddU32(k, v); };
  }
  void SetF32(const std::string& key, float v) {
    keys_[Key(key)] = [v](GgufWriter& w, const std::string& k) { w.AddF32(k, v); };
  }
  void SetBool(const std::string& key, bool v) {
    keys_[Key(key)] = [v](GgufWriter& w, const std::string& k) { w.AddBool(k, v); };
  }
  void SetString(const std::string& key, std::string v) {
    keys_[Key(key)] = [v](GgufWriter& w, const std::string& k) { w.AddString(k, v); };
  }
  // Gives a token another text; type 3: a control token.
  void SetPiece(int32_t id, std::string text, int32_t type = 3) {
    pieces_[static_cast<size_t>(id)] = std::move(text);
    types_[static_cast<size_t>(id)] = type;
  }
  void Erase(const std::string& key) { keys_.erase(Key(key)); }
  // All keys, to spoil one after the other.
  std::vector<std::string> keys() const {
    std::vector<std::string> names;
    for (const auto& [name, add] : keys_) names.push_back(name);
    return names;
  }

  std::map<std::string, Tensor>& tensors() { return tensors_; }
  const std::map<std::string, Tensor>& tensors() const { return tensors_; }
  Tensor& tensor(const std::string& name) { return tensors_.at(name); }
  // Random values of about unit deviation times `scale`, around `mean`.
  void AddTensor(const std::string& name, const char* format, std::vector<uint64_t> shape,
                 float scale, float mean = 0) {
    size_t n = 1;
    for (uint64_t d : shape) n *= d;
    std::vector<float> values(n);
    const uint64_t stream = next_stream_++;
    for (size_t i = 0; i < n; ++i) {
      const double u = 2 * RandomUniform(shape_.seed, stream, i) - 1;
      values[i] = mean + scale * static_cast<float>(std::sqrt(3.0) * u);
    }
    const Format* f = FindFormat(format);
    CHECK(f && f->encode);
    std::vector<uint8_t> bytes(f->RowBytes(n));
    f->encode(values.data(), n, bytes.data());
    tensors_[name] = {f->gguf_type, std::move(shape), std::move(bytes)};
  }

  // Some ids below kVocab, none of them special.
  std::vector<int32_t> Tokens(size_t n, uint64_t seed = 7) const {
    std::vector<int32_t> ids(n);
    for (size_t i = 0; i < n; ++i) {
      ids[i] = kFirstByte + static_cast<int32_t>(RandomBits(seed, 99, i) % (kVocab - kFirstByte));
    }
    return ids;
  }

  // The writer refers to this model's bytes.
  GgufWriter Writer() const {
    GgufWriter w;
    w.AddString("general.architecture", architecture_);
    for (const auto& [name, add] : keys_) add(w, name);
    w.AddStrings("tokenizer.ggml.tokens", pieces_);
    w.AddFloats("tokenizer.ggml.scores", scores_);
    w.AddI32s("tokenizer.ggml.token_type", types_);
    for (const auto& [name, t] : tensors_) w.AddTensor(name, t.type_id, t.shape, t.bytes);
    return w;
  }
  std::string Write(const std::string& path) const {
    const Status s = Writer().Write(path);
    CHECK(s.ok());
    return path;
  }
  void set_architecture(std::string name) { architecture_ = std::move(name); }

 private:
  std::string Key(const std::string& key) const {
    return key.starts_with('.') ? shape_.architecture + key : key;
  }

  void AddHyperparameters() {
    const TinyShape& s = shape_;
    architecture_ = s.architecture;
    SetString("general.name", "tiny");
    SetU32(".block_count", s.layers);
    SetU32(".context_length", s.context);
    SetU32(".embedding_length", s.dim);
    SetU32(".feed_forward_length", s.ffn_dim);
    SetU32(".attention.head_count", s.heads);
    SetU32(".attention.head_count_kv", s.kv_heads);
    SetU32(".attention.key_length", s.head_dim);
    SetU32(".attention.value_length", s.head_dim);
    SetU32(".rope.dimension_count", s.head_dim);
    SetF32(".rope.freq_base", 10000);
    SetF32(".attention.layer_norm_rms_epsilon", 1e-5f);
    if (s.window) SetU32(".attention.sliding_window", s.window);
    if (s.experts) {
      SetU32(".expert_count", s.experts);
      SetU32(".expert_used_count", s.used);
    }
  }

  // SPM: <unk> <s> </s>, the 256 bytes, a to z, the blank, letters after a blank, pairs.
  void AddVocabulary() {
    const auto add = [&](std::string text, float score, int32_t type) {
      pieces_.push_back(std::move(text));
      scores_.push_back(score);
      types_.push_back(type);
    };
    add("<unk>", 0, 2);
    add("<s>", 0, 3);
    add("</s>", 0, 3);
    for (int b = 0; b < 256; ++b) {
      char text[8];
      std::snprintf(text, sizeof(text), "<0x%02X>", b);
      add(text, 0, 6);
    }
    for (char c = 'a'; c <= 'z'; ++c) add(std::string(1, c), -10, 1);
    add("\u2581", -10, 1);  // the blank
    for (char c = 'a'; c <= 'z'; ++c) add(std::string("\u2581") + c, -5 - (c - 'a') / 100.0f, 1);
    for (char c = 'a'; pieces_.size() < kVocab; ++c) add(std::string(1, c) + "e", -6, 1);
    SetString("tokenizer.ggml.model", "llama");
    SetU32("tokenizer.ggml.bos_token_id", kBos);
    SetU32("tokenizer.ggml.eos_token_id", kEos);
  }

  void AddTensors() {
    const TinyShape& s = shape_;
    const bool gemma = s.architecture == "gemma3";
    AddTensor("token_embd.weight", s.format, {s.dim, kVocab}, 1);
    AddTensor("output_norm.weight", "F32", {s.dim}, 0.1f, 1);
    if (!gemma) AddMatrix("output", s.dim, kVocab, 2);
    for (uint32_t i = 0; i < s.layers; ++i) {
      const std::string p = "blk." + std::to_string(i) + ".";
      for (const char* name : {"attn_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm"}) {
        if (gemma || std::string(name).find("post") == std::string::npos) {
          AddTensor(p + name + ".weight", "F32", {s.dim}, 0.1f, 1);
        }
      }
      AddMatrix(p + "attn_q", s.dim, s.heads * s.head_dim, 2);
      AddMatrix(p + "attn_k", s.dim, s.kv_heads * s.head_dim, 2);
      AddMatrix(p + "attn_v", s.dim, s.kv_heads * s.head_dim, 1);
      AddMatrix(p + "attn_output", s.heads * s.head_dim, s.dim, 1);
      if (gemma) {
        AddTensor(p + "attn_q_norm.weight", "F32", {s.head_dim}, 0.1f, 1);
        AddTensor(p + "attn_k_norm.weight", "F32", {s.head_dim}, 0.1f, 1);
      }
      if (s.experts) {
        AddTensor(p + "ffn_gate_inp.weight", "F32", {s.dim, s.experts}, Unit(s.dim));
        AddTensor(p + "ffn_gate_exps.weight", s.format, {s.dim, s.ffn_dim, s.experts}, Unit(s.dim));
        AddTensor(p + "ffn_up_exps.weight", s.format, {s.dim, s.ffn_dim, s.experts}, Unit(s.dim));
        AddTensor(p + "ffn_down_exps.weight", s.format, {s.ffn_dim, s.dim, s.experts},
                  Unit(s.ffn_dim));
      } else {
        AddMatrix(p + "ffn_gate", s.dim, s.ffn_dim, 1);
        AddMatrix(p + "ffn_up", s.dim, s.ffn_dim, 1);
        AddMatrix(p + "ffn_down", s.ffn_dim, s.dim, 1);
      }
    }
  }

  // Keeps the deviation of what it is multiplied with.
  static float Unit(uint64_t k) { return 1 / std::sqrt(static_cast<float>(k)); }
  void AddMatrix(const std::string& name, uint64_t k, uint64_t rows, float gain) {
    AddTensor(name + ".weight", shape_.format, {k, rows}, gain * Unit(k));
  }

  using Add = std::function<void(GgufWriter&, const std::string& key)>;
  TinyShape shape_;
  std::string architecture_;
  std::map<std::string, Add> keys_;
  std::map<std::string, Tensor> tensors_;
  std::vector<std::string> pieces_;
  std::vector<float> scores_;
  std::vector<int32_t> types_;
  uint64_t next_stream_ = 0;
};

}  // namespace sluice
#endif  // SLUICE_TESTS_MODEL_TINY_MODEL_H_
