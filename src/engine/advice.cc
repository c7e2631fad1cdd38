#include "src/engine/advice.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "src/engine/machine_speed.h"

namespace sluice {
namespace {

constexpr double kWorthSaying = 0.97;  // of the distance now: less of a gain is no advice

// A change that can be put on top of another.
struct Setting {
  std::string what, change;
  Workload workload;
};

std::string Milliseconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.0f", 1e3 * seconds);
  return text;
}

class Adviser {
 public:
  explicit Adviser(const AdviceQuestion& q) : q_(q), base_(WorkloadOf(q)) {}

  Result<std::vector<Advice>> Run() {
    ASSIGN_OR_RETURN(const Advice now, Try("now", "nothing changed", *q_.model, base_));
    std::vector<Advice> found;
    const auto helps = [&](const Advice& a) {
      return (a.distance < kWorthSaying * now.distance && a.memory.fits()) ||
             (!now.memory.fits() && a.memory.fits());
    };
    if (!now.meets()) {
      for (const Setting& s : Settings()) {
        ASSIGN_OR_RETURN(Advice a, Try(s.what, s.change, *q_.model, s.workload));
        if (helps(a)) found.push_back(std::move(a));
      }
      RETURN_IF_ERROR(TryFormats(helps, &found));
      const bool met =
          std::any_of(found.begin(), found.end(), [](const Advice& a) { return a.meets(); });
      if (!met) RETURN_IF_ERROR(TryPairs(helps, &found));
      Trim(&found);
    }
    RETURN_IF_ERROR(TryHardware(now, &found));
    std::stable_sort(found.begin(), found.end(),
                     [](const Advice& a, const Advice& b) { return a.meets() > b.meets(); });
    found.insert(found.begin(), now);
    return found;
  }

 private:
  Result<Advice> Try(const std::string& what, const std::string& change, const ModelWork& model,
                     const Workload& workload) const {
    return TryOn(what, change, model, workload, q_.speed(model, workload.kv_type), q_.room_bytes);
  }

  Result<Advice> TryOn(const std::string& what, const std::string& change, const ModelWork& model,
                       const Workload& workload, const MachineSpeed& speed,
                       double room_bytes) const {
    Advice a;
    a.what = what;
    a.change = change;
    a.prediction = Predict(model, speed, workload);
    ASSIGN_OR_RETURN(a.memory, PlanMemory(model, workload, q_.threads, room_bytes));
    a.distance = q_.goal.Distance(a.prediction);
    return a;
  }

  std::vector<Setting> Settings() const {
    std::vector<Setting> all;
    const auto add = [&](const char* what, const std::string& change, const auto& set) {
      Setting s{what, change, base_};
      set(&s.workload);
      all.push_back(std::move(s));
    };
    const Config& c = q_.model->config();
    if (base_.kv_type != KvType::kQ8 && c.key_dim % 32 == 0 && c.value_dim % 32 == 0) {
      add("kv-type", "--kv-type q8", [](Workload* w) { w->kv_type = KvType::kQ8; });
    }
    for (const double stall_s : {0.05, 0.1, 0.2, 0.5, 1.0, 2.0}) {
      if (base_.concurrency == 1 || stall_s == base_.max_stall_s) continue;
      add("prefill", "--max-stall-ms " + Milliseconds(stall_s),
          [&](Workload* w) { w->max_stall_s = stall_s; });
    }
    for (const size_t chunk : {128, 256, 1024, 2048}) {
      if (chunk == base_.chunk || (chunk > base_.chunk && base_.prompt <= base_.chunk)) continue;
      add("prefill", "--max-num-batched-tokens " + std::to_string(chunk),
          [&](Workload* w) { w->chunk = chunk; });
    }
    for (size_t n = base_.concurrency / 2; n >= 1; n /= 2) {
      add("concurrency", "--max-num-seqs " + std::to_string(n),
          [&](Workload* w) { w->max_sequences = n; });
    }
    const size_t needed = base_.prompt + base_.output;
    if (base_.context > needed) {
      add("context", "--ctx-size " + std::to_string(needed),
          [&](Workload* w) { w->context = needed; });
    }
    return all;
  }

