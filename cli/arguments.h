// The command line as CLI11 wants it. Used by main, and by `sluice bench --vs`,
// whose value is a command line of its own.
#ifndef SLUICE_CLI_ARGUMENTS_H_
#define SLUICE_CLI_ARGUMENTS_H_

#include <string>
#include <vector>

#include "src/base/status.h"

namespace sluice {

// llama.cpp writes some long names with one dash, which CLI11 would take for a row of short ones:
// those known here get a second dash, others are refused. "-5" and "-n5" are values and short
// flags. "-fa on" becomes one word. Returned last first: CLI11 takes them from the back.
Result<std::vector<std::string>> CommandArguments(const std::vector<std::string>& given);

}  // namespace sluice
#endif  // SLUICE_CLI_ARGUMENTS_H_
