// One forward pass as one worker sees it. Every worker of the team runs the
// same architecture function on its own Pass (SPMD); buffers are shared, and an
// op writes only its worker's share, so a Barrier stands between an op that
// writes and one that reads across shares.
//
// The residual stream is handled row by row. A pass of few rows (decode) gives
// every worker all of them, in buffers of its own: norming and quantising a row
// again in each worker costs less than the barrier it saves. In a pass of many
// rows each worker has a share, in buffers that all read, and RowBarrier is one.
#ifndef SLUICE_SRC_MODEL_PASS_H_
#define SLUICE_SRC_MODEL_PASS_H_

#include "src/machine/thread_team.h"
#include "src/model/batch.h"
#include "src/model/config.h"
#include "src/model/weights.h"
#include "src/model/workspace.h"

namespace sluice {

class Pass {
 public:
  Pass(const Config& config, const Weights& weights, const Batch& batch, Workspace& ws,
       Worker& worker)
      : config(config),
        weights(weights),
        batch(batch),
        ws(ws),
        worker(worker),
        private_rows(batch.rows() <= kPrivateRows),
        own(private_rows ? ws.OwnRows(static_cast<size_t>(worker.index())) : ws.shared),
        begin_(private_rows ? 0 : worker.Share(batch.rows()).first),
        end_(private_rows ? batch.rows() : worker.Share(batch.rows()).second) {}

  const Config& config;
  const Weights& weights;
  const Batch& batch;
  Workspace& ws;
  Worker& worker;
  const bool private_rows;
  const RowBuffers& own;  // where the worker's rows lie

  size_t rows() const { return batch.rows(); }
  // Calls fn(t) for this worker's rows.
  template <class F>
  void ForOwnRows(F&& fn) const {
    for (size_t t = begin_; t < end_; ++t) fn(t);
  }
  void Barrier() { worker.Barrier(); }
  // Between an op on own rows and one that reads all rows.
  void RowBarrier() {
    if (!private_rows) worker.Barrier();
  }

 private:
  const size_t begin_, end_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_MODEL_PASS_H_
