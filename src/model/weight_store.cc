#include "src/model/weight_store.h"

#include <algorithm>
#include <cstdint>

#include "src/file/panel_file.h"
#include "src/file/panel_rows.h"

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

Result<LoadMode> ParseLoadMode(const std::string& word) {
  for (LoadMode m : {LoadMode::kAuto, LoadMode::kPanels, LoadMode::kRepack, LoadMode::kGguf}) {
    if (word == LoadModeName(m)) return m;
  }
  return Status(StatusCode::kInvalidArgument,
                "--weights: expected auto, panels, repack or gguf, found " + word);
}

WeightStore::WeightStore(const Gguf& gguf, Activations activations)
    : gguf_(gguf), activations_(activations) {}
WeightStore::~WeightStore() = default;

void WeightStore::Place(const GgufTensor& tensor, Weight* w) {
  w->exact = activations_ == Activations::kF32 && w->format->arithmetic == Arithmetic::kInt8;
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

Status WeightStore::Fill(LoadMode mode, ThreadTeam& team, const LoadProgress& progress) {
  filled_ = true;
  mode_ = mode == LoadMode::kAuto ? LoadMode::kPanels : mode;
  if (mode_ == LoadMode::kPanels) {
    Status status = FillPanelFile(team, progress);
    if (status.ok()) return status;
    if (mode == LoadMode::kPanels && status.code() != StatusCode::kIo) return status;
    // A full or read-only disk: the same panels in memory.
    note_ = status.message() + "; weights are repacked in memory instead";
    mode_ = LoadMode::kRepack;
  }
  return mode_ == LoadMode::kRepack ? Repack(team, progress) : Status();
}

Status WeightStore::FillPanelFile(ThreadTeam& team, const LoadProgress& progress) {
  const bool any = std::any_of(order_.begin(), order_.end(),
                               [](const GgufTensor* t) { return PanelShapeOf(*t).has_value(); });
  if (!any) return Status();  // nothing to hold in panels
  Result<std::unique_ptr<PanelFile>> file = PanelFile::Open(gguf_);
  const auto missing = [&] {
    return std::any_of(order_.begin(), order_.end(), [&](const GgufTensor* t) {
      return PanelShapeOf(*t) && !(*file)->Find(t->name);
    });
  };
  if (!file.ok() || missing()) {
    const auto parallel_for = [&](size_t n, const std::function<void(size_t)>& fn) {
      team.Run([&](Worker& w) {
        if (w.index() == 0) w.ResetCounter(0);
        w.Barrier();
        for (size_t i = w.Next(0); i < n; i = w.Next(0)) fn(i);
      });
    };
    RETURN_IF_ERROR(PanelFile::Write(gguf_, order_, parallel_for, progress));
    file = PanelFile::Open(gguf_);
    if (!file.ok()) return file.status();
  }
  panel_file_ = *std::move(file);
  for (const GgufTensor* t : order_) placed_[t] = panel_file_->Find(t->name);
  return Status();
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
  ASSIGN_OR_RETURN(arena_, Arena::Create(total));
  uint64_t done = 0;
  for (Job& job : jobs) {
    job.out = arena_.Allocate(job.shape.bytes(), 4096);
    team.Run([&](Worker& w) {
      const auto [begin, end] = w.Share(job.shape.panels());
      if (begin < end) {
        MakePanels(*job.tensor, job.shape, begin, end - begin,
                   job.out + begin * job.shape.panel_bytes);
      }
    });
    gguf_.DontNeed(*job.tensor);  // the rows have served
    placed_[job.tensor] = job.out;
    done += job.shape.bytes();
    if (progress) progress(done, total);
  }
  return Status();
}

}  // namespace sluice
