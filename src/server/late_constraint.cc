#include "src/server/late_constraint.h"

#include <algorithm>
#include <utility>

namespace sluice {

LateConstraint::LateConstraint(const Tokenizer& tokenizer, size_t vocab, std::string mark,
                               std::shared_ptr<TokenConstraint> inner)
    : tokenizer_(tokenizer),
      mark_(std::move(mark)),
      inner_(std::move(inner)),
      free_((vocab + 63) / 64) {
  for (size_t id = 0; id < std::min(vocab, tokenizer.vocab_size()); ++id) {
    if (tokenizer.IsEnd(static_cast<int32_t>(id))) continue;
    free_[id / 64] |= uint64_t{1} << (id % 64);
  }
}

std::span<const uint64_t> LateConstraint::Allowed() { return met_ ? inner_->Allowed() : free_; }

void LateConstraint::Accept(int32_t id) {
  if (met_) return inner_->Accept(id);
  // Text of the same token behind the mark was written before the grammar held.
  tail_ += tokenizer_.Piece(id);
  met_ = tail_.find(mark_) != tail_.npos;
  if (tail_.size() >= mark_.size()) tail_.erase(0, tail_.size() - mark_.size() + 1);
}

LateGrammar::LateGrammar(const Tokenizer& tokenizer, size_t vocab, std::string mark,
                         std::shared_ptr<const Grammar> inner)
    : tokenizer_(tokenizer), vocab_(vocab), mark_(std::move(mark)), inner_(std::move(inner)) {}

std::shared_ptr<TokenConstraint> LateGrammar::Start(
    std::shared_ptr<const GrammarVocabulary> vocabulary) const {
  return std::make_shared<LateConstraint>(tokenizer_, vocab_, mark_,
                                          inner_->Start(std::move(vocabulary)));
}

}  // namespace sluice
