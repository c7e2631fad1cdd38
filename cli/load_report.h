// What `sluice load` shows: text for a terminal or a pipe, one picture, one page.
#ifndef SLUICE_CLI_LOAD_REPORT_H_
#define SLUICE_CLI_LOAD_REPORT_H_

#include <string>

#include "src/load/compare.h"
#include "src/load/load_result.h"

namespace sluice::load {

// Server, model, what is sent; the first lines.
std::string LoadHead(const LoadResult& result, bool colour);
// All of one step, in a block.
std::string LoadStepText(const LoadStep& step, const Slo& slo, bool colour);
// One of many steps, a line of a table, and the table's head.
std::string LoadTableHead(const Slo& slo, bool colour);
std::string LoadTableRow(const LoadStep& step, const Slo& slo, bool colour);
// What a sweep found.
std::string KneeText(const LoadResult& result);
std::string ComparisonText(const std::string& a, const std::string& b, const Comparison& comparison,
                           bool colour);

// Distributions of TTFT and gaps, and the run over time or, of several steps, latency against
// throughput.
std::string LoadSvg(const LoadResult& result);
// A page that needs nothing else: the picture, all tables, light or dark as the reader has it.
std::string LoadHtml(const LoadResult& result);

}  // namespace sluice::load
#endif  // SLUICE_CLI_LOAD_REPORT_H_
