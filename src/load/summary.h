// What a run of load says: latencies, rates, errors, and whether the server kept up. Used by
// `sluice load` and its reports; any thread.
#ifndef SLUICE_SRC_LOAD_SUMMARY_H_
#define SLUICE_SRC_LOAD_SUMMARY_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/load/sample.h"
#include "src/load/statistics.h"

namespace sluice::load {

// What an answer must keep to be a good one, in seconds; itl: its longest gap.
struct Slo {
  std::optional<double> ttft_s, tpot_s, itl_s, e2e_s;

  bool any() const { return ttft_s || tpot_s || itl_s || e2e_s; }
  bool Met(const LoadSample& sample) const;
  std::string Text() const;  // "ttft=2s,tpot=0.1s"
};
// "ttft=2s,tpot=100ms"; a number without a unit is milliseconds, as in vllm bench serve.
Result<Slo> ParseSlo(const std::string& text);

struct ErrorCount {
  size_t count = 0;
  std::string first;  // what the first of them said
};

struct LoadSummary {
  size_t requests = 0, ok = 0, failed = 0, unfinished = 0;
  std::map<std::string, ErrorCount> errors;  // by kind
  // Seconds. From the time that a request was due; the two below from when it was sent.
  Distribution ttft, tpot, itl, e2e;
  Distribution ttft_sent, e2e_sent;
  Distribution send_lag;  // sent - due, of all
  // Tokens of answers that are ok, as counted.
  Distribution prompt_tokens, output_tokens;
  double prompt_asked = 0, output_asked = 0;  // means
  size_t cached_tokens = 0;
  bool counted = true;    // by the server; else events are taken for tokens
  double duration_s = 0;  // from the first due time to the end of the last whole answer
  double offered = 0;     // requests a second, of the due times (0: all at once)
  double achieved = 0;    // whole answers a second of duration_s
  double output_tok_s = 0, prompt_tok_s = 0;
  size_t good = 0;          // answers within the SLO
  double goodput = 0;       // they, a second of duration_s
  double mean_running = 0;  // requests in flight
  size_t most_running = 0;
  // Answers by arrivals in the last three quarters of the time in which requests arrived: 1 where
  // the server keeps up, less where a queue grows. 1 too when nothing can be said (all at once).
  double kept_up = 1;

  // Share of the requests that count, whatever became of them, that were good.
  double attainment() const;
};

LoadSummary Summarise(const std::vector<LoadSample>& samples, const Slo& slo);

}  // namespace sluice::load
#endif  // SLUICE_SRC_LOAD_SUMMARY_H_
