// What `sluice top` knows of a server: two looks at /metrics and /slots become
// one view with rates. sluice says most; llama-server and vLLM, which have other
// or fewer numbers, leave members empty. No terminal and no network here; the
// thread that draws owns it.
#ifndef SLUICE_CLI_TOP_STATE_H_
#define SLUICE_CLI_TOP_STATE_H_

#include <boost/json/object.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/top/metrics_text.h"

namespace sluice::top {

struct SlotsBody {
  std::string model;  // asked for by name; empty: the server's first
  std::string body;
};

// One look.
struct Scrape {
  double at_s = 0;               // on any clock that only goes on
  std::string error;             // why there is no answer; empty: there is one
  MetricsText metrics;           // empty: this server has none
  std::vector<SlotsBody> slots;  // none: the same
  std::string slots_error;       // why there are none
};

enum class ServerKind : uint8_t { kUnknown, kSluice, kLlamaServer, kVllm };
ServerKind KindOf(const MetricsText& metrics);
const char* ServerKindName(ServerKind kind);  // "sluice", "llama-server", "vLLM", "server"

using Number = std::optional<double>;  // nothing: the server does not say, or not yet

struct RequestRow {
  std::string key;         // the same from look to look, and no other's
  std::string request_id;  // what it is cancelled by; empty: it cannot be
  std::string name;        // shown: request_id, or "task 7"
  std::string model;       // empty: not known
  std::string phase;       // "queued", "prefill", "decode"
  uint64_t order = 0;      // of arrival
  Number slot;             // none while it waits
  Number prompt_tokens, cached_tokens, processed_tokens, generated_tokens, max_tokens;
  Number queue_s, prefill_s, decode_s;
  Number prefill_tok_s, decode_tok_s;
  Number ceiling;  // share of the read bandwidth, 1 is all

  Number tok_s() const;   // of its phase
  Number cached() const;  // share of the prompt
  Number whole_s() const;
  Number progress() const;  // share of the phase that is done
};

struct NodeLoad {
  std::string node;
  double read_bytes_s = 0, ceiling_bytes_s = 0;
};

struct StallShare {
  std::string cause;  // "weight_stream"
  double share = 0;   // of the time since the last look that any cause took
};

struct View {
  ServerKind kind = ServerKind::kUnknown;
  bool lists_requests = false;  // has /slots
  std::string slots_error;      // why not
  std::vector<std::string> models;
  std::vector<RequestRow> requests;  // in order of arrival
  Number running, waiting;
  Number decode_tok_s, prefill_tok_s;  // since the last look
  bool idle = false;                   // no pass since then

  Number read_bytes_s, read_ceiling_bytes_s;
  Number bandwidth, compute;  // shares of the ceilings
  std::vector<NodeLoad> nodes;
  std::vector<StallShare> stalls;  // largest first

  Number kv_used, kv_kept, kv_pages;  // shares of the pool; kept: for later requests only
  Number cache_hits;                  // share of all prompt tokens since the server's start
  Number major_faults, major_faults_s;
  Number throttled, throttled_s;
  Number preemptions, preemptions_s;
  Number weights_resident, resident_bytes;
};

class TopState {
 public:
  void Add(const Scrape& scrape);
  const View& view() const { return view_; }
  const std::string& error() const { return error_; }  // of the last look
  bool has_rates() const { return has_rates_; }        // the view stands on two looks
  // Tokens generated per second, oldest first, at most kHistory.
  const std::deque<double>& history() const { return history_; }
  static constexpr size_t kHistory = 512;

 private:
  Number Increase(std::string_view name) const;
  Number PerSecond(std::string_view name) const;
  void ReadTotals();
  void ReadMemory();
  void ReadStalls();
  void ReadPool();
  void ReadRequests(const std::vector<SlotsBody>& bodies);
  void MeasureRequests();

  View view_;
  std::string error_;
  bool has_rates_ = false;
  MetricsText now_, before_;
  double seconds_ = 0;  // between the two; 0: there is one only
  double at_s_ = 0;
  std::map<std::string, double> generated_;  // tokens by RequestRow::key, at the last look
  std::deque<double> history_;
};

// The view as one object: what `sluice top --json` prints.
boost::json::object ViewJson(const View& view);

}  // namespace sluice::top
#endif  // SLUICE_CLI_TOP_STATE_H_
