// What /metrics says: vLLM's families under their own names, llama-server's, and
// ours. Counters and histograms are fed as requests go on; gauges are read from
// the engines when somebody asks. Any thread.
#ifndef SLUICE_SRC_SERVER_METRICS_H_
#define SLUICE_SRC_SERVER_METRICS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "src/engine/engine.h"
#include "src/engine/memory_audit.h"
#include "src/server/http_server.h"

namespace sluice {

// A request as it was asked for and as it went. Seconds.
struct RequestTimes {
  double first_token_s = -1;        // from its arrival; < 0: there was none
  double whole_s = 0;               // from its arrival to its end
  std::vector<float> token_gaps_s;  // between tokens
};

// What the gauges of one loaded model are read from.
struct ModelGauges {
  std::string model;
  EngineSnapshot engine;
  double weight_bytes_per_token = 0;
  double macs_per_token = 0;    // multiply-adds of its matrices, logits included
  double weights_resident = 1;  // share in RAM
  NodeAudit nodes;
};

class Metrics {
 public:
  Metrics();
  ~Metrics();

  // One choice of a request has ended.
  void Ended(const std::string& model, const SequenceStats& stats, FinishReason reason,
             size_t max_tokens, const RequestTimes& times);
  // A request was refused: "queue_full", "too_long", "invalid".
  void Refused(const std::string& model, const std::string& why);

  // The text exposition, version 0.0.4.
  std::string Text(const std::vector<ModelGauges>& models, const HttpCounters& http) const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_METRICS_H_
