// Texts that are numbers, as Python's int() and float() read them.
#ifndef SLUICE_SRC_TEXT_JINJA_NUMBERS_H_
#define SLUICE_SRC_TEXT_JINJA_NUMBERS_H_

#include <optional>

#include "src/text/jinja/value.h"

namespace sluice::jinja {

enum class ParsedInt : uint8_t { kGood, kNoNumber, kTooLarge };
// base 0: as the prefix says.
ParsedInt ParseInt(const Text& text, int base, Int* value);
std::optional<double> ParseFloat(const Text& text);
// round(value, digits), half to even on the exact value.
double RoundTo(double value, int digits);

}  // namespace sluice::jinja
#endif  // SLUICE_SRC_TEXT_JINJA_NUMBERS_H_
