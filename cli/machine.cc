// sluice machine: what this machine is and how fast it can be, measured: cores,
// caches and nodes as a picture, read bandwidth in steps, what each format's kernel
// streams and multiplies.
#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/ink.h"
#include "cli/progress.h"
#include "cli/wrap.h"
#include "src/machine/ceilings.h"
#include "src/machine/memory_use.h"
#include "src/machine/simd_target.h"
#include "src/text/json_text.h"

namespace sluice {
namespace {

struct MachineFlags {
  bool measure = false, json = false;
  int threads = 0, threads_batch = 0;
};

constexpr size_t kFew = 1, kMany = 256;  // rows of the shown rates

// ---- JSON ---------------------------------------------------------------------------------------

boost::json::value NowAndGood(const Ceilings& c, const std::string& name) {
  const std::optional<double> now = c.Now(name), good = c.Good(name);
  if (!now) return nullptr;
  const Ceilings::History& history = c.rates.at(name);
  return boost::json::object{
      {"now", *now}, {"p95", *good}, {"samples", history.values.size()}, {"measured", history.at}};
}

boost::json::object TopologyJson(const Topology& m) {
  boost::json::array cores;
  for (const Core& core : m.cores) {
    cores.push_back(
        boost::json::object{{"node", core.numa_node},
                            {"kind", core.kind},
                            {"cpus", boost::json::array(core.cpus.begin(), core.cpus.end())}});
  }
  boost::json::object o{{"cpu", m.cpu_name},
                        {"target", SimdTarget()},
                        {"cores", std::move(cores)},
                        {"machine_cores", m.machine_cores},
                        {"nodes", m.numa_nodes},
                        {"l1d_bytes", m.l1d_bytes},
                        {"l2_bytes", m.l2_bytes},
                        {"l3_bytes", m.l3_bytes},
                        {"memory_bytes", m.memory_bytes},
                        {"usable_memory_bytes", m.UsableMemoryBytes()},
                        {"available_memory_bytes", AvailableMemoryBytes()}};
  o["cpu_quota"] = m.cpu_quota ? boost::json::value(*m.cpu_quota) : nullptr;
  o["memory_limit_bytes"] = m.memory_limit ? boost::json::value(*m.memory_limit) : nullptr;
  return o;
}

void PrintJson(const Topology& m, const Ceilings& c, int decode, int prefill) {
  boost::json::object o = TopologyJson(m);
  o["decode_threads"] = decode;
  o["prefill_threads"] = prefill;
  boost::json::object rates;
  for (const auto& [name, history] : c.rates) rates[name] = NowAndGood(c, name);
  o["rates"] = std::move(rates);
  std::printf("%s\n", ToJson(o).c_str());
}

// ---- Picture ------------------------------------------------------------------------------------

std::string Cache(uint64_t bytes) {
  if (bytes == 0) return "?";
  return bytes >= 1 << 20 ? Text("%.4g MiB", static_cast<double>(bytes) / (1 << 20))
                          : Text("%.4g KiB", static_cast<double>(bytes) / (1 << 10));
}

std::string Numbers(const std::vector<int>& cpus) {
  std::string text;
  for (const int cpu : cpus) text += (text.empty() ? "" : ",") + std::to_string(cpu);
  return text;
}

// Each node's cores in boxes, six a line, which 80 columns hold where CPUs have three digits.
void PrintNodes(const Topology& m, const Ink& ink) {
  constexpr size_t kLine = 6;
  for (int node = 0; node < m.numa_nodes; ++node) {
    std::vector<const Core*> cores;
    for (const Core& core : m.cores) {
      if (core.numa_node == node) cores.push_back(&core);
    }
    if (cores.empty()) continue;
    for (size_t i = 0; i < cores.size(); i += kLine) {
      std::string line = i == 0 ? Text("  node %-2d ", node) : std::string(10, ' ');
      for (size_t j = i; j < cores.size() && j < i + kLine; ++j) {
        const Core& core = *cores[j];
        const std::string cpus = Numbers(core.cpus);
        line += std::string(core.kind == 0 ? ink.strong : ink.plain) + "[" + cpus + "]" +
                ink.plain + " ";
      }
      std::printf("%s\n", line.c_str());
    }
  }
  std::printf("  %s[cpu,sibling] is a core of ours%s%s%s\n", ink.dim,
              m.core_kinds > 1 ? "; bright: the fastest kind" : "",
              m.machine_cores > static_cast<int>(m.cores.size())
                  ? Text("; the machine has %d", m.machine_cores).c_str()
                  : "",
              ink.plain);
}

void PrintReads(const Topology& m, const Ceilings& c, int threads, const Ink& ink) {
  struct Step {
    std::string label, name;
  };
  std::vector<Step> steps = {{"L1 " + Cache(m.l1d_bytes), CacheRate(1)},
                             {"L2 " + Cache(m.l2_bytes), CacheRate(2)},
                             {"L3 " + Cache(m.l3_bytes), CacheRate(3)}};
  // What models read a token that are small against the caches (ReadRate).
  std::map<int, std::string> few;
  for (const auto& [name, history] : c.rates) {
    int megabytes = 0;
    if (std::sscanf(name.c_str(), "read.%dMB", &megabytes) == 1) few[megabytes] = name;
  }
  for (const auto& [megabytes, name] : few) steps.push_back({Text("%d MB", megabytes), name});
  steps.push_back({"memory", kReadRate});
  for (int node = 0; m.numa_nodes > 1 && node < m.numa_nodes; ++node) {
    steps.push_back({Text("  node %d", node), NodeRate(node)});
  }
  double most = 0;
  for (const Step& s : steps) most = std::max(most, c.Good(s.name).value_or(0));
  std::printf("\n%sread, %d thread%s          now     p95 GB/s%s\n", ink.dim, threads,
              threads == 1 ? " " : "s", ink.plain);
  for (const Step& s : steps) {
    const std::optional<double> now = c.Now(s.name);
    if (!now) continue;
    const bool ceiling = s.name == kReadRate;
    std::printf("  %-16s %9.1f %s%7.1f%s  %s%s%s%s\n", s.label.c_str(), *now,
                ceiling ? ink.strong : "", *c.Good(s.name), ink.plain, ink.good,
                ink.Bar(*c.Good(s.name) / most, 24).c_str(), ink.plain,
                ceiling ? " decode's ceiling" : "");
  }
}

void PrintKernels(const Ceilings& c, const Ink& ink) {
  // Whoever streams faster than the probe read has shown that the ceiling is higher.
  double ceiling = c.Good(kReadRate).value_or(0);
  for (const KernelId& id : AllCeilings().kernels) {
    ceiling = std::max(ceiling, c.Good(StreamRate(id)).value_or(0));
  }
  std::printf("\n%sweights    streams GB/s    of the  multiply-adds, 1e9/s%s\n", ink.dim,
              ink.plain);
  std::printf("%sformat        now    p95  ceiling    1 row  %3zu rows%s\n", ink.dim, kMany,
              ink.plain);
  for (const KernelId& id : AllCeilings().kernels) {
    const std::optional<double> stream = c.Now(StreamRate(id));
    if (!stream) continue;
    const double good = *c.Good(StreamRate(id)), share = ceiling > 0 ? good / ceiling : 0;
    std::printf("  %-8s %6.1f %6.1f   %s%4.0f %%%s %8.0f %9.0f  %s\n", id.format->name, *stream,
                good, share >= 0.8 ? ink.good : ink.poor, 100 * share, ink.plain,
                c.Good(MultiplyRate(id, kFew)).value_or(0),
                c.Good(MultiplyRate(id, kMany)).value_or(0), ink.Bar(share, 16).c_str());
  }
  for (const AttentionId& id : AllCeilings().attention) {
    std::printf("  attention over %s keys of %zu: prompts %.0f, single rows %.0f\n",
                KvTypeName(id.shape.type), id.shape.key_dim,
                c.Good(AttentionRate(id, true)).value_or(0),
                c.Good(AttentionRate(id, false)).value_or(0));
  }
  std::printf("  a barrier %.2f us, a row of 2048 values normed and quantised %.2f us\n",
              c.Good(kBarrierTime).value_or(0), 2.048 * c.Good(kRowTime).value_or(0));
}

void PrintText(const Topology& m, const Ceilings& c, int decode, int prefill) {
  const Ink ink = Ink::For(stdout);
  std::printf("%s%s%s, %s\n", ink.strong, m.cpu_name.c_str(), ink.plain, SimdTarget().c_str());
  std::string facts = Text("%zu core%s, %d thread%s decode, %d prefill", m.cores.size(),
                           m.cores.size() == 1 ? "" : "s", decode, decode == 1 ? "" : "s", prefill);
  if (m.cpu_quota) facts += Text(", quota of %.2f CPUs", *m.cpu_quota);
  facts += ", " + HumanBytes(m.memory_bytes) + " of memory";
  if (m.memory_limit) facts += ", limit " + HumanBytes(*m.memory_limit);
  facts += ", " + HumanBytes(AvailableMemoryBytes()) + " free";
  std::printf("%s\n", Wrapped(facts, 2, ColumnsOf(stdout)).c_str());
  PrintNodes(m, ink);
  PrintReads(m, c, decode, ink);
  PrintKernels(c, ink);
  const auto read = c.rates.find(kReadRate);
  if (read == c.rates.end()) return;
  const std::time_t at = static_cast<std::time_t>(read->second.at);
  std::tm utc{};
  char when[32] = "";
  if (gmtime_r(&at, &utc) != nullptr) std::strftime(when, sizeof(when), "%F %T UTC", &utc);
  std::printf("%smeasured %zu times, last %s; --measure measures again%s\n", ink.dim,
              read->second.values.size(), when, ink.plain);
}

Status Machine(const MachineFlags& flags) {
  const MachineProfile profile =
      flags.threads == 0 ? ProfileOfThisMachine() : DefaultProfile(ThisMachine());
  // More threads than run at once take turns: nothing is faster for it, and measuring them is slow.
  const auto at_once = [](int threads) { return ThisMachine().RunningAtOnce(threads); };
  const int decode = at_once(flags.threads > 0 ? flags.threads : profile.decode_threads);
  const int prefill = at_once(flags.threads_batch > 0 ? flags.threads_batch
                              : flags.threads > 0     ? flags.threads
                                                      : profile.prefill_threads);
  Ceilings ceilings = KeptCeilings(decode, prefill);
  const CeilingList all = AllCeilings();
  const CeilingList list = flags.measure ? all : Lacking(all, ceilings);
  ASSIGN_OR_RETURN(const std::unique_ptr<ThreadTeam> team,
                   ThreadTeam::Create(std::max(decode, prefill)));
  RETURN_IF_ERROR(MeasureCeilings(*team, decode, prefill, list, &ceilings));
  KeepCeilings(ceilings);
  flags.json ? PrintJson(ThisMachine(), ceilings, decode, prefill)
             : PrintText(ThisMachine(), ceilings, decode, prefill);
  return Status();
}

}  // namespace

void AddMachine(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<MachineFlags>();
  CLI::App* c =
      app.add_subcommand("machine", "Show what this machine is and its ceilings, measured");
  c->add_flag("--measure", flags->measure,
              "Measure again (under 3 s) instead of showing what is kept");
  c->add_option("-t,--threads", flags->threads, "Decode threads; 0: what measured best")
      ->check(CLI::Range(0, 1024));
  c->add_option("--tb,--threads-batch", flags->threads_batch, "Prefill threads; 0: as --threads")
      ->check(CLI::Range(0, 1024));
  c->add_flag("--json", flags->json, "One JSON object");
  c->footer("Example:\n  sluice machine --measure");
  c->callback([flags, exit_code] {
    if (Status s = Machine(*flags); !s.ok()) *exit_code = ReportError("machine", s);
  });
}

}  // namespace sluice
