// Checks of memory: pages, swap, room, nodes.
#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "src/machine/checkup_checks.h"
#include "src/machine/other_memory.h"
#include "src/machine/quota.h"
#include "src/machine/read_in_turns.h"

namespace sluice {
namespace {

constexpr char kHugeEnabled[] = "/sys/kernel/mm/transparent_hugepage/enabled";
constexpr char kNodes[] = "/sys/devices/system/node/";
constexpr uint64_t kProgramMib = 256;
constexpr double kLowMemory = 0.1;    // of all memory
constexpr double kHugeGain = 1.05;    // below, 2 MB pages do not matter here
constexpr double kLosingGain = 0.95;  // below, sluice takes small pages by itself
constexpr double kPressureNote = 1, kPressureWarning = 10;  // % of time, PSI
constexpr double kFast_mb_s = 3000;  // a disk that was not measured: at best this

Result<uint64_t> MemInfo(const SystemFiles& files, const char* key) {
  ASSIGN_OR_RETURN(const double kb, files.FieldNumber("/proc/meminfo", key));
  return static_cast<uint64_t>(kb * 1024);
}

// What 2 MB pages bring on this machine, or where they were measured.
Cost PageCost(const CheckupInput& in) {
  if (const auto gain = in.measured.huge_page_gain) {
    return Measure(100 * std::max(0.0, 1 - 1 / *gain), CostUnit::kDecode,
                   "the same memory read from 4 KiB and from 2 MiB pages");
  }
  return Model(35, CostUnit::kDecode,
               "62 and 96 tok/s, Gemma 3 270M on Zen 4, one thread (bench/README.md)");
}

uint64_t Need(const ModelNeed& model) {
  return std::max(model.panel_bytes, model.file_bytes / 4) + model.kv_bytes;
}

std::string NeedText(const ModelNeed& m) {
  return Size(Need(m)) + " (weights " + Size(Need(m) - m.kv_bytes) + ", keys and values of " +
         std::to_string(m.positions) + " positions " + Size(m.kv_bytes) + ")";
}

// Weights that do not fit are read again for every token.
Cost ReadAgain(const CheckupInput& in, uint64_t missing) {
  const Place* place = FindPlace(in, "cache");
  if (place == nullptr || !place->read_mb_s) place = FindPlace(in, "model");
  const bool measured = place != nullptr && place->read_mb_s;
  const double rate = measured ? *place->read_mb_s : kFast_mb_s;
  return Model(static_cast<double>(missing) * 1e-6 / rate, CostUnit::kSecondsPerToken,
               Size(missing) + " read again for each token at " + Printf("%.0f MB/s", rate) +
                   (measured ? " (measured)" : " (a fast disk)"));
}

// MiB that a control group should allow: the model, a quarter more, and the program with its
// buffers; without a model all but an eighth of the machine's.
uint64_t WantedLimit(const CheckupInput& in) {
  if (in.model) return ((Need(*in.model) + Need(*in.model) / 4) >> 20) + kProgramMib;
  const Result<uint64_t> total = MemInfo(in.files, "MemTotal:");
  return total.ok() ? (*total - *total / 8) >> 20 : 0;
}

std::string DockerMemory(uint64_t mib) {
  const auto m = static_cast<unsigned long long>(mib);
  return Printf("docker update --memory %llum --memory-swap %llum CONTAINER", m, m);
}

}  // namespace

Finding CheckHugePages(const CheckupInput& in) {
  const char* const name = "huge pages";
  const Result<std::string> mode = in.files.Chosen(kHugeEnabled);
  if (!mode.ok()) return CannotTell(name, mode.status().message());
  const auto gain = in.measured.huge_page_gain;
  std::string found = "transparent huge pages: " + *mode;
  if (gain) found += Printf(", 2 MiB pages read %.2f times as fast as 4 KiB pages", *gain);
  if (*mode != "never") {
    if (gain && *gain < kLosingGain) found += "; sluice takes small ones then";
    return Ok(name, found);
  }
  const bool matters = !gain || *gain >= kHugeGain;
  return {name,
          matters ? Severity::kWarning : Severity::kNote,
          found,
          PageCost(in),
          {std::string("echo madvise | sudo tee ") + kHugeEnabled,
           "transparent_hugepage=madvise on the kernel's command line, to keep it"}};
}

Finding CheckPanelPages(const CheckupInput& in) {
  const char* const name = "panel pages";
  if (!in.model || !in.model->panels_resident_bytes) return Ok(name, "no panels yet");
  if (!in.model->huge_share) return Ok(name, "the panels are not in memory yet");
  const double share = *in.model->huge_share;
  const std::string found = Printf("%.0f %% of the panels are mapped by 2 MiB pages", 100 * share);
  const auto gain = in.measured.huge_page_gain;
  if (share >= 0.9 || (gain && *gain < kHugeGain)) return Ok(name, found);
  const Place* place = FindPlace(in, "cache");
  Cost cost = PageCost(in);
  cost.value *= 1 - share;
  return {name,
          Severity::kWarning,
          found + (place != nullptr ? " (" + place->file_system + ")" : ""),
          cost,
          {"sluice run --huge-pages on (a copy in memory)",
           "a file system with large folios under the cache folder: xfs, or ext4 from Linux 6.16 "
           "on; then delete the panels, they are written anew"}};
}

// See other_memory.h.
Finding CheckPanelMemory(const CheckupInput& in) {
  const char* const name = "panel memory";
  if (!in.model || !in.model->panels_resident_bytes) return Ok(name, "no panels yet");
  const auto panels = in.measured.panel_read_gb_s, others = in.measured.read_gb_s;
  if (!panels || !others) return Ok(name, "not measured");
  const MemoryRates rates{*panels, *others};
  if (!rates.Slow()) return Ok(name, Printf("the panels read at %.1f GB/s", *panels));
  const std::string found = Printf(
      "the pages that hold the panels read at %.1f GB/s, others at %.1f GB/s", *panels, *others);
  const char* const anew = "delete the panels when memory is free; they are written anew";
  const uint64_t bytes = in.model->panel_bytes;
  if (bytes >= kLeastReadBytes && bytes <= in.model->copy_room_bytes) {
    return {name,
            Severity::kNote,
            found + ": a run copies the panels there",
            Model(static_cast<double>(bytes), CostUnit::kBytes, "the copy"),
            {anew}};
  }
  return {name,
          Severity::kWarning,
          found,
          Measure(100 * (1 - *panels / *others), CostUnit::kDecode, "both read here and now"),
          {"sluice run --weights repack (panels in other memory)", anew}};
}

Finding CheckReservedPages(const CheckupInput& in) {
  const char* const name = "reserved pages";
  const Result<double> pages = in.files.FieldNumber("/proc/meminfo", "HugePages_Free:");
  const Result<uint64_t> size = MemInfo(in.files, "Hugepagesize:");
  if (!pages.ok() || !size.ok()) return Ok(name, "no pool of huge pages here");
  const auto bytes = static_cast<uint64_t>(*pages) * *size;
  if (bytes == 0) return Ok(name, "none");
  return {name,
          Severity::kNote,
          Size(bytes) + " are set aside in the pool of huge pages, which sluice does not use",
          Model(static_cast<double>(bytes), CostUnit::kBytes, "free pages times their size"),
          {"sudo sysctl vm.nr_hugepages=0"}};
}

Finding CheckSwap(const CheckupInput& in) {
  const char* const name = "swap";
  const Result<uint64_t> total = MemInfo(in.files, "SwapTotal:");
  const Result<uint64_t> free = MemInfo(in.files, "SwapFree:");
  if (!total.ok()) return CannotTell(name, total.status().message());
  if (!free.ok()) return CannotTell(name, free.status().message());
  if (*total == 0) return Ok(name, "none");
  const uint64_t used = *total - std::min(*total, *free);
  const Result<double> swappiness = in.files.Number("/proc/sys/vm/swappiness");
  const Result<std::string> zswap = in.files.Text("/sys/module/zswap/parameters/enabled");
  std::string found = Size(used) + " of " + Size(*total) + " in use";
  if (swappiness.ok()) found += Printf(", swappiness %.0f", *swappiness);
  if (zswap.ok() && *zswap == "Y") found += ", zswap";
  const std::vector<std::string> fix = {"sluice ... --mlock", "sudo sysctl vm.swappiness=1",
                                        "sudo swapoff -a (when there is room)"};
  if (in.measured.idle && in.measured.idle->swapped_in_mb_s > 1) {
    return {name,
            Severity::kWarning,
            found + Printf("; %.0f MB/s are read back now", in.measured.idle->swapped_in_mb_s),
            {},
            fix};
  }
  // Keys and values are what can be swapped: mapped weights are dropped instead.
  if (used > *total / 4) {
    Finding f{name, Severity::kWarning, found + "; memory was short", {}, fix};
    if (in.model) {
      f.cost = Model(static_cast<double>(in.model->kv_bytes) / 300e6, CostUnit::kSeconds,
                     "to read keys and values (" + Size(in.model->kv_bytes) +
                         ") back at 300 MB/s in small pieces");
    }
    return f;
  }
  if (swappiness.ok() && *swappiness > 100) {
    return {
        name, Severity::kNote, found + "; programs are swapped before files are dropped", {}, fix};
  }
  return Ok(name, found);
}

Finding CheckMemory(const CheckupInput& in) {
  const char* const name = "memory";
  const Result<uint64_t> total = MemInfo(in.files, "MemTotal:");
  const Result<uint64_t> available = MemInfo(in.files, "MemAvailable:");
  if (!total.ok()) return CannotTell(name, total.status().message());
  if (!available.ok()) return CannotTell(name, available.status().message());
  const std::string free = Size(*available) + " of " + Size(*total) + " available";
  const std::vector<std::string> fix = {
      "a smaller quantisation or context (-c), or end programs that hold memory (ps aux --sort "
      "-rss | head)"};
  if (!in.model) {
    if (static_cast<double>(*available) >= kLowMemory * static_cast<double>(*total)) {
      return Ok(name, free);
    }
    return {name, Severity::kWarning, "only " + free, {}, fix};
  }
  // Weights in the page cache are counted as available.
  const uint64_t need = Need(*in.model);
  if (need <= *available) return Ok(name, free + ", needed " + NeedText(*in.model));
  const bool never = need > *total;
  return {name, never ? Severity::kProblem : Severity::kWarning,
          free + ", needed " + NeedText(*in.model), ReadAgain(in, need - *available), fix};
}

Finding CheckMemoryLimit(const CheckupInput& in) {
  const char* const name = "memory limit";
  const std::optional<uint64_t> limit = MemoryLimit(in.files.root());
  if (!limit) {
    const bool container = in.files.Exists("/.dockerenv") || in.files.Exists("/run/.containerenv");
    if (!container) return Ok(name, "none");
    return {name,
            Severity::kNote,
            "a container without a memory limit: another's appetite can end this process",
            {},
            {DockerMemory(WantedLimit(in))}};
  }
  if (!in.model) return Ok(name, Size(*limit));
  const uint64_t need = Need(*in.model);
  const std::string found =
      "the control group allows " + Size(*limit) + ", needed " + NeedText(*in.model);
  if (need <= *limit) return Ok(name, found);
  const uint64_t wanted = WantedLimit(in);
  return {name,
          Severity::kProblem,
          found,
          in.model->kv_bytes > *limit ? Cost{} : ReadAgain(in, need - *limit),
          {DockerMemory(wanted), Printf("sudo systemctl set-property UNIT MemoryMax=%lluM",
                                        static_cast<unsigned long long>(wanted))}};
}

Finding CheckMemoryPressure(const CheckupInput& in) {
  const char* const name = "memory pressure";
  if (!in.files.Exists("/proc/pressure/memory")) return Ok(name, "the kernel does not tell");
  const Result<std::string> some = in.files.Field("/proc/pressure/memory", "some avg10=");
  if (!some.ok()) return CannotTell(name, some.status().message());
  const double share = std::strtod(some->c_str(), nullptr);
  const std::string found = Printf("programs waited for memory %.1f %% of the last 10 s", share);
  if (share < kPressureNote) return Ok(name, found);
  return {name,
          share >= kPressureWarning ? Severity::kWarning : Severity::kNote,
          found,
          Measure(share, CostUnit::kSpeed, "/proc/pressure/memory, all programs"),
          {"end what holds memory (ps aux --sort -rss | head)"}};
}

Finding CheckOvercommit(const CheckupInput& in) {
  const char* const name = "overcommit";
  const Result<double> mode = in.files.Number("/proc/sys/vm/overcommit_memory");
  if (!mode.ok()) return CannotTell(name, mode.status().message());
  if (*mode != 2) return Ok(name, Printf("vm.overcommit_memory=%.0f", *mode));
  return {name,
          Severity::kWarning,
          "vm.overcommit_memory=2: memory that is reserved counts as used, so long contexts and "
          "--kv-memory may be refused",
          {},
          {"sudo sysctl vm.overcommit_memory=0"}};
}

Finding CheckNumaBalancing(const CheckupInput& in) {
  const char* const name = "numa balancing";
  const size_t nodes = in.files.Numbered("/sys/devices/system/node", "node").size();
  if (nodes < 2) return Ok(name, "one memory node");
  const std::string file = "/proc/sys/kernel/numa_balancing";
  if (!in.files.Exists(file)) return Ok(name, "the kernel has none");
  const Result<double> on = in.files.Number(file);
  if (!on.ok()) return CannotTell(name, on.status().message());
  if (*on == 0) return Ok(name, "off");
  return {name,
          Severity::kWarning,
          "on: the kernel unmaps memory to see who uses it; sluice's threads are bound and their "
          "weights lie where they are read",
          Model(6.5, CostUnit::kSpeed,
                "256 MiB are unmapped a second (the kernel's defaults), 65536 faults of 1 us with "
                "4 KiB pages; nearly nothing with 2 MiB pages"),
          {"sudo sysctl kernel.numa_balancing=0"}};
}

Finding CheckNumaPlacement(const CheckupInput& in) {
  const char* const name = "numa placement";
  const std::vector<std::string> nodes = in.files.Numbered("/sys/devices/system/node", "node");
  if (nodes.size() < 2) return Ok(name, "one memory node");
  std::string found = Printf("%zu nodes, free:", nodes.size());
  uint64_t least = UINT64_MAX;
  for (const std::string& node : nodes) {
    // Lines read "Node 0 MemFree:  123 kB"; file pages can be dropped.
    const std::string key = "Node " + node.substr(4) + " ";
    uint64_t free = 0;
    for (const char* field : {"MemFree:", "Inactive(file):"}) {
      const Result<double> kb = in.files.FieldNumber(kNodes + node + "/meminfo", key + field);
      if (!kb.ok()) return CannotTell(name, kb.status().message());
      free += static_cast<uint64_t>(*kb * 1024);
    }
    least = std::min(least, free);
    found += " " + Size(free);
  }
  if (!in.model) return Ok(name, found);
  const auto& lie = in.model->bytes_per_node;
  uint64_t all = 0, most = 0;
  for (const uint64_t bytes : lie) {
    all += bytes;
    most = std::max(most, bytes);
  }
  if (all > 0) {
    found += "; pages of the panel file:";
    for (const uint64_t bytes : lie) found += " " + Size(bytes);
    const double across = 1 - 1.0 / static_cast<double>(nodes.size());
    found += Printf(" (mapped as they lie, %.0f %% would be read across)", 100 * across);
  }
  const uint64_t share = Need(*in.model) / nodes.size();
  if (share <= least) return Ok(name, found + "; each node has room for its share");
  return {name,
          Severity::kWarning,
          found + "; a node has no room for its share of " + Size(share),
          Model(100 * (1 - 1.0 / static_cast<double>(nodes.size())), CostUnit::kDecode,
                "all rows read from one node's memory, at its bandwidth"),
          {"echo 1 | sudo tee /proc/sys/vm/drop_caches", "sluice ... --numa interleave"}};
}

}  // namespace sluice
