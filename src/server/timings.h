// `timings` of an answer, in llama-server's words, for every dialect that has
// them. Stateless; any thread.
#ifndef SLUICE_SRC_SERVER_TIMINGS_H_
#define SLUICE_SRC_SERVER_TIMINGS_H_

#include <boost/json/object.hpp>
#include <string>

#include "src/engine/sequence.h"

namespace sluice {

// cache_n, prompt_n, prompt_ms ... predicted_per_second; speeds of nothing are 0. And `cache`, if a
// kept prompt began like this one and then went on differently: {"diverged_at": token of the
// prompt, "text": what stands around it}.
boost::json::object Timings(const SequenceStats& stats, const std::string& diverged_text = "");

// Adds the counts and times of another choice of the same request.
void AddStats(const SequenceStats& stats, SequenceStats* sum);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_TIMINGS_H_
