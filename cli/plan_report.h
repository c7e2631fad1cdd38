// What `sluice plan` found, and the forms it leaves in: tables on a terminal, text,
// JSON, a picture.
#ifndef SLUICE_CLI_PLAN_REPORT_H_
#define SLUICE_CLI_PLAN_REPORT_H_

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "src/engine/advice.h"
#include "src/engine/plan.h"
#include "src/engine/plan_check.h"

namespace sluice {

struct PlanRow {
  std::string label;   // "4096", "Q4_0"
  size_t context = 0;  // of a decode step
  bool current = false;
  Prediction prediction;
  MemoryPlan memory;
};

struct PlanReport {
  std::string model, quantisation, where;  // where: the machine's or the device's name
  bool here = true;                        // measured; else published figures
  Workload workload;
  MachineSpeed now, good;       // the same for a device
  Prediction prediction, best;  // with `now`, with `good`
  MemoryPlan memory;
  double available_bytes = 0;  // free right now; 0: not here
  std::vector<PlanRow> contexts, formats, devices;
};

void PrintPlan(const PlanReport& report);
boost::json::object PlanJson(const PlanReport& report);
// Decode speed over the context: a curve for every format, dashed the roof of the current one.
// `curves`: [formats] over the same contexts, ascending; the first is the model as it is.
struct PlanCurve {
  std::string label;
  std::vector<double> tok_s, roof_tok_s;  // [contexts]
};
std::string PlanSvg(const PlanReport& report, const std::vector<size_t>& contexts,
                    const std::vector<PlanCurve>& curves);

void PrintAdvice(const PlanReport& report, const Goal& goal, const std::vector<Advice>& advice);
boost::json::array AdviceJson(const std::vector<Advice>& advice);

// Medians over the pairs of what was predicted, measured, and of their ratio.
struct CheckSummary {
  double predicted_ttft_s = 0, ttft_s = 0, ttft_error = 0;  // predicted / measured - 1
  double predicted_token_s = 0, token_s = 0, token_error = 0;
  double read_gb_s = 0;
  size_t pairs = 0;
};
CheckSummary Summarise(const std::vector<CheckSample>& samples);
void PrintCheck(const Workload& workload, const CheckSummary& summary);
boost::json::object CheckJson(const Workload& workload, const CheckSummary& summary,
                              const std::vector<CheckSample>& samples);

}  // namespace sluice
#endif  // SLUICE_CLI_PLAN_REPORT_H_
