#include "cli/explain.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "cli/progress.h"
#include "cli/wrap.h"

namespace sluice {

namespace {

constexpr size_t kMostColumns = 96;                         // longer lines are hard to read
constexpr size_t kCauseColumns = 37, kMeaningColumns = 35;  // beside the bar
constexpr double kWorthAdvice = 0.03;                       // of the time
constexpr double kNearCeiling = 0.8;

template <class... T>
std::string Printf(const char* format, T... values) {
  char buffer[400];
  std::snprintf(buffer, sizeof(buffer), format, values...);
  return buffer;
}

struct Words {
  const char* name;
  const char* meaning;
};

Words WordsOf(Cause cause) {
  switch (cause) {
    case Cause::kWeightStream:
      return {"weight stream", "reading weights from memory"};
    case Cause::kKvStream:
      return {"KV stream", "reading keys and values from memory"};
    case Cause::kCompute:
      return {"compute", "multiplying"};
    case Cause::kBarrier:
      return {"barriers", "threads waiting for each other"};
    case Cause::kPageFaults:
      return {"page faults", "waiting for the disk"};
    case Cause::kThrottled:
      return {"throttled", "stopped by a CPU quota"};
    case Cause::kPreempted:
      return {"preempted", "the CPU was somebody else's"};
    case Cause::kClock:
      return {"clock", "multiplying below the nominal clock"};
    case Cause::kSampling:
      return {"sampling, text", "drawing tokens, writing text"};
    case Cause::kQueue:
      return {"queue", "waiting for a turn"};
    case Cause::kOther:
      return {"other", "between passes"};
  }
  return {"", ""};
}

std::string Bound(const RunReport& r) {
  const RequestWork& work = r.stats.work;
  const bool decoded = work.decode.passes > 0;
  const CeilingShares shares = decoded ? work.decode_shares() : work.prefill_shares();
  const std::string phase = decoded ? "Decode" : "Prefill";
  const std::string binds = shares.binds();
  if (binds.empty()) return phase + ": the machine's ceilings could not be measured.";
  std::string text = Printf(
      "%s reached %.0f %% of the memory bandwidth and %.0f %% of the "
      "arithmetic of these %d threads: ",
      phase.c_str(), 100 * shares.bandwidth, 100 * shares.compute, r.threads);
  text += binds == "bandwidth" ? "memory binds." : "arithmetic binds.";
  const double share = std::max(shares.bandwidth, shares.compute);
  if (decoded && binds == "bandwidth" && work.ceilings.decode.read_gb_s > 0) {
    text += Printf(" A token reads %s, which takes at least %.2f ms here;",
                   TrafficBytes(r.bytes_per_token()).c_str(),
                   1e-6 * r.bytes_per_token() / work.ceilings.decode.read_gb_s);
    text += share >= kNearCeiling ? " only fewer bytes, a smaller quantisation, make it faster."
                                  : Printf(" it took %.2f ms.", r.ms_per_token());
  }
  if (share > 1.05) text += " (More than all: the ceiling was measured low.)";
  return text;
}

// What to do about a cause; "" where nothing is to be done.
std::string Advice(const RunReport& r, Cause cause) {
  const PassTotals& decode = r.stats.work.decode;
  const double periods = decode.throttled_periods + r.stats.work.prefill.throttled_periods;
  switch (cause) {
    case Cause::kThrottled:
      return Printf(
          "throttled: a control group's CPU quota stopped the process in %.0f periods. "
          "Raise the quota, or run no more threads than it has whole CPUs (-t).",
          periods);
    case Cause::kPreempted:
      return r.threads > r.cpus
                 ? Printf("preempted: %d threads share %d CPUs. -t %d, or no -t at all, is faster.",
                          r.threads, r.cpus, r.cpus)
                 : "preempted: other programs used the CPUs. Stop them, lower their priority, or "
                   "give this one fewer threads (-t).";
    case Cause::kPageFaults:
      return Printf(
          "page faults: %.0f waits for the disk. The weights were not all in RAM; a "
          "second run finds them there if there is memory for them, --mlock keeps them.",
          r.stats.work.major_faults());
    case Cause::kClock:
      return "clock: the cores ran below their nominal clock (heat, a power limit or governor).";
    case Cause::kBarrier:
      return r.threads > r.cpus
                 ? Printf("barriers: %d threads take turns on %d CPUs. -t %d is faster.", r.threads,
                          r.cpus, r.cpus)
                 : "barriers: the work of a token is short for so many threads; fewer (-t) may be "
                   "as fast.";
    case Cause::kSampling:
      return "sampling, text: --top-k limits what a draw looks at; grammars and log-probabilities "
             "look at every token.";
    case Cause::kKvStream:
      return "KV stream: keys and values of a long context; --kv-type q8 halves them.";
    default:
      return "";
  }
}

std::string Memory(const RunReport& r) {
  std::string text = Printf("Weights: %.0f %% of %s in RAM", 100 * r.weights_resident,
                            HumanBytes(r.weights_bytes).c_str());
  const double tokens = std::max<double>(1, static_cast<double>(r.stats.decode_passes));
  text +=
      Printf(", %.1f page faults from disk per token.", r.stats.work.decode.major_faults / tokens);
  if (r.weights_resident < 0.99) {
    text +=
        " What is missing is read from disk when it is needed: free memory, or take a smaller "
        "quantisation; --mlock keeps weights in RAM.";
  }
  if (r.nodes.weights.size() > 1) {
    text += " Memory nodes:";
    for (size_t i = 0; i < r.nodes.weights.size(); ++i) {
      text += Printf(" %zu: weights %.0f %%, KV %.0f %%;", i, 100 * r.nodes.weights[i],
                     100 * r.nodes.kv[i]);
    }
    text += Printf(" %.0f %% of the weights are read across.", 100 * r.nodes.across);
    if (r.nodes.across > 0.1) text += " --numa auto puts each worker's rows on its own node.";
  }
  if (r.joules) {
    const auto all =
        static_cast<double>(std::max<size_t>(1, r.stats.prefill_rows + r.stats.decode_passes));
    text +=
        Printf(" Energy of the processors: %.1f J, %.3f J per token.", *r.joules, *r.joules / all);
  }
  return text;
}

}  // namespace

std::string Explanation(const RunReport& r, const Ink& ink, size_t columns) {
  columns = std::min(columns, kMostColumns);
  const StallTimes stalls = r.stats.work.Stalls();
  const double whole = std::max(stalls.sum(), 1e-9);
  std::vector<Cause> order;
  for (size_t i = 0; i < kCauses; ++i) {
    const auto cause = static_cast<Cause>(i);
    if (stalls[cause] >= 0.005 * whole) order.push_back(cause);
  }
  std::sort(order.begin(), order.end(), [&](Cause a, Cause b) { return stalls[a] > stalls[b]; });

  const size_t beside = kCauseColumns + kMeaningColumns;
  const int bar = static_cast<int>(std::clamp<size_t>(columns, beside + 8, beside + 28) - beside);
  std::string out = Wrapped(Bound(r), 0, columns) + "\n";
  out += Printf("Where %.2f s went:\n", whole);
  for (const Cause cause : order) {
    const double share = stalls[cause] / whole;
    const Words words = WordsOf(cause);
    out += Printf("  %-14s %8.3f s %3.0f %%  %s%s%s  %s\n", words.name, stalls[cause], 100 * share,
                  ink.strong, ink.Bar(share, bar).c_str(), ink.plain, words.meaning);
  }
  for (const Cause cause : order) {
    const std::string advice = stalls[cause] >= kWorthAdvice * whole ? Advice(r, cause) : "";
    if (!advice.empty()) out += "- " + Wrapped(advice, 2, columns) + "\n";
  }
  return out + Wrapped(Memory(r), 0, columns) + "\n";
}

}  // namespace sluice
