// Holds a model's weights in one of three ways, all giving the same bytes:
//   panels  a sidecar file in the cache directory, written once, mapped, shared between processes
//   repack  panels in anonymous memory, made at load
//   gguf    the file's own rows, in place
// Binding runs twice: the first walk collects which tensors are multiplied, Fill() makes the
// panels, the second walk hands out where they lie.
#ifndef SLUICE_SRC_MODEL_WEIGHT_STORE_H_
#define SLUICE_SRC_MODEL_WEIGHT_STORE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/base/arena.h"
#include "src/base/status.h"
#include "src/file/gguf.h"
#include "src/machine/numa.h"
#include "src/machine/thread_team.h"
#include "src/model/weights.h"

namespace sluice {

enum class LoadMode : uint8_t { kAuto, kPanels, kRepack, kGguf };
const char* LoadModeName(LoadMode mode);  // "panels"

// What matrices are multiplied with.
//   kInt8         quantised ones with int8 as the recipe says, others with floats
//   kInt8AndBf16  those of BF16 and, with AMX, of F16 with inputs rounded to bfloat16:
//                 faster where the CPU multiplies pairs of it, with bytes of its own; on others the
//                 tests' (BestActivations chooses)
//   kF32          floats, with quantised rows decoded in place (slow): judges a model, not rounding
enum class Activations : uint8_t { kInt8, kInt8AndBf16, kF32 };
// What kInt8 is on this CPU.
Activations BestActivations(Activations asked, bool portable);

// Pages of 2 MB for the weights.
//   on    also copies a sidecar that the system maps by small pages into memory that has large ones
//   auto  maps by large pages where the system can, unless this machine reads them more slowly
//         (measured once); copies a sidecar out of a virtual machine's slow memory (other_memory.h)
enum class HugePages : uint8_t { kAuto, kOn, kOff };

// Where and how weights lie in memory; never what they are.
struct Placement {
  HugePages huge_pages = HugePages::kAuto;
  bool lock = false;  // keep them in RAM
  // More than one node: auto and interleave hold panels in anonymous memory, because the pages of a
  // file lie where they happened to be read first. With one node all three are the same.
  NumaMode numa = NumaMode::kAuto;
};

// Bytes done of bytes in all, while panels are made; called from any worker. False: give up, with
// kCancelled and nothing left behind.
using LoadProgress = std::function<bool(uint64_t done, uint64_t total)>;

class PanelFile;
struct PanelShape;

class WeightStore {
 public:
  WeightStore(const Gguf& gguf, Activations activations);  // gguf must outlive the store
  ~WeightStore();

  // First walk: remembers the tensor. Second walk: sets data, panels, expert_bytes of `w`, whose
  // format and shape are set.
  void Place(const GgufTensor& tensor, Weight* w);
  // The tensor's values as floats: in the map where they are aligned F32, converted otherwise.
  const float* Floats(const GgufTensor& tensor);

  // Makes the panels of every tensor placed so far. kAuto: panels, or repack when no sidecar can be
  // written. note() then says why, and what else could not be had: lines.
  Status Fill(LoadMode mode, const Placement& placement, ThreadTeam& team,
              const LoadProgress& progress);
  LoadMode mode() const { return mode_; }
  const std::string& note() const { return note_; }
  Activations activations() const { return activations_; }

 private:
  Status FillPanelFile(ThreadTeam& team, const LoadProgress& progress);
  Status OpenPanelFile(ThreadTeam& team);
  void PlacePanelFile(ThreadTeam& team);
  void LeaveSlowMemory(ThreadTeam& team);
  std::string NextToPanels(const char* name) const;
  Status CopyPanelFile(ThreadTeam& team);
  Status CreateArenas(uint64_t bytes);
  uint8_t* Allocate(const PanelShape& shape);
  Status Repack(ThreadTeam& team, const LoadProgress& progress);
  void LockWeights();
  void Note(const std::string& line);

  const Gguf& gguf_;
  const Activations activations_;
  Placement placement_;
  LoadMode mode_ = LoadMode::kGguf;
  std::string note_;
  bool filled_ = false;
  std::unordered_map<const GgufTensor*, const uint8_t*> placed_;  // panels, or null: GGUF rows
  std::vector<const GgufTensor*> order_;
  std::unordered_map<const GgufTensor*, std::vector<float>> floats_;
  Arena arena_;        // anonymous panels, in large pages
  Arena small_pages_;  // with several nodes, those too small to be split by large pages
  std::unique_ptr<PanelFile> panel_file_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_MODEL_WEIGHT_STORE_H_
