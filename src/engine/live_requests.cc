#include "src/engine/live_requests.h"

#include <algorithm>

namespace sluice {

namespace {

// Long enough for a dozen tokens of a large model, short enough to show a neighbour who comes.
constexpr double kWindowSeconds = 0.5;

double Rate(double count, double seconds) { return seconds > 0 ? count / seconds : 0; }

}  // namespace

const char* RequestPhaseName(RequestPhase phase) {
  switch (phase) {
    case RequestPhase::kQueued:
      return "queued";
    case RequestPhase::kPrefill:
      return "prefill";
    case RequestPhase::kDecode:
      return "decode";
  }
  return "";
}

void LiveRequests::Add(uint64_t id, const Request& request, Clock::time_point now) {
  Entry entry;
  entry.now.id = id;
  entry.now.request_id = request.request_id;
  entry.now.prompt_tokens = request.prompt.size();
  entry.now.max_tokens = request.max_tokens;
  entry.arrived = now;
  entries_.push_back(std::move(entry));
}

LiveRequests::Entry* LiveRequests::Find(uint64_t id) {
  const auto found = std::lower_bound(entries_.begin(), entries_.end(), id,
                                      [](const Entry& e, uint64_t i) { return e.now.id < i; });
  return found == entries_.end() || found->now.id != id ? nullptr : &*found;
}

void LiveRequests::Update(uint64_t id, const Sequence& sequence) {
  Entry* entry = Find(id);
  if (entry == nullptr) return;
  const SequenceStats& stats = sequence.stats();
  LiveRequest& now = entry->now;
  now.phase = !sequence.running()   ? RequestPhase::kQueued
              : sequence.decoding() ? RequestPhase::kDecode
                                    : RequestPhase::kPrefill;
  if (sequence.running() && !entry->started) {
    entry->started = true;
    now.queue_s = stats.queue_s;
  }
  now.cached_tokens = stats.cached_tokens;
  now.processed_tokens = std::min(sequence.kv().length(), now.prompt_tokens);
  now.generated_tokens = stats.generated_tokens;
  now.prefill_s = stats.prefill_s;
  now.decode_s = stats.decode_s;
  now.prefill_tok_s = Rate(static_cast<double>(stats.prefill_rows), stats.prefill_s);
  MeasureDecode(stats, entry);
}

// Until the first half second is over: of what there is.
void LiveRequests::MeasureDecode(const SequenceStats& stats, Entry* entry) {
  Mark& mark = entry->mark;
  const double seconds = stats.decode_s - mark.seconds;
  const bool whole = seconds >= kWindowSeconds;
  if (!whole && mark.seconds > 0) return;
  entry->now.decode_tok_s = Rate(static_cast<double>(stats.decode_passes - mark.passes), seconds);
  entry->bytes_per_s = Rate(static_cast<double>(stats.decode_bytes - mark.bytes), seconds);
  if (whole) mark = {stats.decode_passes, stats.decode_bytes, stats.decode_s};
}

void LiveRequests::Remove(uint64_t id) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.now.id == id; });
}

std::vector<LiveRequest> LiveRequests::List(double read_bytes_per_s, Clock::time_point now) const {
  std::vector<LiveRequest> list;
  list.reserve(entries_.size());
  for (const Entry& entry : entries_) {
    list.push_back(entry.now);
    LiveRequest& request = list.back();
    if (!entry.started)
      request.queue_s = std::chrono::duration<double>(now - entry.arrived).count();
    request.ceiling_ratio = Rate(entry.bytes_per_s, read_bytes_per_s);
  }
  return list;
}

std::vector<uint64_t> LiveRequests::WithRequestId(std::string_view request_id) const {
  std::vector<uint64_t> ids;
  for (const Entry& entry : entries_) {
    if (entry.now.request_id == request_id) ids.push_back(entry.now.id);
  }
  return ids;
}

}  // namespace sluice
