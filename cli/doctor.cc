// sluice doctor: what keeps this machine from its speed, what that costs, how to mend it.
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "cli/command.h"
#include "cli/doctor_output.h"
#include "cli/model_path.h"
#include "cli/progress.h"
#include "cli/wrap.h"
#include "src/base/cache_folder.h"
#include "src/base/printable.h"
#include "src/engine/time_model.h"
#include "src/file/gguf.h"
#include "src/file/panel_file.h"
#include "src/file/panel_rows.h"
#include "src/machine/bandwidth.h"
#include "src/machine/checkup.h"
#include "src/machine/checkup_probes.h"
#include "src/machine/disk.h"
#include "src/machine/numa.h"
#include "src/machine/other_memory.h"
#include "src/machine/topology.h"
#include "src/model/kv_cache.h"
#include "src/model/model.h"
#include "src/server/http_server.h"
#include "src/text/json_text.h"

namespace sluice {
namespace {

constexpr double kDisk_s = 0.5;
constexpr size_t kPositions = 4096, kChunk = 512;

struct DoctorFlags {
  std::string model, root;
  bool json = false, all = false, quick = false;
};

// Nothing is read from the disk for a finding.
bool InMemory(const PanelFile& panels) {
  return panels.ResidentBytes() >= panels.bytes() / 100 * 95;
}

// The panels' map: whether it has large pages, and on which nodes it lies.
void LookAtPanels(const PanelFile& panels, ModelNeed* need) {
  need->panel_bytes = panels.bytes();
  need->panels_resident_bytes = panels.ResidentBytes();
  if (!InMemory(panels)) return;
  const MappedFile& file = panels.file();
  file.PreferHugePages(true);
  const std::span<const uint8_t> bytes = file.bytes();
  for (size_t at = 0; at < bytes.size(); at += 2 << 20) {
    static_cast<void>(*static_cast<const volatile uint8_t*>(bytes.data() + at));
  }
  need->copy_room_bytes = CopyRoomBytes();
  need->huge_share = std::min(
      1.0, static_cast<double>(file.HugeBytes()) / static_cast<double>(bytes.size() >> 21 << 21));
  if (ThisMachine().numa_nodes > 1) need->bytes_per_node = BytesPerNode(bytes.data(), bytes.size());
}

// What running the model takes. Error: it cannot be run.
Result<ModelNeed> NeedOf(const std::string& path) {
  ModelNeed need;
  need.path = path;
  ASSIGN_OR_RETURN(const std::unique_ptr<Gguf> gguf, Gguf::Open(path));
  need.file_bytes = gguf->file_bytes();
  need.file_resident_bytes = gguf->ResidentBytes();
  if (const auto panels = PanelFile::Open(*gguf); panels.ok()) {
    LookAtPanels(**panels, &need);
  } else {
    for (const GgufTensor& tensor : gguf->tensors()) {
      const auto shape = tensor.dims >= 2 ? PanelShapeOf(tensor) : std::nullopt;
      if (shape) need.panel_bytes += shape->bytes();
    }
  }
  ASSIGN_OR_RETURN(const Config config, ReadConfig(*gguf));
  need.positions = std::min(config.context, kPositions);
  need.kv_bytes = KvPagesPerSequence(config, need.positions, kChunk) *
                  KvPageBytes(KvShapeOf(config, DefaultKvType(config, false)));
  return need;
}

Place PlaceOf(const SystemFiles& files, const char* what, const std::string& path) {
  Place place;
  place.what = what;
  place.path = path;
  const std::string at = ExistingParent(path);
  place.file_system = FileSystemOf(files, at);
  place.free_bytes = FreeBytes(at);
  place.writable = access(at.c_str(), W_OK) == 0;
  return place;
}

// `file`: something to read there.
void MeasureDisk(const std::string& file, Place* place) {
  const Result<double> rate = MeasureDiskRead(file, kDisk_s);
  if (rate.ok()) {
    place->read_mb_s = *rate;
  } else {
    place->why_not_measured = rate.status().message();
  }
}

// A file to time reads of when no model was named: the largest there is.
std::string LargestModel() {
  const std::vector<ModelFile> models = ListModels();
  const auto largest =
      std::max_element(models.begin(), models.end(),
                       [](const ModelFile& a, const ModelFile& b) { return a.bytes < b.bytes; });
  return largest == models.end() ? "" : largest->path;
}

void LookAtPlaces(const DoctorFlags& flags, const std::string& model, CheckupInput* in) {
  const std::string file = model.empty() ? LargestModel() : model;
  if (!file.empty()) {
    Place place = PlaceOf(in->files, "model", file);
    if (!flags.quick) MeasureDisk(file, &place);
    in->places.push_back(std::move(place));
  }
  const Result<std::string> cache = CacheFolder();
  if (!cache.ok()) return;
  Place place = PlaceOf(in->files, "cache", *cache);
  if (!flags.quick && in->model && in->model->panels_resident_bytes) {
    if (const auto gguf = Gguf::Open(model); gguf.ok()) {
      if (const auto panels = PanelFile::PathOf(**gguf); panels.ok()) MeasureDisk(*panels, &place);
    }
  }
  in->places.push_back(std::move(place));
}

// One finding more, for a model that cannot be run at all.
Finding CannotRun(const std::string& path, const Status& why) {
  return {"model",
          Severity::kProblem,
          "cannot be run: " + why.message(),
          {},
          {"sluice inspect " + path}};
}

boost::json::object MeasuredJson(const Measured& m) {
  boost::json::object o;
  const auto add = [&](const char* name, const std::optional<double>& value) {
    if (value) o[name] = *value;
  };
  add("clock_ghz", m.clock_ghz);
  add("read_gb_s", m.read_gb_s);
  if (m.read_bytes > 0) o["read_bytes"] = m.read_bytes;
  add("panel_read_gb_s", m.panel_read_gb_s);
  add("huge_page_gain", m.huge_page_gain);
  add("target_gain", m.target_gain);
  if (m.idle) {
    o["others_busy_cpus"] = m.idle->busy_cpus;
    o["steal_cpus"] = m.idle->steal_cpus;
  }
  return o;
}

std::string HeadLine(const CheckupInput& in) {
  const Topology& machine = ThisMachine();
  std::string line = "sluice doctor: ";
  if (!in.files.root().empty()) return line + "the system files in " + in.files.root();
  line += machine.cpu_name + " | " + std::to_string(machine.cores.size()) + " of " +
          std::to_string(machine.machine_cores) + " cores | " + HumanBytes(machine.memory_bytes) +
          " | " + in.simd.running;
  char text[64];
  if (in.measured.clock_ghz) {
    std::snprintf(text, sizeof(text), " | %.2f GHz", *in.measured.clock_ghz);
    line += text;
  }
  if (in.measured.read_gb_s) {
    const uint64_t bytes = in.measured.read_bytes;
    std::snprintf(text, sizeof(text), " | reads %s%.1f GB/s",
                  bytes > 0 ? ("a token's " + TrafficBytes(bytes) + " at ").c_str() : "",
                  *in.measured.read_gb_s);
    line += text;
  }
  return line;
}

void Print(const DoctorFlags& flags, const CheckupInput& in, const std::string& model,
           const std::vector<Finding>& findings) {
  if (flags.json) {
    const SeverityCounts n = CountSeverities(findings);
    boost::json::object o{{"cpu", Printable(ThisMachine().cpu_name)},
                          {"root", Printable(flags.root, 4096)},
                          {"model", Printable(model, 4096)},
                          {"target", in.simd.running},
                          {"measured", MeasuredJson(in.measured)},
                          {"findings", FindingsJson(findings)},
                          {"problems", n.problems},
                          {"warnings", n.warnings},
                          {"notes", n.notes}};
    std::printf("%s\n", ToJson(o).c_str());
    return;
  }
  DoctorStyle style;
  style.all = flags.all;
  if (isatty(STDOUT_FILENO) == 1) {
    const char* no_colour = std::getenv("NO_COLOR");
    style.terminal = no_colour == nullptr || *no_colour == '\0';
    style.columns = ColumnsOf(stdout);
  }
  std::printf("%s\n\n%s", Wrapped(Printable(HeadLine(in), 4096), 2, style.columns).c_str(),
              FindingsText(findings, style).c_str());
}

// GB/s of the pages that hold the panels, if they are in memory: of as many bytes as the probe
// beside it reads, so that caches help both alike.
std::optional<double> PanelReadRate(ThreadTeam& team, const std::string& model,
                                    uint64_t read_bytes) {
  constexpr double kSeconds = 0.2;
  const Result<std::unique_ptr<Gguf>> gguf = Gguf::Open(model);
  if (!gguf.ok()) return std::nullopt;
  const Result<std::unique_ptr<PanelFile>> panels = PanelFile::Open(**gguf);
  if (!panels.ok() || !InMemory(**panels)) return std::nullopt;
  const MappedFile& file = (*panels)->file();
  file.PreferHugePages(true);
  const size_t bytes = std::min<size_t>(file.bytes().size(), ReadProbeBytes(read_bytes));
  return MeasureReadBandwidth(team, file.bytes().data(), bytes, kSeconds);
}

// On a thread of its own: a team binds the thread that leads it, and the checks ask what the
// process as it was started may use.
Status MeasureAside(const std::string& model, Measured* measured) {
  ThisMachine();  // read before anybody is bound
  Status status;
  std::thread([&] {
    const Result<ModelWork> work = ModelWork::Of(model);  // an error is said by NeedOf
    const Result<std::unique_ptr<ThreadTeam>> team = ThreadTeam::Create(0);
    status = team.ok() ? Status() : team.status();
    if (team.ok()) {
      const uint64_t read_bytes = work.ok() ? work->WeightBytesPerToken() : 0;
      *measured = MeasureForCheckup(**team, read_bytes);
      if (work.ok()) measured->panel_read_gb_s = PanelReadRate(**team, model, read_bytes);
    }
  }).join();
  return status;
}

Status Doctor(DoctorFlags& flags, int* exit_code) {
  CheckupInput in{SystemFiles(flags.root), {}, {}, {}, {}, HttpOptions().max_connections};
  std::string model;
  if (!flags.model.empty()) {
    ASSIGN_OR_RETURN(model, FindModel(flags.model));
  }
  if (!flags.root.empty()) {
    if (!in.files.Exists("/proc")) {
      return Status(StatusCode::kNotFound,
                    "--root " + flags.root + ": expected a folder with a copy of /proc and /sys");
    }
    flags.quick = true;
  } else {
    in.simd = ReadSimdFacts();
  }
  if (!flags.quick) {
    RETURN_IF_ERROR(MeasureAside(model, &in.measured));
  }
  Status cannot_run;
  if (!model.empty()) {
    Result<ModelNeed> need = NeedOf(model);
    cannot_run = need.status();
    if (need.ok()) in.model = *std::move(need);
  }
  LookAtPlaces(flags, model, &in);
  std::vector<Finding> findings = Checkup(in);
  if (!cannot_run.ok()) findings.insert(findings.begin(), CannotRun(model, cannot_run));
  Print(flags, in, model, findings);
  const SeverityCounts n = CountSeverities(findings);
  if (n.warnings > 0) *exit_code = kExitWarnings;
  if (n.problems > 0) *exit_code = kExitFailure;
  return Status();
}

}  // namespace

void AddDoctor(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<DoctorFlags>();
  CLI::App* c = app.add_subcommand(
      "doctor", "Show what keeps this machine from its speed, what it costs and how to mend it");
  AddModel(*c, &flags->model,
           "Also whether this model fits and loads well: a .gguf file, or a name in the model "
           "folder");
  c->add_flag("--json", flags->json, "One JSON object");
  c->add_flag("--all", flags->all, "Also what is fine");
  c->add_flag("--quick", flags->quick, "Measure nothing: costs are modelled");
  c->add_option("--root", flags->root,
                "Look at the copy of another machine's /proc and /sys in this folder (--quick)")
      ->type_name("FOLDER")
      ->check(CLI::ExistingDirectory);
  c->footer(
      "Measures for about two seconds, with all threads. Exit code: 0 nothing worse than a note, 3 "
      "warnings, 1 problems.\n"
      "Example:\n  sluice doctor gemma-3-270m\n"
      "  sluice doctor --json | jq -r '.findings[] | select(.severity != \"ok\").fix[0]'");
  c->callback([flags, exit_code] {
    if (Status s = Doctor(*flags, exit_code); !s.ok()) *exit_code = ReportError("doctor", s);
  });
}

}  // namespace sluice
