// How `sluice doctor` shows its findings: a list for people, one JSON object for programs.
#ifndef SLUICE_CLI_DOCTOR_OUTPUT_H_
#define SLUICE_CLI_DOCTOR_OUTPUT_H_

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "src/machine/checkup.h"

namespace sluice {

struct DoctorStyle {
  bool terminal = false;  // coloured marks instead of words
  bool all = false;       // what is fine too, each with what was found
  size_t columns = 0;     // lines are broken at; 0: not
};

struct SeverityCounts {
  size_t problems = 0, warnings = 0, notes = 0;
};
SeverityCounts CountSeverities(const std::vector<Finding>& findings);

// Ends in "n problems, m warnings, k notes".
std::string FindingsText(const std::vector<Finding>& findings, const DoctorStyle& style);
boost::json::array FindingsJson(const std::vector<Finding>& findings);

}  // namespace sluice
#endif  // SLUICE_CLI_DOCTOR_OUTPUT_H_
