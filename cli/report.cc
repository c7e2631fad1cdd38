#include "cli/report.h"

#include <cinttypes>
#include <cstdio>
#include <vector>

#include "cli/progress.h"
#include "cli/wrap.h"
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

std::string ReportLine(const RunReport& r, const Ink& ink, size_t columns) {
  const auto strong = [&](const std::string& text) {
    return std::string(ink.plain) + ink.strong + text + ink.plain + ink.dim;
  };
  std::vector<std::string> parts;
  parts.push_back(Printf("prefill %zu tok %.1f tok/s", r.stats.prefill_rows, r.prefill_tok_s()));
  if (r.stats.cached_tokens > 0) parts.back() += Printf(" (%zu cached)", r.stats.cached_tokens);
  parts.push_back(Printf("decode %zu tok", r.stats.generated_tokens));
  if (r.stats.decode_passes > 0) {
    parts.back() += " " + strong(Printf("%.1f tok/s", r.decode_tok_s())) +
                    Printf(" %.2f ms/tok", r.ms_per_token());
    parts.push_back(TrafficBytes(r.bytes_per_token()) + Printf("/tok %.1f GB/s", r.gb_s()));
  }
  if (r.read_bandwidth_gb_s > 0) {
    parts.back() += " = " + strong(Printf("%.0f %%", r.ceiling_pct())) +
                    Printf(" of %.1f GB/s", r.read_bandwidth_gb_s);
    const std::string remark = r.ceiling_remark();
    if (!remark.empty()) parts.back() += " (" + remark + ")";
    const CeilingShares shares = r.stats.work.decode_shares();
    if (shares.compute > shares.bandwidth) {
      parts.push_back(Printf("arithmetic binds: %.0f %% of its ceiling", 100 * shares.compute));
    }
  }
  parts.push_back("RSS " + HumanBytes(r.peak_rss_bytes));
  parts.push_back(Printf("load %.2f s", r.load_s));
  parts.push_back(r.target + ", weights " + r.weights + ", KV " + r.kv_type);
  parts.push_back("logits " + Hash(r.stats.logits_hash));

  std::string line = ink.dim;
  size_t used = 0;
  for (const std::string& part : parts) {
    const size_t wide = TextColumns(part);
    if (used > 0) {
      const bool room = columns == 0 || used + 3 + wide <= columns;
      line += room ? " | " : "\n";
      used = room ? used + 3 : 0;
    }
    line += part;
    used += wide;
  }
  return line + ink.plain;
}

void PrintReportLine(const RunReport& report) {
  const std::string line = ReportLine(report, Ink::For(stderr), ColumnsOf(stderr, 0));
  std::fprintf(stderr, "%s\n", line.c_str());
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
