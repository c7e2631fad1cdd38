#include "src/model/weight_store.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>

#include "src/base/memory_lock.h"
#include "src/file/panel_file.h"
#include "src/file/panel_rows.h"
#include "src/machine/huge_pages.h"
#include "src/machine/memory_use.h"
#include "src/machine/other_memory.h"
#include "src/machine/read_in_turns.h"
#include "src/machine/topology.h"

namespace sluice {

const char* LoadModeName(LoadMode mode) {
  switch (mode) {
    case LoadMode::kAuto:
      return "auto";
    case LoadMode::kPanels:
      return "panels";
    case LoadMode::kRepack:
      return "repack";
    case LoadMode::kGguf:
      return "gguf";
  }
  return "";
}

Activations BestActivations(Activations asked, bool portable) {
  const bool dots = !portable && MultipliesBf16(*FindFormat("BF16"));
  return asked == Activations::kInt8 && dots ? Activations::kInt8AndBf16 : asked;
}

WeightStore::WeightStore(const Gguf& gguf, Activations activations)
    : gguf_(gguf), activations_(activations) {}
WeightStore::~WeightStore() = default;

void WeightStore::Place(const GgufTensor& tensor, Weight* w) {
  w->exact = activations_ == Activations::kF32 && w->format->arithmetic == Arithmetic::kInt8;
  w->dots_bf16 = activations_ == Activations::kInt8AndBf16 &&
                 (w->format->dots_bf16 || MultipliesBf16(*w->format));
  if (!filled_) {
    if (placed_.try_emplace(&tensor).second && !w->exact) order_.push_back(&tensor);
    return;
  }
  const uint8_t* panels = placed_.at(&tensor);
  w->panels = panels != nullptr;
  w->data = panels ? panels : tensor.data;
  w->expert_bytes =
      panels ? PanelShapeOf(tensor)->expert_bytes() : w->rows * w->format->RowBytes(w->k);
}

const float* WeightStore::Floats(const GgufTensor& tensor) {
  const auto address = reinterpret_cast<uintptr_t>(tensor.data);
  if (std::string_view(tensor.format->name) == "F32" && address % alignof(float) == 0) {
    return reinterpret_cast<const float*>(tensor.data);
  }
  std::vector<float>& values = floats_[&tensor];
  if (values.empty()) {
    values.resize(tensor.Elements());
    tensor.format->decode(tensor.data, values.size(), values.data());
  }
  return values.data();
}

Status WeightStore::Fill(LoadMode mode, const Placement& placement, ThreadTeam& team,
                         const LoadProgress& progress) {
  filled_ = true;
  placement_ = placement;
  mode_ = mode == LoadMode::kAuto ? LoadMode::kPanels : mode;
  Status status;
  if (mode_ == LoadMode::kPanels) {
    status = FillPanelFile(team, progress);
    const bool asked_for = mode == LoadMode::kPanels && status.code() != StatusCode::kIo;
    if (!status.ok() && (asked_for || status.code() == StatusCode::kCancelled)) return status;
    if (!status.ok()) {
      // A full or read-only disk: the same panels in memory.
      Note(status.message() + "; weights are repacked in memory instead");
      mode_ = LoadMode::kRepack;
    }
  }
  if (mode_ == LoadMode::kRepack) status = Repack(team, progress);
  if (status.ok() && placement_.lock) LockWeights();
  return status;
}

void WeightStore::Note(const std::string& line) { note_ += (note_.empty() ? "" : "\n") + line; }

namespace {

// Below this, large pages lose; between it and 1 is noise.
constexpr double kLosingGain = 0.95;

// Touches the file once in 2 MB, which is enough where it is mapped by large pages, and asks.
bool MappedHuge(const MappedFile& file) {
  const std::span<const uint8_t> bytes = file.bytes();
  for (size_t at = 0; at < bytes.size(); at += 2 << 20) {
    static_cast<void>(*static_cast<const volatile uint8_t*>(bytes.data() + at));
  }
  return file.HugeBytes() >= bytes.size() / 10 * 9;
}

PanelFile::ParallelFor Over(ThreadTeam& team) {
  return [&team](size_t n, const std::function<void(size_t)>& fn) {
    team.Run([&](Worker& w) {
      w.ForTiles(n, [&](size_t begin, size_t end) {
        for (size_t i = begin; i < end; ++i) fn(i);
      });
    });
  };
}

// fn(first panel, count) for what a worker multiplies first: its share of every expert's rows.
template <class F>
void ForOwnPanels(const Worker& worker, const PanelShape& shape, const F& fn) {
  const auto [begin, end] = worker.Share(shape.panels_per_expert);
  if (begin == end) return;
  for (size_t e = 0; e < shape.experts; ++e) fn(e * shape.panels_per_expert + begin, end - begin);
}

}  // namespace

Status WeightStore::FillPanelFile(ThreadTeam& team, const LoadProgress& progress) {
  const bool any = std::any_of(order_.begin(), order_.end(),
                               [](const GgufTensor* t) { return PanelShapeOf(*t).has_value(); });
  if (!any) return Status();  // nothing to hold in panels
  if (!OpenPanelFile(team).ok()) {
    RETURN_IF_ERROR(PanelFile::Write(gguf_, order_, Over(team), progress));
    RETURN_IF_ERROR(OpenPanelFile(team));
  }
  for (const GgufTensor* t : order_) placed_[t] = panel_file_->Find(t->name);
  const bool by_node = ThisMachine().numa_nodes > 1 && placement_.numa != NumaMode::kOff;
  const bool small_pages =
      placement_.huge_pages == HugePages::kOn && !MappedHuge(panel_file_->file());
  if (by_node || small_pages) return CopyPanelFile(team);
  if (placement_.huge_pages == HugePages::kAuto) LeaveSlowMemory(team);
  return Status();
}

// Out of pages that read slowly, where other memory is faster and there is room: 1B Q4_K_M decodes
// 23 tok/s in the slow memory of a Xeon's virtual machine and 33 in other. What goes wrong leaves
// the panels in the file.
void WeightStore::LeaveSlowMemory(ThreadTeam& team) {
  const MappedFile& file = panel_file_->file();
  const size_t bytes = file.bytes().size();
  if (bytes > CopyRoomBytes()) return;
  const auto rates =
      FindSlowMemory(team, file.bytes(), MappedHuge(file), NextToPanels("other_memory"));
  if (!rates) return;
  file.DontNeed(0, bytes);  // what was read to compare
  const Status status = CopyPanelFile(team);
  if (!status.ok()) Note(status.message() + "; the weights stay in the mapped file");
  if (panel_file_) return;
  char note[160];
  std::snprintf(
      note, sizeof(note),
      "the memory that holds the panel file reads at %.1f GB/s, other at %.1f GB/s: %zu MiB "
      "copied there",
      rates->here_gb_s, rates->other_gb_s, bytes >> 20);
  Note(note);
}

std::string WeightStore::NextToPanels(const char* name) const {
  return std::filesystem::path(panel_file_->path()).parent_path() / name;
}

// Opens the sidecar, whole and undamaged, and maps it as asked for.
Status WeightStore::OpenPanelFile(ThreadTeam& team) {
  ASSIGN_OR_RETURN(panel_file_, PanelFile::Open(gguf_));
  for (const GgufTensor* t : order_) {
    if (PanelShapeOf(*t) && !panel_file_->Find(t->name)) {
      return Status(StatusCode::kNotFound,
                    panel_file_->path() + ": lacks tensor " + std::string(t->name));
    }
  }
  panel_file_->file().PreferHugePages(placement_.huge_pages != HugePages::kOff);
  // More than memory holds: reading it now would only push out what was read.
  if (panel_file_->bytes() < AvailableMemoryBytes()) {
    RETURN_IF_ERROR(panel_file_->VerifyOncePerBoot(Over(team)));
  }
  if (placement_.huge_pages == HugePages::kAuto) PlacePanelFile(team);
  return Status();
}

// Large pages where they are no slower on this machine.
void WeightStore::PlacePanelFile(ThreadTeam& team) {
  const std::string path = NextToPanels("huge_pages");
  std::optional<double> gain = Recall(path, team);
  const MappedFile& file = panel_file_->file();
  if (!gain) {
    if (!MappedHuge(file)) return;  // nothing to compare with
    const Result<std::unique_ptr<MappedFile>> small = MappedFile::Open(file.path());
    if (!small.ok()) return;
    (*small)->PreferHugePages(false);
    const auto measure = [&] { return HugePageGain(team, (*small)->bytes(), file.bytes()); };
    gain = measure();
    if (*gain < kLosingGain) gain = std::max(*gain, measure());  // a busy moment is not remembered
    Remember(path, team, *gain);
  }
  if (*gain < kLosingGain) file.PreferHugePages(false);
}

// Where the map has small pages all the same, or pages on any node: the panels once more, in
// anonymous memory, each worker's share filled by itself.
Status WeightStore::CopyPanelFile(ThreadTeam& team) {
  const uint64_t bytes = panel_file_->bytes();
  if (bytes > AvailableMemoryBytes() / 2) {
    Note("expected " + std::to_string(bytes >> 19) +
         " MiB of free memory for a copy of the weights, found " +
         std::to_string(AvailableMemoryBytes() >> 20) + " MiB; they stay in the mapped file");
    return Status();
  }
  RETURN_IF_ERROR(CreateArenas(bytes));
  const MappedFile& file = panel_file_->file();
  for (auto& [tensor, panels] : placed_) {
    if (panels == nullptr) continue;
    const uint8_t* const from = panels;
    const PanelShape shape = *PanelShapeOf(*tensor);
    uint8_t* const to = Allocate(shape);
    team.Run([&](Worker& w) {
      ForOwnPanels(w, shape, [&](size_t first, size_t count) {
        std::memcpy(to + first * shape.panel_bytes, from + first * shape.panel_bytes,
                    count * shape.panel_bytes);
      });
    });
    // Not the process's any more: its peak is not twice the weights.
    file.DontNeed(static_cast<size_t>(from - file.bytes().data()), shape.bytes());
    panels = to;
  }
  panel_file_.reset();
  return Status();
}

// Address space for anonymous panels of so many bytes in all, each in whole pages.
Status WeightStore::CreateArenas(uint64_t bytes) {
  ASSIGN_OR_RETURN(arena_, Arena::Create(bytes, placement_.huge_pages != HugePages::kOff));
  if (ThisMachine().numa_nodes == 1) return Status();
  ASSIGN_OR_RETURN(small_pages_, Arena::Create(bytes, false));
  if (placement_.numa == NumaMode::kInterleave) {
    InterleavePages(arena_.data(), arena_.size());
    InterleavePages(small_pages_.data(), small_pages_.size());
  }
  return Status();
}

// A large page belongs to one node, so a matrix is off by up to half of one at each border between
// nodes: at 8 MB a node that is an eighth.
uint8_t* WeightStore::Allocate(const PanelShape& shape) {
  const size_t nodes = static_cast<size_t>(ThisMachine().numa_nodes);
  const bool large = nodes == 1 || shape.expert_bytes() >= nodes * (8 << 20);
  return (large ? arena_ : small_pages_).Allocate(shape.bytes(), 4096);
}

void WeightStore::LockWeights() {
  Status status;
  if (panel_file_) {
    status = panel_file_->file().Lock();
  } else {
    status = arena_.Lock("the weights");
    if (status.ok()) status = small_pages_.Lock("the weights");
  }
  for (const auto& [tensor, panels] : placed_) {
    if (!status.ok()) break;
    if (panels == nullptr) status = LockMemory(tensor->data, tensor->bytes, "the weights");
  }
  if (!status.ok()) Note(status.message());
}

Status WeightStore::Repack(ThreadTeam& team, const LoadProgress& progress) {
  struct Job {
    const GgufTensor* tensor;
    PanelShape shape;
    uint8_t* out;
  };
  std::vector<Job> jobs;
  uint64_t total = 0;
  for (const GgufTensor* t : order_) {
    if (std::optional<PanelShape> shape = PanelShapeOf(*t)) {
      jobs.push_back({t, *shape, nullptr});
      total += (shape->bytes() + 4095) / 4096 * 4096;
    }
  }
  RETURN_IF_ERROR(CreateArenas(total));
  uint64_t done = 0;
  for (Job& job : jobs) {
    job.out = Allocate(job.shape);
    team.Run([&](Worker& w) {
      ForOwnPanels(w, job.shape, [&](size_t first, size_t count) {
        MakePanels(*job.tensor, job.shape, first, count, job.out + first * job.shape.panel_bytes);
      });
    });
    gguf_.DontNeed(*job.tensor);  // the rows have served
    placed_[job.tensor] = job.out;
    done += job.shape.bytes();
    if (progress && !progress(done, total)) {
      return Status(StatusCode::kCancelled, "interrupted while its weights were repacked");
    }
  }
  return Status();
}

}  // namespace sluice
