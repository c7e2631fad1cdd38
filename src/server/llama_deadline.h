// t_max_predict_ms of llama-server: some time after the first token, from the
// first new line on, nothing but an end token may come. A constraint around
// another one or none; the engine's thread.
#ifndef SLUICE_SRC_SERVER_LLAMA_DEADLINE_H_
#define SLUICE_SRC_SERVER_LLAMA_DEADLINE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "src/server/served_model.h"
#include "src/text/grammar/token_constraint.h"

namespace sluice {

class LlamaDeadline : public TokenConstraint {
 public:
  using Clock = std::chrono::steady_clock;

  // `inner` may be null. `out_of_time` becomes true when the end is forced.
  LlamaDeadline(std::shared_ptr<const ServedModel> model, std::shared_ptr<TokenConstraint> inner,
                std::chrono::milliseconds limit, std::shared_ptr<std::atomic<bool>> out_of_time);

  std::span<const uint64_t> Allowed() override;
  void Accept(int32_t id) override;

 private:
  const std::shared_ptr<const ServedModel> model_;
  const std::shared_ptr<TokenConstraint> inner_;
  const std::chrono::milliseconds limit_;
  const std::shared_ptr<std::atomic<bool>> out_of_time_;
  std::vector<uint64_t> all_, ends_;  // a bit per token
  bool has_end_ = false, begun_ = false, new_line_ = false;
  Clock::time_point first_token_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_LLAMA_DEADLINE_H_
