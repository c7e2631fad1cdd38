// A grammar that holds only from a mark on: an answer whose prompt opened the
// reasoning is free until that ends. Constraints as all: one per sequence,
// engine thread.
#ifndef SLUICE_SRC_SERVER_LATE_CONSTRAINT_H_
#define SLUICE_SRC_SERVER_LATE_CONSTRAINT_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/text/grammar/grammar.h"
#include "src/text/grammar/token_constraint.h"
#include "src/text/tokenizer.h"

namespace sluice {

class LateConstraint : public TokenConstraint {
 public:
  // `mark`: not empty. `vocab`: tokens of the model. The tokenizer must outlive it.
  LateConstraint(const Tokenizer& tokenizer, size_t vocab, std::string mark,
                 std::shared_ptr<TokenConstraint> inner);

  // Before the mark: all tokens but those that end the answer.
  std::span<const uint64_t> Allowed() override;
  void Accept(int32_t id) override;

 private:
  const Tokenizer& tokenizer_;
  const std::string mark_;
  std::shared_ptr<TokenConstraint> inner_;
  std::vector<uint64_t> free_;  // a bit for every token
  std::string tail_;            // the newest text, no longer than the mark
  bool met_ = false;
};

// The same as a grammar. The tokenizer must outlive its constraints.
class LateGrammar : public Grammar {
 public:
  LateGrammar(const Tokenizer& tokenizer, size_t vocab, std::string mark,
              std::shared_ptr<const Grammar> inner);
  std::shared_ptr<TokenConstraint> Start(
      std::shared_ptr<const GrammarVocabulary> vocabulary) const override;

 private:
  const Tokenizer& tokenizer_;
  const size_t vocab_;
  const std::string mark_;
  const std::shared_ptr<const Grammar> inner_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_LATE_CONSTRAINT_H_
