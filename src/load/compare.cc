#include "src/load/compare.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

namespace sluice::load {
namespace {

constexpr size_t kPieces = 20;
constexpr double kCachedDiffers = 0.02;

GroupedValues Collect(const LoadStep& step,
                      const std::function<std::vector<double>(const LoadSample&)>& values) {
  GroupedValues out;
  for (const LoadSample& s : step.samples) {
    if (s.ok()) out.AddGroup(values(s));
  }
  return out;
}

std::vector<double> Gaps(const LoadSample& s) {
  std::vector<double> gaps;
  for (size_t i = 1; i < s.text_s.size(); ++i) gaps.push_back(s.text_s[i] - s.text_s[i - 1]);
  return gaps;
}

// Output tokens a second in each piece of the run; a token is put where its event came.
GroupedValues TokenRates(const LoadStep& step) {
  double begin = 0, end = 0;
  bool any = false;
  for (const LoadSample& s : step.samples) {
    if (!s.ok()) continue;
    begin = any ? std::min(begin, s.intended_s) : s.intended_s;
    end = any ? std::max(end, s.end_s) : s.end_s;
    any = true;
  }
  GroupedValues out;
  if (!any || end <= begin) return out;
  const double piece_s = (end - begin) / kPieces;
  std::array<double, kPieces> tokens{};
  for (const LoadSample& s : step.samples) {
    if (!s.ok()) continue;
    const double each = static_cast<double>(s.output_tokens) / static_cast<double>(s.text_s.size());
    for (const double t : s.text_s) {
      const auto piece = static_cast<size_t>(std::max(0.0, (t - begin) / piece_s));
      tokens[std::min(piece, kPieces - 1)] += each;
    }
  }
  for (const double n : tokens) out.AddGroup(std::array{n / piece_s});
  return out;
}

ComparedStep CompareSteps(const LoadStep& a, const LoadStep& b) {
  static constexpr std::array kPercentiles = {0.5, 0.9, 0.99};
  static constexpr std::array kNames = {"p50", "p90", "p99"};
  ComparedStep out{a.Name(), b.Name(), {}};
  const auto add = [&](const char* name, const auto& values) {
    const GroupedValues from_a = Collect(a, values), from_b = Collect(b, values);
    const auto estimates = ComparePercentiles(from_a, from_b, kPercentiles);
    for (size_t i = 0; i < estimates.size(); ++i) {
      ComparedFigure figure{std::string(name) + " " + kNames[i], "ms", false, estimates[i]};
      figure.estimate.a *= 1e3;
      figure.estimate.b *= 1e3;
      out.figures.push_back(figure);
    }
  };
  add("TTFT", [](const LoadSample& s) { return std::vector<double>{s.ttft_s()}; });
  add("TPOT", [](const LoadSample& s) {
    return s.tpot_s() >= 0 ? std::vector<double>{s.tpot_s()} : std::vector<double>();
  });
  add("ITL", Gaps);
  add("E2E", [](const LoadSample& s) { return std::vector<double>{s.e2e_s()}; });
  out.figures.push_back({"output", "tok/s", true, CompareMeans(TokenRates(a), TokenRates(b))});
  return out;
}

std::string Text(const boost::json::value& v) {
  if (v.is_string()) return std::string(v.get_string());
  if (!v.is_number()) return boost::json::serialize(v);
  char number[32];
  std::snprintf(number, sizeof(number), "%.6g", v.to_number<double>());
  return number;
}

double CachedShare(const LoadStep& step) {
  const double all = step.summary.prompt_tokens.mean * static_cast<double>(step.summary.ok);
  return all > 0 ? static_cast<double>(step.summary.cached_tokens) / all : 0;
}

std::string Percent(double share) { return std::to_string(std::lround(100 * share)) + " %"; }

void FindDoubts(const LoadResult& a, const LoadResult& b, Comparison* out) {
  const auto differ = [&](const std::string& what, const std::string& x, const std::string& y) {
    if (x != y) out->doubts.push_back(what + " differ: " + x + " and " + y);
  };
  differ("models", a.model, b.model);
  differ("dialects", a.dialect, b.dialect);
  for (const auto& [key, value] : a.settings) {
    const boost::json::value* other = b.settings.if_contains(key);
    differ("settings of --" + std::string(key), Text(value), other ? Text(*other) : "none");
  }
  if (!a.steps.empty() && !b.steps.empty()) {
    const double x = CachedShare(a.steps[0]), y = CachedShare(b.steps[0]);
    if (std::fabs(x - y) > kCachedDiffers) {
      out->doubts.push_back("the server had " + Percent(x) + " and " + Percent(y) +
                            " of the prompts' tokens in its prefix cache");
    }
  }
  for (const auto& [side, result] : {std::pair{"A", &a}, std::pair{"B", &b}}) {
    for (const LoadStep& step : result->steps) {
      const size_t lost = step.summary.failed + step.summary.unfinished;
      if (lost == 0) continue;
      out->doubts.push_back(std::string(side) + ", " + step.Name() + ": " + std::to_string(lost) +
                            " of " + std::to_string(step.summary.requests) +
                            " requests have no whole answer and are left out");
    }
  }
}

}  // namespace

Comparison Compare(const LoadResult& a, const LoadResult& b) {
  Comparison out;
  for (const LoadStep& step : a.steps) {
    const auto same = std::find_if(b.steps.begin(), b.steps.end(), [&](const LoadStep& other) {
      return other.Name() == step.Name();
    });
    if (same != b.steps.end()) out.steps.push_back(CompareSteps(step, *same));
  }
  if (out.steps.empty() && !a.steps.empty() && !b.steps.empty()) {
    out.doubts.push_back("no step has the same load: " + a.steps[0].Name() + " and " +
                         b.steps[0].Name() + " are compared");
    out.steps.push_back(CompareSteps(a.steps[0], b.steps[0]));
  }
  FindDoubts(a, b, &out);
  return out;
}

}  // namespace sluice::load
