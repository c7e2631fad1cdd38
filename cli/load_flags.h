// The flags of `sluice load`, and what they mean together.
#ifndef SLUICE_CLI_LOAD_FLAGS_H_
#define SLUICE_CLI_LOAD_FLAGS_H_

#include <CLI/CLI.hpp>
#include <boost/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/load/client.h"
#include "src/load/dialect.h"
#include "src/load/prompts.h"
#include "src/load/summary.h"

namespace sluice::load {

// One step as it was asked for.
struct LoadShape {
  bool open = false;
  double rate = 0;  // 0: of the trace
  size_t clients = 1;
};

// Checked.
struct LoadPlan {
  Target target;
  ClientOptions client;
  std::optional<Dialect> dialect;  // nothing: found out
  RequestOptions request;
  PromptPlan prompts;
  std::vector<LoadShape> shapes;  // of a sweep: none
  double burstiness = 1;
  size_t requests = 0, warm_up = 0;
  double duration_s = 0;
  Slo slo;
  bool sweep = false;
  double sweep_first = 0, sweep_factor = 1.5, attainment = 0.9;  // sweep_first 0: found out
  std::string description;                                       // of the prompts
  boost::json::object settings;  // that a comparison should find the same
};

struct LoadFlags {
  std::string url, model, dialect = "auto", api_key, api_key_file, extra_body;
  std::vector<std::string> rates;
  std::vector<size_t> concurrency;
  std::string arrivals = "poisson", trace, prompts;
  std::string prompt_tokens = "128", output_tokens = "64", slo;
  double burstiness = 1, duration_s = 0, timeout_s = 600, temperature = 0;
  double sweep_factor = 1.5, attainment = 90;
  size_t requests = 0, warm_up = 4, shared_prefix = 0, prefix_groups = 1;
  std::optional<uint64_t> seed;
  bool sweep = false, insecure = false, no_ignore_eos = false, json = false;
  std::vector<std::string> outputs, compare;

  void AddTo(CLI::App& command);
  // Reads the files that are named. Error: flags that contradict each other, values out of range.
  Result<LoadPlan> Plan() const;
};

}  // namespace sluice::load
#endif  // SLUICE_CLI_LOAD_FLAGS_H_
