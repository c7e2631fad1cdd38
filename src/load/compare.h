// Two results side by side: ratios, how sure they are, and what makes them hard to compare. Used by
// `sluice load --compare`; any thread.
#ifndef SLUICE_SRC_LOAD_COMPARE_H_
#define SLUICE_SRC_LOAD_COMPARE_H_

#include <string>
#include <vector>

#include "src/load/load_result.h"
#include "src/load/statistics.h"

namespace sluice::load {

struct ComparedFigure {
  std::string name;  // "TTFT p50", "output tok/s"
  std::string unit;  // "ms", "tok/s", "req/s"; a and b are in it
  bool more_is_better = false;
  RatioEstimate estimate;
};

struct ComparedStep {
  std::string a, b;  // names of the two steps
  std::vector<ComparedFigure> figures;
};

struct Comparison {
  std::vector<ComparedStep> steps;
  std::vector<std::string> doubts;  // settings that differ, failed requests
};

// Steps of the same name; where there are none, the first of each. Rates: the time of a run is cut
// into 20 equal pieces, which are the groups that are drawn from.
Comparison Compare(const LoadResult& a, const LoadResult& b);

}  // namespace sluice::load
#endif  // SLUICE_SRC_LOAD_COMPARE_H_
