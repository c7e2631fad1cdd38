#include "src/load/summary.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "src/base/printable.h"

namespace sluice::load {
namespace {

std::string Seconds(const char* name, const std::optional<double>& value) {
  if (!value) return "";
  char text[48];
  std::snprintf(text, sizeof(text), "%s=%gs,", name, *value);
  return text;
}

double LongestGap(const LoadSample& s) {
  double longest = 0;
  for (size_t i = 1; i < s.text_s.size(); ++i) {
    longest = std::max(longest, s.text_s[i] - s.text_s[i - 1]);
  }
  return longest;
}

void CountRunning(const std::vector<LoadSample>& samples, LoadSummary* out) {
  std::vector<std::pair<double, int>> changes;
  for (const LoadSample& s : samples) {
    changes.emplace_back(s.sent_s, 1);
    changes.emplace_back(std::max(s.end_s, s.sent_s), -1);
  }
  // One that ends where another begins is not beside it.
  std::sort(changes.begin(), changes.end());
  double area = 0, before = changes.empty() ? 0 : changes.front().first;
  const double begin = before;
  int running = 0, most = 0;
  for (const auto& [at, step] : changes) {
    area += running * (at - before);
    before = at;
    running += step;
    most = std::max(most, running);
  }
  out->most_running = static_cast<size_t>(most);
  if (before > begin) out->mean_running = area / (before - begin);
}

// Answers by arrivals in the window. An answer cannot come sooner than the quickest one did, so
// arrivals are looked for that much earlier: without it a ramp looks like a queue.
double KeptUp(const std::vector<LoadSample>& samples, double first, double last) {
  double quickest = last - first;
  for (const LoadSample& s : samples) {
    if (s.ok()) quickest = std::min(quickest, s.e2e_s());
  }
  const double from = first + (last - first) / 4;
  double arrived = 0, answered = 0;
  for (const LoadSample& s : samples) {
    if (s.unfinished()) continue;
    arrived += s.intended_s > from - quickest && s.intended_s <= last - quickest;
    answered += s.ok() && s.end_s > from && s.end_s <= last;
  }
  return arrived > 0 ? std::min(1.0, answered / arrived) : 1;
}

}  // namespace

bool Slo::Met(const LoadSample& s) const {
  if (!s.ok()) return false;
  return (!ttft_s || s.ttft_s() <= *ttft_s) && (!tpot_s || s.tpot_s() <= *tpot_s) &&
         (!itl_s || LongestGap(s) <= *itl_s) && (!e2e_s || s.e2e_s() <= *e2e_s);
}

std::string Slo::Text() const {
  std::string text = Seconds("ttft", ttft_s) + Seconds("tpot", tpot_s) + Seconds("itl", itl_s) +
                     Seconds("e2e", e2e_s);
  if (!text.empty()) text.pop_back();
  return text;
}

Result<Slo> ParseSlo(const std::string& text) {
  Slo slo;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    at = end + 1;
    const size_t sign = std::min(part.find_first_of("=:"), part.size());
    const std::string name = part.substr(0, sign),
                      value = part.substr(std::min(sign + 1, part.size()));
    char* unit = nullptr;
    const double number = std::strtod(value.c_str(), &unit);
    const std::string word = unit == nullptr ? "" : unit;
    const double seconds = word == "s" ? number : number / 1000;
    std::optional<double>* limit = name == "ttft"                    ? &slo.ttft_s
                                   : name == "tpot"                  ? &slo.tpot_s
                                   : name == "itl"                   ? &slo.itl_s
                                   : name == "e2e" || name == "e2el" ? &slo.e2e_s
                                                                     : nullptr;
    const bool known_unit = word.empty() || word == "s" || word == "ms";
    if (limit == nullptr || !known_unit || !(seconds > 0) || !std::isfinite(seconds)) {
      return Status(StatusCode::kInvalidArgument,
                    "--slo: expected ttft, tpot, itl or e2e with a time, such as "
                    "ttft=2s,tpot=100ms; found " +
                        Printable(part));
    }
    *limit = seconds;
  }
  return slo;
}

double LoadSummary::attainment() const {
  const size_t counted_requests = requests - unfinished;
  return counted_requests > 0 ? static_cast<double>(good) / static_cast<double>(counted_requests)
                              : 1;
}

LoadSummary Summarise(const std::vector<LoadSample>& samples, const Slo& slo) {
  LoadSummary out;
  out.requests = samples.size();
  if (samples.empty()) return out;
  std::vector<double> ttft, tpot, itl, e2e, ttft_sent, e2e_sent, lag, prompt, output;
  double first = samples[0].intended_s, last = first, end = first;
  for (const LoadSample& s : samples) {
    first = std::min(first, s.intended_s);
    last = std::max(last, s.intended_s);
    lag.push_back(s.sent_s - s.intended_s);
    if (s.unfinished()) {
      ++out.unfinished;
      continue;
    }
    if (!s.ok()) {
      ++out.failed;
      ErrorCount& error = out.errors[s.error];
      if (error.count++ == 0) error.first = s.detail;
      continue;
    }
    ++out.ok;
    out.good += slo.Met(s);
    end = std::max(end, s.end_s);
    ttft.push_back(s.ttft_s());
    ttft_sent.push_back(s.text_s.front() - s.sent_s);
    e2e.push_back(s.e2e_s());
    e2e_sent.push_back(s.end_s - s.sent_s);
    if (const double t = s.tpot_s(); t >= 0) tpot.push_back(t);
    for (size_t i = 1; i < s.text_s.size(); ++i) itl.push_back(s.text_s[i] - s.text_s[i - 1]);
    prompt.push_back(static_cast<double>(s.prompt_tokens));
    output.push_back(static_cast<double>(s.output_tokens));
    out.prompt_asked += static_cast<double>(s.prompt_asked);
    out.output_asked += static_cast<double>(s.output_asked);
    out.cached_tokens += s.cached_tokens;
    out.counted &= s.counted;
  }
  out.ttft = Describe(std::move(ttft));
  out.tpot = Describe(std::move(tpot));
  out.itl = Describe(std::move(itl));
  out.e2e = Describe(std::move(e2e));
  out.ttft_sent = Describe(std::move(ttft_sent));
  out.e2e_sent = Describe(std::move(e2e_sent));
  out.send_lag = Describe(std::move(lag));
  out.prompt_tokens = Describe(std::move(prompt));
  out.output_tokens = Describe(std::move(output));
  CountRunning(samples, &out);
  if (last > first) {
    out.offered = static_cast<double>(samples.size() - 1) / (last - first);
    out.kept_up = KeptUp(samples, first, last);
  }
  if (out.ok > 0) {
    const auto ok = static_cast<double>(out.ok);
    out.prompt_asked /= ok;
    out.output_asked /= ok;
    out.duration_s = end - first;
    out.achieved = ok / out.duration_s;
    out.goodput = static_cast<double>(out.good) / out.duration_s;
    out.output_tok_s = out.output_tokens.mean * ok / out.duration_s;
    out.prompt_tok_s = out.prompt_tokens.mean * ok / out.duration_s;
  }
  return out;
}

}  // namespace sluice::load
