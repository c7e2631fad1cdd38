#include "cli/report.h"

#include <cinttypes>
#include <cstdio>

#include "cli/progress.h"
#include "src/engine/pass_work.h"
#include "src/machine/simd_target.h"
#include "src/machine/topology.h"
#include "src/server/timings.h"

namespace sluice {

namespace {

double Ratio(double a, double b) { return b > 0 ? a / b : 0; }

template <class... T>
std::string Printf(const char* format, T... values) {
  char buffer[160];
  std::snprintf(buffer, sizeof(buffer), format, values...);
  return buffer;
}

std::string Hash(uint64_t hash) { return Printf("%016" PRIx64, hash); }

}  // namespace

double RunReport::prefill_tok_s() const {
  return Ratio(static_cast<double>(stats.prefill_rows), stats.prefill_s);
}
double RunReport::decode_tok_s() const {
  return Ratio(static_cast<double>(stats.decode_passes), stats.decode_s);
}
double RunReport::ms_per_token() const {
  return 1e3 * Ratio(stats.decode_s, static_cast<double>(stats.decode_passes));
}
double RunReport::bytes_per_token() const {
  return Ratio(static_cast<double>(stats.decode_bytes), static_cast<double>(stats.decode_passes));
}
double RunReport::gb_s() const {
  return 1e-9 * Ratio(static_cast<double>(stats.decode_bytes), stats.decode_s);
}
double RunReport::ceiling_pct() const { return 100 * Ratio(gb_s(), read_bandwidth_gb_s); }
std::string RunReport::ceiling_remark() const {
  return CeilingRemark(ceiling_pct(), bytes_per_token(), ThisMachine().LastCacheBytes());
}

RunReport MakeReport(ModelRunner& runner, const SequenceStats& stats, bool explain) {
  // Below, arithmetic may be what binds; runs too short to tell do not wait for the answer.
  constexpr double kBandwidthExplainsPct = 80, kLongEnoughS = 0.5;
  RunReport r;
  r.stats = stats;
  if (stats.decode_passes > 0) r.read_bandwidth_gb_s = runner.ReadBandwidth();
  r.peak_rss_bytes = runner.PeakRssBytes();
  r.load_s = runner.load_seconds();
  r.target = SimdTarget();
  r.weights = LoadModeName(runner.model().load_mode());
  r.kv_type = KvTypeName(runner.kv_type());
  r.threads = runner.decode_threads();
  r.cpus = ThisMachine().cpus;
  PassCeilings& ceilings = r.stats.work.ceilings;
  ceilings.prefill.read_gb_s = ceilings.decode.read_gb_s = r.read_bandwidth_gb_s;
  const bool unexplained = r.ceiling_pct() < kBandwidthExplainsPct;
  if (explain || (unexplained && stats.decode_s > kLongEnoughS)) {
    ceilings = runner.MeasureCeilings();
  }
  if (!explain) return r;
  const auto memory = WeightMemory(runner.model());
  for (const auto part : memory) r.weights_bytes += part.size();
  r.weights_resident = ResidencyMeter(runner.model()).Share();
  r.nodes = AuditNodes(runner, ThisMachine());
  return r;
}

std::string ReportLine(const RunReport& r, bool colour) {
  const char* strong = colour ? "\033[1;36m" : "";
  const char* dim = colour ? "\033[2m" : "";
  const char* plain = colour ? "\033[0m" : "";
  std::string line = dim;
  line += Printf("prefill %zu tok %.1f tok/s", r.stats.prefill_rows, r.prefill_tok_s());
  if (r.stats.cached_tokens > 0) line += Printf(" (%zu cached)", r.stats.cached_tokens);
  if (r.stats.decode_passes > 0) {
    line += Printf(" | decode %zu tok %s%s%.1f tok/s%s%s %.2f ms/tok | %s/tok %.1f GB/s",
                   r.stats.generated_tokens, plain, strong, r.decode_tok_s(), plain, dim,
                   r.ms_per_token(), HumanBytes(static_cast<uint64_t>(r.bytes_per_token())).c_str(),
                   r.gb_s());
  } else {
    line += Printf(" | decode %zu tok", r.stats.generated_tokens);
  }
  if (r.read_bandwidth_gb_s > 0) {
    line += Printf(" = %s%s%.0f %%%s%s of %.1f GB/s", plain, strong, r.ceiling_pct(), plain, dim,
                   r.read_bandwidth_gb_s);
    const std::string remark = r.ceiling_remark();
    if (!remark.empty()) line += " (" + remark + ")";
    const CeilingShares shares = r.stats.work.decode_shares();
    if (shares.compute > shares.bandwidth) {
      line += Printf(", arithmetic binds: %.0f %% of its ceiling", 100 * shares.compute);
    }
  }
  line += colour ? "\n" : " | ";  // two lines of under 100 columns on a terminal
  line += Printf("RSS %s | load %.2f s | %s, weights %s, KV %s | logits ",
                 HumanBytes(r.peak_rss_bytes).c_str(), r.load_s, r.target.c_str(),
                 r.weights.c_str(), r.kv_type.c_str());
  return line + Hash(r.stats.logits_hash) + plain;
}

boost::json::object ReportJson(const RunReport& r) {
  return {{"prompt_tokens", r.stats.prompt_tokens},
          {"cached_tokens", r.stats.cached_tokens},
          {"prefill_tok_s", r.prefill_tok_s()},
          {"prefill_s", r.stats.prefill_s},
          {"generated_tokens", r.stats.generated_tokens},
          {"decode_tok_s", r.decode_tok_s()},
          {"ms_per_token", r.ms_per_token()},
          {"bytes_per_token", static_cast<uint64_t>(r.bytes_per_token())},
          {"gb_s", r.gb_s()},
          {"read_bandwidth_gb_s", r.read_bandwidth_gb_s},
          {"ceiling_pct", r.ceiling_pct()},
          {"ceiling_remark", r.ceiling_remark()},
          {"peak_rss_bytes", r.peak_rss_bytes},
          {"load_s", r.load_s},
          {"target", r.target},
          {"weights", r.weights},
          {"kv_type", r.kv_type},
          {"logits_hash", Hash(r.stats.logits_hash)},
          {"wall_s", r.wall_s},
          {"ceiling", CeilingJson(r.stats.work)},
          {"weights_resident_ratio", r.weights_resident},
          {"joules", r.joules ? boost::json::value(*r.joules) : boost::json::value()}};
}

}  // namespace sluice
