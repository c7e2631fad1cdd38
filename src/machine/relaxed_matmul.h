// What --relaxed does: products of float weights with many rows by oneDNN, where it measured faster
// than our kernel. Measured at load, each format of the model on a matrix of its own, one thread
// (under 0.2 s a format). Created by the thread that owns the team; Multiply by any worker.
#ifndef SLUICE_SRC_MACHINE_RELAXED_MATMUL_H_
#define SLUICE_SRC_MACHINE_RELAXED_MATMUL_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/machine/kernel_rate.h"
#include "src/machine/onednn.h"
#include "src/machine/thread_team.h"

namespace sluice {

class RelaxedMatMul {
 public:
  // Taken where it is faster by this factor: less is noise, and costs the same bytes.
  static constexpr double kLeastGain = 1.05;

  // matrices: one of each float format, and of panels and rows. tokens: the most rows of a product;
  // fewest: the fewest that are ever asked for. warn: called once if oneDNN fails later.
  RelaxedMatMul(std::span<const KernelMatrix> matrices, size_t fewest, size_t tokens,
                ThreadTeam& team, std::function<void(const std::string&)> warn,
                double least_gain = kLeastGain);

  // What was measured and taken, a line for each matrix, or why there is nothing to take.
  const std::string& note() const { return note_; }
  // Whether a product of such weights and so many rows is oneDNN's. Never changes: workers cut
  // their tiles by it.
  bool Takes(const Format& format, bool panels, size_t tokens) const {
    return Find(format, panels, tokens) != nullptr;
  }
  // In place of format.matmul(args). False: not taken, or oneDNN failed: call that.
  bool Multiply(size_t worker, const Format& format, const MatMulArgs& args);

 private:
  struct Choice {
    const Format* format;
    bool panels;
    OneDnn::Form form;
    size_t fewest;  // rows from which on it is faster
  };
  const Choice* Find(const Format& format, bool panels, size_t tokens) const;
  void Choose(const KernelMatrix& matrix, size_t fewest, size_t tokens, ThreadTeam& team,
              double least_gain);

  std::unique_ptr<OneDnn> onednn_;
  std::vector<Choice> choices_;
  std::atomic<bool> failed_{false};
  std::function<void(const std::string&)> warn_;
  std::string note_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_RELAXED_MATMUL_H_
