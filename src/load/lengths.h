// How many tokens a prompt or an answer has: a number, or a distribution. Used by the prompt
// source; any thread.
#ifndef SLUICE_SRC_LOAD_LENGTHS_H_
#define SLUICE_SRC_LOAD_LENGTHS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/base/status.h"

namespace sluice::load {

struct Lengths {
  enum class Kind { kFixed, kUniform, kNormal, kLogNormal };
  Kind kind = Kind::kFixed;
  double a = 0, b = 0;  // the number; both ends; mean and standard deviation (of the lengths)

  // The length of request `index`, a function of these and the seed; 1 to kMost.
  size_t Draw(uint64_t seed, uint64_t stream, uint64_t index) const;
  std::string Text() const;  // as it is parsed

  static constexpr size_t kMost = 1 << 20;
};

// "128", "fixed:128", "uniform:64:256", "normal:128:32", "lognormal:128:64". `flag` names it in
// errors.
Result<Lengths> ParseLengths(const std::string& flag, const std::string& text);

}  // namespace sluice::load
#endif  // SLUICE_SRC_LOAD_LENGTHS_H_
