#include "src/machine/ceilings.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/machine/bandwidth.h"
#include "src/machine/profile_file.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr char kSection[] = "ceilings";
constexpr size_t kMostNames = 512;

bool IsTime(const std::string& name) {
  return name == kBarrierTime || name == kRowTime || name == kGateTime;
}

std::string NameOf(const KernelId& id) {
  return std::string(id.format->name) + (id.panels ? "" : ".rows") + (id.exact ? ".exact" : "") +
         (id.portable ? ".portable" : "");
}

Status BadHistory(const std::string& name) {
  return Status(StatusCode::kCorrupt, "ceilings: expected rates above 0 for " + name +
                                          "; remove the file or run sluice machine --measure");
}

std::string RateAt(const char* what, const KernelId& id, size_t rows) {
  return what + NameOf(id) + "." + std::to_string(rows);
}

}  // namespace

std::string NodeRate(int node) { return "read.node" + std::to_string(node); }
std::string CacheRate(int level) { return "read.L" + std::to_string(level); }
std::string ReadRate(uint64_t bytes) {
  constexpr uint64_t kMegabyte = 1'000'000;
  bytes = ReadProbeBytes(bytes);
  if (bytes == MemoryProbeBytes()) return kReadRate;
  uint64_t unit = kMegabyte;
  while (bytes / unit >= 100) unit *= 10;
  const uint64_t rounded = (bytes + unit / 2) / unit * unit / kMegabyte;
  return std::string(kReadRate) + "." + std::to_string(rounded) + "MB";
}
std::string StreamRate(const KernelId& id) { return kStreamPrefix + NameOf(id); }
std::string MultiplyRate(const KernelId& id, size_t rows) { return RateAt("multiply.", id, rows); }
std::string ProductRate(const KernelId& id, size_t rows) { return RateAt("product.", id, rows); }
std::string AttentionRate(const AttentionId& id, bool prompt) {
  return std::string(prompt ? "attention." : "row_attention.") + KvTypeName(id.shape.type) + "." +
         std::to_string(id.shape.key_dim) + "x" + std::to_string(id.shape.value_dim) +
         (prompt ? "" : "." + std::to_string(id.group));
}

std::optional<double> Ceilings::Now(const std::string& name) const {
  const auto found = rates.find(name);
  if (found == rates.end() || found->second.values.empty()) return std::nullopt;
  return found->second.values.back();
}

bool Ceilings::MeasuredSince(const std::string& name, int64_t since) const {
  const auto found = rates.find(name);
  return found != rates.end() && found->second.at >= since;
}

std::optional<double> Ceilings::Good(const std::string& name) const {
  const auto found = rates.find(name);
  if (found == rates.end() || found->second.values.empty()) return std::nullopt;
  std::vector<double> sorted = found->second.values;
  std::sort(sorted.begin(), sorted.end());
  // The nearest rank: of fewer than 20 values the best one.
  const auto n = static_cast<double>(sorted.size());
  const auto rank = static_cast<size_t>(std::ceil(0.95 * n)) - 1;
  return IsTime(name) ? sorted[sorted.size() - 1 - rank] : sorted[rank];
}

void Ceilings::Add(const std::string& name, double value, int64_t at) {
  if (!std::isfinite(value) || value <= 0) return;  // a probe that saw no time pass
  History& history = rates[name];
  history.values.push_back(value);
  if (history.values.size() > kHistory) history.values.erase(history.values.begin());
  history.at = at;
}

std::string CeilingsKey(const Topology& machine, int decode_threads, int prefill_threads) {
  return ProfileKey(machine) + ", threads " + std::to_string(decode_threads) + "/" +
         std::to_string(prefill_threads);
}

Result<Ceilings> ReadCeilings(const std::string& path, const std::string& key) {
  ASSIGN_OR_RETURN(const json::object entry, ReadMachineEntry(path, kSection, key));
  Ceilings ceilings;
  ceilings.key = key;
  const json::value* rates = entry.if_contains("rates");
  const json::object* list = rates == nullptr ? nullptr : rates->if_object();
  if (list == nullptr || list->size() > kMostNames) return BadHistory("a list").Within(path);
  for (const auto& [name, value] : *list) {
    const json::object* rate = value.if_object();
    const json::value* values = rate == nullptr ? nullptr : rate->if_contains("values");
    const json::value* at = rate == nullptr ? nullptr : rate->if_contains("at");
    if (values == nullptr || !values->is_array() || at == nullptr || !at->is_int64()) {
      return BadHistory(name).Within(path);
    }
    for (const json::value& v : values->get_array()) {
      const double x = v.is_number() ? v.to_number<double>() : 0;
      if (!std::isfinite(x) || x <= 0) return BadHistory(name).Within(path);
      ceilings.Add(name, x, at->get_int64());
    }
  }
  return ceilings;
}

Status WriteCeilings(const std::string& path, const Ceilings& ceilings) {
  json::object rates;
  for (const auto& [name, history] : ceilings.rates) {
    json::array values;
    // Four digits say all that a measurement knows.
    for (const double v : history.values) {
      const double unit = std::pow(10, std::floor(std::log10(v)) - 3);
      values.push_back(std::round(v / unit) * unit);
    }
    rates[name] = json::object{{"at", history.at}, {"values", std::move(values)}};
  }
  return WriteMachineEntry(path, kSection,
                           json::object{{"key", ceilings.key}, {"rates", std::move(rates)}});
}

Ceilings KeptCeilings(int decode_threads, int prefill_threads) {
  Ceilings none;
  none.key = CeilingsKey(ThisMachine(), decode_threads, prefill_threads);
  const Result<std::string> path = MachineFilePath();
  if (!path.ok()) return none;
  Result<Ceilings> kept = ReadCeilings(*path, none.key);
  return kept.ok() ? *std::move(kept) : none;
}

void KeepCeilings(const Ceilings& ceilings) {
  if (const Result<std::string> path = MachineFilePath(); path.ok()) {
    (void)WriteCeilings(*path, ceilings);
  }
}

CeilingList AllCeilings() {
  CeilingList list;
  list.caches = true;
  for (const Format* format : Formats()) {
    if (format->panel_block_bytes > 0) list.kernels.push_back({format, true});
  }
  const KvType type = DotsBf16({128, 128, KvType::kBF16}) ? KvType::kBF16 : KvType::kF16;
  list.attention.push_back({{128, 128, type}, 4});
  return list;
}

CeilingList Lacking(const CeilingList& list, const Ceilings& ceilings, int64_t since) {
  const auto has = [&](const std::string& name) { return ceilings.MeasuredSince(name, since); };
  CeilingList lacking;
  lacking.memory =
      list.memory && !(has(kReadRate) && has(kBarrierTime) && has(kRowTime) && has(kGateTime));
  lacking.streams = list.streams;
  lacking.caches = list.caches && !has(CacheRate(1)) && !has(CacheRate(2));
  for (const uint64_t bytes : list.reads) {
    if (!has(ReadRate(bytes))) lacking.reads.push_back(bytes);
  }
  for (const KernelId& id : list.kernels) {
    const bool streams = !list.streams || has(ProductRate(id, kProductRows[0]));
    if (!streams || !has(MultiplyRate(id, kCacheRows[0]))) lacking.kernels.push_back(id);
  }
  for (const AttentionId& id : list.attention) {
    if (!has(AttentionRate(id, true)) || !has(AttentionRate(id, false))) {
      lacking.attention.push_back(id);
    }
  }
  return lacking;
}

}  // namespace sluice
