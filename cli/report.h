// The closing line of a run, and the same as JSON: what was computed, how fast,
// how many bytes were read for it, and what share that is of the read bandwidth
// that this thread set reaches on this machine, measured right after the run.
#ifndef SLUICE_CLI_REPORT_H_
#define SLUICE_CLI_REPORT_H_

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "cli/ink.h"
#include "src/engine/memory_audit.h"
#include "src/engine/model_runner.h"
#include "src/engine/sequence.h"

namespace sluice {

struct RunReport {
  SequenceStats stats;
  double read_bandwidth_gb_s = 0;  // 0: not measured
  uint64_t peak_rss_bytes = 0;
  double load_s = 0;
  std::string target, weights, kv_type;
  // Measured for --explain and --json only, but for the shares of the ceilings, which are also
  // known where bandwidth alone leaves much of the time unexplained.
  int threads = 0, cpus = 0;
  double wall_s = 0;            // from the prompt to the last token, by the command's own clock
  double weights_resident = 1;  // share in RAM
  uint64_t weights_bytes = 0;
  NodeAudit nodes;
  std::optional<double> joules;  // of the processors from the prompt to the last token

  double prefill_tok_s() const;
  double decode_tok_s() const;
  double ms_per_token() const;
  double bytes_per_token() const;  // read by one decode pass, on average
  double gb_s() const;
  double ceiling_pct() const;
  std::string ceiling_remark() const;  // CeilingRemark of it
};

// Asks the runner for the read bandwidth unless nothing was decoded; with `explain`, for everything
// that is known about where the time went (a quarter of a second more).
RunReport MakeReport(ModelRunner& runner, const SequenceStats& stats, bool explain);
// "prefill 6 tok 812.3 tok/s | decode ...": one line, or, of at most `columns`, several that end
// between two of its parts. No newline at the end.
std::string ReportLine(const RunReport& report, const Ink& ink, size_t columns);
// It, as a command ends with it: on stderr, in as many lines as its terminal makes of it.
void PrintReportLine(const RunReport& report);
boost::json::object ReportJson(const RunReport& report);

}  // namespace sluice
#endif  // SLUICE_CLI_REPORT_H_
