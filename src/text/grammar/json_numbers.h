// Numbers between bounds, as patterns of their digits. Used by json_schema.cc.
#ifndef SLUICE_SRC_TEXT_GRAMMAR_JSON_NUMBERS_H_
#define SLUICE_SRC_TEXT_GRAMMAR_JSON_NUMBERS_H_

#include <cstdint>

#include "src/text/grammar/expressions.h"

namespace sluice::grammar {

// Bounds beyond these are as good as none, or refused where a number would have to be beyond them.
inline constexpr double kLargestBound = 9.0e15;  // below 2^53: doubles hold it to the unit

struct NumberBounds {
  double low = -kLargestBound, high = kLargestBound;
  bool low_excluded = false, high_excluded = false;
};
// Whole numbers; bounds need not be whole. Nothing matches if none is between them.
Expressions::Id IntegerBetween(const NumberBounds& bounds, Expressions& expressions);
// Decimal fractions too, without exponents.
Expressions::Id NumberBetween(const NumberBounds& bounds, Expressions& expressions);

}  // namespace sluice::grammar
#endif  // SLUICE_SRC_TEXT_GRAMMAR_JSON_NUMBERS_H_
