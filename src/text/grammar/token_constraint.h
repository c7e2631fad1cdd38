// Which tokens may come next in one sequence: a grammar's state. Made from a
// Grammar when a sequence starts; the engine thread alone uses it, once per
// sampled token.
#ifndef SLUICE_SRC_TEXT_GRAMMAR_TOKEN_CONSTRAINT_H_
#define SLUICE_SRC_TEXT_GRAMMAR_TOKEN_CONSTRAINT_H_

#include <cstdint>
#include <span>

namespace sluice {

class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  // Bit id % 64 of word id / 64: the token may come next. [ceil(vocab / 64)], valid until Accept.
  // End tokens are allowed exactly where the text may end; where nothing else fits they are the
  // only ones, so at least one bit is set.
  virtual std::span<const uint64_t> Allowed() = 0;
  // The token that was drawn, one of the allowed ones, end tokens left out.
  virtual void Accept(int32_t id) = 0;
};

}  // namespace sluice
#endif  // SLUICE_SRC_TEXT_GRAMMAR_TOKEN_CONSTRAINT_H_
