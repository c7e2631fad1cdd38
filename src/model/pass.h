// One forward pass as one worker sees it. Every worker of the team runs the
// same architecture function on its own Pass (SPMD); buffers are shared, and an
// op writes only its worker's share, so a Barrier stands between an op that
// writes and one that reads across shares.
#ifndef SLUICE_SRC_MODEL_PASS_H_
#define SLUICE_SRC_MODEL_PASS_H_

#include "src/machine/thread_team.h"
#include "src/model/batch.h"
#include "src/model/config.h"
#include "src/model/weights.h"
#include "src/model/workspace.h"

namespace sluice {

struct Pass {
  const Config& config;
  const Weights& weights;
  const Batch& batch;
  Workspace& ws;
  Worker& worker;

  size_t rows() const { return batch.rows(); }
  void Barrier() { worker.Barrier(); }
};

}  // namespace sluice
#endif  // SLUICE_SRC_MODEL_PASS_H_
