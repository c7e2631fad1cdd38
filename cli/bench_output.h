// Rows of `sluice bench` as llama-bench writes them (markdown, CSV, JSON, JSON
// lines, SQL): its names first, in its order, so that scripts made for it read
// ours, then our own. One row is one JSON object; the other formats are made from it.
//
// avg and stddev are over the samples; ci95_low_ts to ci95_high_ts is where the true
// mean of the rate lies with 95 % confidence (MeanInterval95: Student's t; null for one
// sample). With --vs, ratio is side B's median rate by side A's, ratio_ci95_low/high its
// interval (RatioOfMedians: pairs of neighbouring samples drawn with replacement).
#ifndef SLUICE_CLI_BENCH_OUTPUT_H_
#define SLUICE_CLI_BENCH_OUTPUT_H_

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/bench_flags.h"
#include "src/engine/bench.h"
#include "src/engine/bench_statistics.h"

namespace sluice {

struct BenchModel {
  std::string path, type;  // "llama 1.24B Q4_0"
  uint64_t bytes = 0, parameters = 0;
};

struct BenchRow {
  BenchSetup setup;  // threads and KV type as they are, weights as they were loaded
  BenchModel model;
  BenchResult result;
  std::string time;               // when the row was finished, UTC
  std::optional<double> t_ratio;  // time of a pass by that of one sequence alone
  char side = 0;                  // 'A' or 'B' with --vs
  std::optional<Ratio> ratio;     // of side B
};

std::string UtcTime();                          // "2026-11-29T10:30:00Z"
std::string BenchTestName(const BenchTest& t);  // "pp512", "tg128 @ d8192"
boost::json::object BenchRowJson(const BenchRow& row);

enum class BenchFormat { kMarkdown, kCsv, kJson, kJsonl, kSql };

// Prints to stdout, a row as soon as it is there.
class BenchPrinter {
 public:
  // plans: all rows to come; what varies among them, or is not the default, gets a column in
  // markdown, which a terminal narrower than the table shows without some others.
  BenchPrinter(BenchFormat format, std::span<const BenchPlan> plans, bool versus);
  void Print(const BenchRow& row);
  void End();

 private:
  void PrintMarkdown(const BenchRow& row);
  void PrintTable(const BenchRow& row);  // CSV, SQL

  const BenchFormat format_;
  const bool versus_;
  bool models_ = false, threads_ = false, batch_ = false, kv_type_ = false, weights_ = false,
       huge_pages_ = false, threads_batch_ = false, np_ = false;
  size_t rows_ = 0;
};

}  // namespace sluice
#endif  // SLUICE_CLI_BENCH_OUTPUT_H_
