#include "cli/top/metrics_text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace sluice::top {

namespace {

// What is left of a line.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}

  void SkipBlanks() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\t')) rest_.remove_prefix(1);
  }
  bool Take(char c) {
    SkipBlanks();
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  // A name of a metric or label; empty: none.
  std::string Name() {
    SkipBlanks();
    const auto end = std::find_if(rest_.begin(), rest_.end(), [](char c) {
      return !(('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') ||
               c == '_' || c == ':');
    });
    std::string name(rest_.begin(), end);
    rest_.remove_prefix(name.size());
    return name;
  }
  // Between quotes, with \" \\ \n.
  bool Quoted(std::string* value) {
    if (!Take('"')) return false;
    while (!rest_.empty()) {
      char c = rest_[0];
      rest_.remove_prefix(1);
      if (c == '"') return true;
      if (c == '\\' && !rest_.empty()) {
        c = rest_[0] == 'n' ? '\n' : rest_[0];
        rest_.remove_prefix(1);
      }
      *value += c;
    }
    return false;
  }
  bool Labels(MetricSample* sample) {
    if (!Take('{')) return true;
    while (!Take('}')) {
      std::string name = Name(), value;
      if (name.empty() || !Take('=') || !Quoted(&value)) return false;
      sample->labels.emplace_back(std::move(name), std::move(value));
      if (!Take(',') && (rest_.empty() || rest_[0] != '}')) return false;
    }
    return true;
  }
  // A time stamp may follow.
  bool Value(double* value) {
    SkipBlanks();
    if (!rest_.empty() && rest_[0] == '+') rest_.remove_prefix(1);
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), *value);
    return error == std::errc() && !std::isnan(*value);
  }

 private:
  std::string_view rest_;
};

}  // namespace

std::string_view MetricSample::Label(std::string_view name) const {
  for (const auto& [key, value] : labels) {
    if (key == name) return value;
  }
  return "";
}

MetricsText MetricsText::Parse(std::string_view text) {
  MetricsText metrics;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    LineReader line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string name = line.Name();  // none in a comment
    MetricSample sample;
    if (name.empty() || !line.Labels(&sample) || !line.Value(&sample.value)) continue;
    metrics.samples_[name].push_back(std::move(sample));
  }
  return metrics;
}

const std::vector<MetricSample>* MetricsText::Find(std::string_view name) const {
  const auto found = samples_.find(name);
  return found == samples_.end() ? nullptr : &found->second;
}

std::optional<double> MetricsText::Sum(std::string_view name) const {
  const std::vector<MetricSample>* samples = Find(name);
  if (samples == nullptr) return std::nullopt;
  double sum = 0;
  for (const MetricSample& sample : *samples) sum += sample.value;
  return sum;
}

std::optional<double> MetricsText::Largest(std::string_view name) const {
  const std::vector<MetricSample>* samples = Find(name);
  if (samples == nullptr) return std::nullopt;
  double largest = samples->front().value;
  for (const MetricSample& sample : *samples) largest = std::max(largest, sample.value);
  return largest;
}

std::map<std::string, double> MetricsText::SumBy(std::string_view name,
                                                 std::string_view label) const {
  std::map<std::string, double> sums;
  const std::vector<MetricSample>* samples = Find(name);
  if (samples == nullptr) return sums;
  for (const MetricSample& sample : *samples) {
    sums[std::string(sample.Label(label))] += sample.value;
  }
  return sums;
}

bool MetricsText::HasPrefix(std::string_view prefix) const {
  const auto found = samples_.lower_bound(prefix);
  return found != samples_.end() && found->first.starts_with(prefix);
}

}  // namespace sluice::top