  template <class F>
  Status TryFormats(const F& helps, std::vector<Advice>* found) const {
    for (const Format* format : q_.formats) {
      ASSIGN_OR_RETURN(Advice a, Try("format", std::string("weights in ") + format->name,
                                     q_.model->In(*format), base_));
      if (helps(a)) found->push_back(std::move(a));
    }
    return Status();
  }

  template <class F>
  Status TryPairs(const F& helps, std::vector<Advice>* found) const {
    const std::vector<Setting> settings = Settings();
    for (const Format* format : q_.formats) {
      const ModelWork model = q_.model->In(*format);
      for (const Setting& s : settings) {
        ASSIGN_OR_RETURN(
            Advice a,
            Try("format and " + s.what,
                std::string("weights in ") + format->name + " and " + s.change, model, s.workload));
        if (helps(a) && a.meets()) found->push_back(std::move(a));
      }
    }
    return Status();
  }

  // Of each kind those that reach the goal, two at most, or else the best one.
  static void Trim(std::vector<Advice>* found) {
    constexpr size_t kEach = 2;
    std::vector<Advice> kept;
    std::vector<std::string> kinds;
    for (const Advice& a : *found) {
      if (std::find(kinds.begin(), kinds.end(), a.what) == kinds.end()) kinds.push_back(a.what);
    }
    for (const std::string& kind : kinds) {
      std::vector<Advice> same;
      for (const Advice& a : *found) {
        if (a.what == kind) same.push_back(a);
      }
      std::stable_sort(same.begin(), same.end(), [](const Advice& a, const Advice& b) {
        // Of formats that reach the goal, the most precise ones change the answers least.
        if (a.meets() && b.meets()) return a.memory.weights_bytes > b.memory.weights_bytes;
        return a.meets() != b.meets() ? a.meets() : a.distance < b.distance;
      });
      const size_t keep = same[0].meets() ? kEach : 1;
      for (size_t i = 0; i < same.size() && i < keep; ++i) {
        if (i == 0 || same[i].meets()) kept.push_back(std::move(same[i]));
      }
    }
    *found = std::move(kept);
  }

  // The slowest two machines that reach it as it is.
  Status TryHardware(const Advice& now, std::vector<Advice>* found) const {
    if (now.meets()) return Status();
    std::vector<Advice> reach;
    std::vector<double> gb_s;
    for (const Device& d : q_.devices) {
      const double room = d.memory_gb > 0 ? 1e9 * d.memory_gb : 1e15;
      ASSIGN_OR_RETURN(Advice a, TryOn("hardware", d.name + " (" + d.description + ")", *q_.model,
                                       base_, SpeedOf(*q_.model, d), room));
      if (!a.meets()) continue;
      const auto at = std::upper_bound(gb_s.begin(), gb_s.end(), d.bandwidth_gb_s) - gb_s.begin();
      gb_s.insert(gb_s.begin() + at, d.bandwidth_gb_s);
      reach.insert(reach.begin() + at, std::move(a));
    }
    for (size_t i = 0; i < reach.size() && i < 2; ++i) found->push_back(std::move(reach[i]));
    return Status();
  }

  const AdviceQuestion& q_;
  const Workload base_;
};

}  // namespace

Workload WorkloadOf(const AdviceQuestion& q) {
  Workload w = q.workload;
  w.output = q.goal.output.value_or(w.output);
  if (q.goal.prompt) {
    w.prompt = *q.goal.prompt;
  } else if (q.goal.context && *q.goal.context > w.output) {
    w.prompt = *q.goal.context - w.output;  // a goal for a context is one for a full context
  }
  w.concurrency = q.goal.users.value_or(w.concurrency);
  w.context = q.goal.context.value_or(w.context);
  if (w.context > 0) w.context = std::max(w.context, w.prompt + w.output);
  return w;
}

Result<std::vector<Advice>> Advise(const AdviceQuestion& question) {
  return Adviser(question).Run();
}

}  // namespace sluice
