// What `run --explain` says below the closing line: in plain words what bound
// the run, a bar for every cause of its time, and what would help.
#ifndef SLUICE_CLI_EXPLAIN_H_
#define SLUICE_CLI_EXPLAIN_H_

#include <string>

#include "cli/report.h"

namespace sluice {

// Lines of at most `columns`, with a newline at the end. On a terminal with colour and blocks,
// elsewhere plain ASCII. The report was made with `explain`.
std::string Explanation(const RunReport& report, const Ink& ink, size_t columns);

}  // namespace sluice
#endif  // SLUICE_CLI_EXPLAIN_H_
