#include "src/server/llama_deadline.h"

#include <utility>

namespace sluice {

LlamaDeadline::LlamaDeadline(std::shared_ptr<const ServedModel> model,
                             std::shared_ptr<TokenConstraint> inner,
                             std::chrono::milliseconds limit,
                             std::shared_ptr<std::atomic<bool>> out_of_time)
    : model_(std::move(model)),
      inner_(std::move(inner)),
      limit_(limit),
      out_of_time_(std::move(out_of_time)) {
  const Tokenizer& tokenizer = model_->tokenizer();
  const size_t vocab = model_->vocab();
  all_.assign((vocab + 63) / 64, ~uint64_t{0});
  if (vocab % 64 != 0) all_.back() = (uint64_t{1} << vocab % 64) - 1;
  ends_.assign(all_.size(), 0);
  for (size_t id = 0; id < std::min(vocab, tokenizer.vocab_size()); ++id) {
    if (!tokenizer.IsEnd(static_cast<int32_t>(id))) continue;
    ends_[id / 64] |= uint64_t{1} << id % 64;
    has_end_ = true;
  }
}

std::span<const uint64_t> LlamaDeadline::Allowed() {
  const bool late = begun_ && new_line_ && Clock::now() - first_token_ >= limit_;
  if (late && has_end_) {
    out_of_time_->store(true);
    return ends_;
  }
  return inner_ ? inner_->Allowed() : std::span<const uint64_t>(all_);
}

void LlamaDeadline::Accept(int32_t id) {
  if (!begun_) first_token_ = Clock::now();
  begun_ = true;
  if (!new_line_) new_line_ = model_->tokenizer().Piece(id).find('\n') != std::string::npos;
  if (inner_) inner_->Accept(id);
}

}  // namespace sluice
