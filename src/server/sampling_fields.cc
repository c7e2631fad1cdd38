#include "src/server/sampling_fields.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <random>

#include "src/engine/dry_breakers.h"

namespace sluice {

namespace json = boost::json;

namespace {

constexpr size_t kMostStops = 64, kMostBreakers = 64;
constexpr double kAny = 1e30;  // far beyond what makes sense; still a float

class SamplingReader {
 public:
  SamplingReader(const Tokenizer& tokenizer, size_t vocab, Fields& fields, Request& request)
      : tokenizer_(tokenizer), vocab_(vocab), fields_(fields), request_(request) {}

  void Read() {
    Numbers();
    Seed();
    if (fields_.Has("samplers")) Stages();
    if (const json::value* bias = fields_.Find("logit_bias")) LogitBias(*bias);
    if (o_.dry_multiplier > 0) Breakers();
    if (fields_.Has("stop")) request_.stop = fields_.Strings("stop", kMostStops);
    request_.ignore_eos = fields_.Bool("ignore_eos", request_.ignore_eos);
    const auto least = static_cast<int64_t>(request_.min_tokens);
    request_.min_tokens = static_cast<size_t>(fields_.Int("min_tokens", least, 0, INT32_MAX));
    if (Status s = CheckSamplerOptions(o_, vocab_); !s.ok() && fields_.status().ok()) {
      const std::string& message = s.message();
      const size_t colon = message.find(": ");
      fields_.Fail(message.substr(0, colon), message.substr(colon + 2));
    }
  }

 private:
  void Float(const char* key, float* value, double least, double most) {
    *value = static_cast<float>(fields_.Number(key, *value, least, most));
  }
  void Int(const char* key, int32_t* value, int64_t least, int64_t most) {
    *value = static_cast<int32_t>(fields_.Int(key, *value, least, most));
  }

  void Numbers() {
    Float("temperature", &o_.temp, 0, 1000);
    Float("dynatemp_range", &o_.dynatemp_range, 0, kAny);
    Float("dynatemp_exponent", &o_.dynatemp_exponent, 0, kAny);
    Int("top_k", &o_.top_k, -1, INT32_MAX);
    Float("top_p", &o_.top_p, 0, 1);
    Float("min_p", &o_.min_p, 0, 1);
    Float("typical_p", &o_.typical_p, 0, 1);
    Float("top_n_sigma", &o_.top_n_sigma, -kAny, kAny);
    Float("xtc_probability", &o_.xtc_probability, 0, 1);
    Float("xtc_threshold", &o_.xtc_threshold, 0, 1);
    Int("repeat_last_n", &o_.repeat_last_n, -1, INT32_MAX);
    Float("repeat_penalty", &o_.repeat_penalty, 1e-6, kAny);
    Float("repetition_penalty", &o_.repeat_penalty, 1e-6, kAny);  // vLLM's name for it
    if (fields_.Has("repetition_penalty") && !fields_.Has("repeat_last_n")) o_.repeat_last_n = -1;
    Float("presence_penalty", &o_.presence_penalty, -kAny, kAny);
    Float("frequency_penalty", &o_.frequency_penalty, -kAny, kAny);
    Float("dry_multiplier", &o_.dry_multiplier, 0, kAny);
    Float("dry_base", &o_.dry_base, 0, kAny);
    Int("dry_allowed_length", &o_.dry_allowed_length, 0, INT32_MAX);
    Int("dry_penalty_last_n", &o_.dry_penalty_last_n, -1, INT32_MAX);
  }

  void Seed() {
    const int64_t seed = fields_.Int("seed", -1, INT64_MIN, INT64_MAX);
    o_.seed = seed < 0 ? std::random_device()() : static_cast<uint64_t>(seed);
  }

  // llama-server's list of names, or the string of its command line.
  void Stages() {
    std::string names;
    for (const std::string& name : fields_.Strings("samplers", 16)) {
      names += (names.empty() ? "" : ";") + name;
    }
    Result<std::vector<SamplerStage>> stages = ParseSamplerStages(names);
    if (stages.ok()) {
      o_.stages = *std::move(stages);
    } else {
      fields_.Fail("samplers", stages.status().message());
    }
  }

  void AddBias(int64_t id, double bias) {
    if (id < 0 || static_cast<size_t>(id) >= vocab_) {
      return fields_.Fail("logit_bias", "expected token ids 0 to " + std::to_string(vocab_ - 1) +
                                            ", found " + std::to_string(id));
    }
    o_.logit_bias.emplace_back(static_cast<int32_t>(id), static_cast<float>(bias));
  }

  // {"15043": -100} (OpenAI), [[15043, 1.5], [15043, false], ["text", -1]] (llama-server).
  void LogitBias(const json::value& bias) {
    if (const json::object* object = bias.if_object()) {
      for (const auto& entry : *object) {
        const std::string_view key = entry.key();
        int64_t id = 0;
        const auto end = std::from_chars(key.data(), key.data() + key.size(), id);
        if (end.ec != std::errc() || end.ptr != key.data() + key.size()) {
          return fields_.Fail("logit_bias", "expected token ids as keys, found another");
        }
        BiasOf(entry.value(), [&](double number) { AddBias(id, number); });
      }
      return;
    }
    const json::array* pairs = bias.if_array();
    if (pairs == nullptr) return fields_.Fail("logit_bias", "expected an object or an array");
    for (const json::value& pair : *pairs) {
      const json::array* two = pair.if_array();
      if (two == nullptr || two->size() != 2 || !((*two)[0].is_int64() || (*two)[0].is_string())) {
        return fields_.Fail("logit_bias", "expected pairs of a token and its bias");
      }
      BiasOf((*two)[1], [&](double number) {
        if ((*two)[0].is_int64()) return AddBias((*two)[0].get_int64(), number);
        for (int32_t id : tokenizer_.Encode((*two)[0].get_string(), {})) AddBias(id, number);
      });
    }
  }

  template <class Use>
  void BiasOf(const json::value& value, const Use& use) {
    if (value.is_bool() && !value.get_bool()) return use(-std::numeric_limits<double>::infinity());
    if (!value.is_number()) return fields_.Fail("logit_bias", "expected numbers or false");
    use(std::clamp(value.to_number<double>(), -kAny, kAny));
  }

  void Breakers() {
    std::vector<std::string> texts(std::begin(kDefaultDryBreakers), std::end(kDefaultDryBreakers));
    if (fields_.Has("dry_sequence_breakers")) {
      texts = fields_.Strings("dry_sequence_breakers", kMostBreakers);
    }
    o_.dry_breakers = DryBreakers(tokenizer_, texts);
  }

  const Tokenizer& tokenizer_;
  const size_t vocab_;
  Fields& fields_;
  Request& request_;
  SamplerOptions& o_ = request_.sampler;
};

}  // namespace

void ReadSampling(const Tokenizer& tokenizer, size_t vocab, Fields* fields, Request* request) {
  SamplingReader(tokenizer, vocab, *fields, *request).Read();
}

}  // namespace sluice
