// `timings` of an answer, in llama-server's words, for every dialect that has
// them. Stateless; any thread.
#ifndef SLUICE_SRC_SERVER_TIMINGS_H_
#define SLUICE_SRC_SERVER_TIMINGS_H_

#include <boost/json/object.hpp>
#include <string>

#include "src/engine/sequence.h"
#include "src/server/exchange.h"

namespace sluice {

// cache_n, prompt_n, prompt_ms ... predicted_per_second; speeds of nothing are 0. And `cache`, if a
// kept prompt began like this one and then went on differently: {"diverged_at": token of the
// prompt, "text": what stands around it}.
boost::json::object Timings(const SequenceStats& stats, const std::string& diverged_text = "");

// Whether a request wants `ceiling` in its timings: by the header X-Sluice-Ceiling: 1. Dialects
// have a field "ceiling": true too.
bool AsksForCeiling(const HttpRequest& request);

// How near the machine's limits it ran and where its time went:
//   {"binds": "bandwidth", "bandwidth_ratio": 0.84, "compute_ratio": 0.31,     of decode
//    "prefill": {the same three}, "read_gb_s": 34.1, "read_ceiling_gb_s": 40.6, "wall_s": 2.31,
//    "stalls_s": {"weight_stream": 1.92, ...}, "major_faults": 0}
// The stalls add up to wall_s. Ratios are 0, and binds "", as long as no ceiling was measured.
boost::json::object CeilingJson(const RequestWork& work);

// " bandwidth_ratio=0.84 compute_ratio=0.31 stalls=weight_stream:83%,kv_stream:5%", the causes of
// at least one percent of the time: for the log line.
std::string CeilingLog(const RequestWork& work);

// Adds the counts and times of another choice of the same request.
void AddStats(const SequenceStats& stats, SequenceStats* sum);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_TIMINGS_H_
