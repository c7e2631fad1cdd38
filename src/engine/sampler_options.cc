#include "src/engine/sampler_options.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace sluice {
namespace {

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof(text), "%g", value);
  return text;
}

Status OutOfRange(std::string_view name, std::string expected, std::string found) {
  return Status(StatusCode::kInvalidArgument,
                std::string(name) + ": expected " + std::move(expected) + ", found " + found);
}

constexpr double kAny = std::numeric_limits<double>::max();

struct FloatRange {
  std::string_view name;
  float SamplerOptions::* field;
  double low, high;  // inclusive; kAny: finite is enough
};

constexpr FloatRange kFloatRanges[] = {
    {"temp", &SamplerOptions::temp, -kAny, kAny},
    {"dynatemp_range", &SamplerOptions::dynatemp_range, 0, kAny},
    {"dynatemp_exponent", &SamplerOptions::dynatemp_exponent, 0, kAny},
    {"top_p", &SamplerOptions::top_p, 0, 1},
    {"min_p", &SamplerOptions::min_p, 0, 1},
    {"typical_p", &SamplerOptions::typical_p, 0, 1},
    {"top_n_sigma", &SamplerOptions::top_n_sigma, -kAny, kAny},
    {"xtc_probability", &SamplerOptions::xtc_probability, 0, 1},
    {"xtc_threshold", &SamplerOptions::xtc_threshold, 0, 1},
    // Zero would divide by zero; below 1 favours repetition, which is odd but defined.
    {"repeat_penalty", &SamplerOptions::repeat_penalty, 1e-6, kAny},
    {"presence_penalty", &SamplerOptions::presence_penalty, -kAny, kAny},
    {"frequency_penalty", &SamplerOptions::frequency_penalty, -kAny, kAny},
    {"dry_multiplier", &SamplerOptions::dry_multiplier, 0, kAny},
    {"dry_base", &SamplerOptions::dry_base, 0, kAny},
};

struct IntRange {
  std::string_view name;
  int32_t SamplerOptions::* field;
  int32_t low;
};

constexpr IntRange kIntRanges[] = {
    {"repeat_last_n", &SamplerOptions::repeat_last_n, -1},
    {"dry_allowed_length", &SamplerOptions::dry_allowed_length, 0},
    {"dry_penalty_last_n", &SamplerOptions::dry_penalty_last_n, -1},
};

std::string Describe(const FloatRange& range) {
  if (range.low == -kAny) return "a finite number";
  if (range.high == kAny) return "a finite number of at least " + Number(range.low);
  return Number(range.low) + " to " + Number(range.high);
}

Status CheckLogitBias(const SamplerOptions& options, size_t vocab) {
  for (const auto& [id, bias] : options.logit_bias) {
    if (id < 0 || static_cast<size_t>(id) >= vocab) {
      return OutOfRange("logit_bias", "token ids 0 to " + std::to_string(vocab - 1),
                        std::to_string(id));
    }
    if (std::isnan(bias) || bias == std::numeric_limits<float>::infinity()) {
      return OutOfRange("logit_bias",
                        "a finite number or -infinity for token " + std::to_string(id),
                        Number(bias));
    }
  }
  return Status();
}

struct StageName {
  std::string_view name;
  SamplerStage stage;
};

constexpr StageName kStageNames[] = {
    {"top_n_sigma", SamplerStage::kTopNSigma},
    {"top_k", SamplerStage::kTopK},
    {"typ_p", SamplerStage::kTypicalP},
    {"typical_p", SamplerStage::kTypicalP},
    {"top_p", SamplerStage::kTopP},
    {"min_p", SamplerStage::kMinP},
    {"xtc", SamplerStage::kXtc},
    {"temperature", SamplerStage::kTemperature},
};

}  // namespace

Status CheckSamplerOptions(const SamplerOptions& options, size_t vocab) {
  for (const FloatRange& range : kFloatRanges) {
    const double value = options.*range.field;
    if (value >= range.low && value <= range.high) continue;  // never for NaN
    return OutOfRange(range.name, Describe(range), Number(value));
  }
  for (const IntRange& range : kIntRanges) {
    const int32_t value = options.*range.field;
    if (value >= range.low) continue;
    return OutOfRange(range.name, "at least " + std::to_string(range.low), std::to_string(value));
  }
  return CheckLogitBias(options, vocab);
}

Result<std::vector<SamplerStage>> ParseSamplerStages(std::string_view text) {
  std::vector<SamplerStage> stages;
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(text.size(), name.size() + 1));
    if (stages.empty() && (name == "penalties" || name == "dry")) continue;
    const auto* known = std::find_if(std::begin(kStageNames), std::end(kStageNames),
                                     [&](const StageName& s) { return s.name == name; });
    if (known == std::end(kStageNames)) {
      return OutOfRange("samplers",
                        "penalties, dry (first), top_n_sigma, top_k, typ_p, top_p, min_p, xtc, "
                        "temperature, separated by ';'",
                        "'" + std::string(name) + "'");
    }
    stages.push_back(known->stage);
  }
  return stages;
}

}  // namespace sluice
