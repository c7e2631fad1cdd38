// A whole invocation of `sluice load`: its settings and one step per rate or number of clients; and
// its file, JSON, from which --compare computes everything again. Any thread.
#ifndef SLUICE_SRC_LOAD_LOAD_RESULT_H_
#define SLUICE_SRC_LOAD_LOAD_RESULT_H_

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/load/sample.h"
#include "src/load/summary.h"

namespace sluice::load {

struct LoadStep {
  bool open = false;
  double rate = 0;         // open: requests a second, infinity: all at once; 0: a trace's
  size_t clients = 0;      // closed: how many; open: the most in flight, 0: no limit
  size_t connections = 0;  // opened for it
  std::vector<LoadSample> samples;
  LoadSummary summary;

  std::string Name() const;  // "4 req/s", "2 clients"
};

struct LoadResult {
  std::string version, time;  // of this program; UTC
  std::string url, dialect, model;
  std::string prompts;           // what was sent, in words
  boost::json::object settings;  // flags that matter for comparing
  Slo slo;
  std::vector<std::string> notes;
  std::vector<LoadStep> steps;
  double knee_rate = 0;     // of a sweep: the highest rate that was kept up with; 0: none
  std::string knee_reason;  // what ended it; empty: no sweep
  bool interrupted = false;
};

boost::json::object SummaryJson(const LoadSummary& summary, bool slo);
// Without the requests it is what --json prints.
boost::json::object ResultJson(const LoadResult& result, bool with_requests);
std::string ResultCsv(const LoadResult& result);  // one line per request

// Back from the JSON with requests. `name` is the file's. Error: it is something else.
Result<LoadResult> ParseResult(const std::string& name, const std::string& text);

}  // namespace sluice::load
#endif  // SLUICE_SRC_LOAD_LOAD_RESULT_H_
