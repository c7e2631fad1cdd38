// What every request of an EngineService is doing right now: for /slots, `sluice
// top` and cancelling by the client's own request id. Written by whoever submits and by the
// engine's thread between two steps, read by anybody; the service's mutex guards it.
#ifndef SLUICE_SRC_ENGINE_LIVE_REQUESTS_H_
#define SLUICE_SRC_ENGINE_LIVE_REQUESTS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/engine/sequence.h"

namespace sluice {

// kQueued: not yet started, or put off for want of memory; kPrefill: no token yet.
enum class RequestPhase : uint8_t { kQueued, kPrefill, kDecode };
const char* RequestPhaseName(RequestPhase phase);  // "queued", "prefill", "decode"

// One choice of a request between its arrival and its end.
struct LiveRequest {
  uint64_t id = 0;         // the engine's
  std::string request_id;  // the client's (Request::request_id); choices of one request share it
  RequestPhase phase = RequestPhase::kQueued;
  size_t prompt_tokens = 0;
  size_t cached_tokens = 0;     // of these, not computed
  size_t processed_tokens = 0;  // of the prompt, cached or computed so far
  size_t generated_tokens = 0;
  size_t max_tokens = SIZE_MAX;
  double queue_s = 0, prefill_s = 0, decode_s = 0;
  double prefill_tok_s = 0;  // of all its prefill
  double decode_tok_s = 0;   // of about its last half second of decode
  // What that half second read for it, weights and keys and values, as a share of the read
  // bandwidth; 1 is all. Sequences of one batch share the weights: each is given them whole.
  double ceiling_ratio = 0;
};

class LiveRequests {
 public:
  using Clock = std::chrono::steady_clock;

  void Add(uint64_t id, const Request& request, Clock::time_point now);
  // After a step: no allocation. Unknown ids are ignored.
  void Update(uint64_t id, const Sequence& sequence);
  void Remove(uint64_t id);

  // In order of arrival. `read_bytes_per_s`: the ceiling, 0 if it is not known.
  std::vector<LiveRequest> List(double read_bytes_per_s, Clock::time_point now) const;
  std::vector<uint64_t> WithRequestId(std::string_view request_id) const;

 private:
  // The counts of decode at some moment.
  struct Mark {
    size_t passes = 0;
    uint64_t bytes = 0;
    double seconds = 0;
  };
  struct Entry {
    LiveRequest now;
    Clock::time_point arrived;
    bool started = false;  // queue_s is final
    Mark mark;             // where the half second that is not yet over began
    double bytes_per_s = 0;
  };
  static void MeasureDecode(const SequenceStats& stats, Entry* entry);
  Entry* Find(uint64_t id);

  std::vector<Entry> entries_;  // ids ascending: they are given in order of arrival
};

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_LIVE_REQUESTS_H_
