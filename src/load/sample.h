// What was measured of one request. Times are seconds since its run began.
#ifndef SLUICE_SRC_LOAD_SAMPLE_H_
#define SLUICE_SRC_LOAD_SAMPLE_H_

#include <cstddef>
#include <string>
#include <vector>

namespace sluice::load {

struct LoadSample {
  size_t index = 0;
  double intended_s = 0;       // when it was due; what latencies count from
  double sent_s = 0;           // when it was handed to the network
  double end_s = 0;            // when its last byte came, or it failed
  std::vector<double> text_s;  // of each event that carried text
  size_t prompt_asked = 0, output_asked = 0;
  size_t prompt_tokens = 0, output_tokens = 0, cached_tokens = 0;  // as the server counted
  bool counted = false;  // the server said how many tokens; else one per event is taken
  std::string error;     // kind of failure ("http 429", "cut off", ...); empty: a whole answer
  std::string detail;    // the first words of it

  bool ok() const { return error.empty(); }
  // Ended by us: says nothing about the server.
  bool unfinished() const { return error == "interrupted"; }
  // All of an answer that is ok(), which has text.
  double ttft_s() const { return text_s.front() - intended_s; }
  double e2e_s() const { return end_s - intended_s; }
  // (last token - first token) / (tokens - 1); negative for fewer than two tokens: there is none.
  double tpot_s() const {
    if (output_tokens < 2) return -1;
    return (text_s.back() - text_s.front()) / static_cast<double>(output_tokens - 1);
  }
};

}  // namespace sluice::load
#endif  // SLUICE_SRC_LOAD_SAMPLE_H_
