// Reads the text exposition of Prometheus (version 0.0.4), as sluice, vLLM and
// llama-server write it. Tolerant: a line it cannot read is no sample. For
// `sluice top`; values of their own, any thread.
#ifndef SLUICE_CLI_TOP_METRICS_TEXT_H_
#define SLUICE_CLI_TOP_METRICS_TEXT_H_

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::top {

struct MetricSample {
  std::vector<std::pair<std::string, std::string>> labels;
  double value = 0;  // never NaN: such samples say nothing

  std::string_view Label(std::string_view name) const;  // empty if absent
};

class MetricsText {
 public:
  static MetricsText Parse(std::string_view text);

  // Over all label sets of a name; nothing: there is no such sample.
  std::optional<double> Sum(std::string_view name) const;
  std::optional<double> Largest(std::string_view name) const;
  // Sums by the value of one label.
  std::map<std::string, double> SumBy(std::string_view name, std::string_view label) const;
  bool HasPrefix(std::string_view prefix) const;  // of a name

 private:
  const std::vector<MetricSample>* Find(std::string_view name) const;

  std::map<std::string, std::vector<MetricSample>, std::less<>> samples_;
};

}  // namespace sluice::top
#endif  // SLUICE_CLI_TOP_METRICS_TEXT_H_
