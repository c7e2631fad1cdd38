#include "src/load/lengths.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "src/base/printable.h"
#include "src/base/random.h"

namespace sluice::load {

Result<Lengths> ParseLengths(const std::string& flag, const std::string& text) {
  const Status wrong(StatusCode::kInvalidArgument,
                     flag +
                         ": expected N, uniform:FIRST:LAST, normal:MEAN:SD or lognormal:MEAN:SD"
                         " with 1 to " +
                         std::to_string(Lengths::kMost) + " tokens, found " + Printable(text));
  Lengths lengths;
  size_t at = 0;
  if (const size_t colon = text.find(':'); colon != std::string::npos) {
    const std::string word = text.substr(0, colon);
    if (word == "uniform") {
      lengths.kind = Lengths::Kind::kUniform;
    } else if (word == "normal") {
      lengths.kind = Lengths::Kind::kNormal;
    } else if (word == "lognormal") {
      lengths.kind = Lengths::Kind::kLogNormal;
    } else if (word != "fixed") {
      return wrong;
    }
    at = colon + 1;
  }
  std::vector<double> numbers;
  while (at <= text.size()) {
    const size_t end = std::min(text.find(':', at), text.size());
    const std::string number = text.substr(at, end - at);
    if (number.empty() || number.find_first_not_of("0123456789.") != std::string::npos) {
      return wrong;
    }
    numbers.push_back(std::strtod(number.c_str(), nullptr));
    at = end + 1;
  }
  const bool fixed = lengths.kind == Lengths::Kind::kFixed;
  if (numbers.size() != (fixed ? 1 : 2)) return wrong;
  lengths.a = numbers[0];
  lengths.b = fixed ? 0 : numbers[1];
  if (lengths.a < 1 || lengths.a > Lengths::kMost || lengths.b > Lengths::kMost) return wrong;
  const bool whole = lengths.a == std::floor(lengths.a) && lengths.b == std::floor(lengths.b);
  const bool ends = fixed || lengths.kind == Lengths::Kind::kUniform;
  if (ends && !whole) return wrong;
  if (lengths.kind == Lengths::Kind::kUniform && lengths.b < lengths.a) return wrong;
  return lengths;
}

size_t Lengths::Draw(uint64_t seed, uint64_t stream, uint64_t index) const {
  const double u = RandomUniform(seed, stream, 2 * index);
  const auto normal = [&] {
    return std::sqrt(-2 * std::log1p(-u)) *
           std::cos(2 * M_PI * RandomUniform(seed, stream, 2 * index + 1));
  };
  double length = a;
  switch (kind) {
    case Kind::kFixed:
      break;
    case Kind::kUniform:
      length = a + std::floor(u * (b - a + 1));
      break;
    case Kind::kNormal:
      length = std::round(a + b * normal());
      break;
    case Kind::kLogNormal: {
      // The normal distribution under it, from the mean and deviation of the lengths.
      const double variance = std::log1p(b * b / (a * a));
      length = std::round(a * std::exp(std::sqrt(variance) * normal() - variance / 2));
      break;
    }
  }
  return static_cast<size_t>(std::clamp(length, 1.0, static_cast<double>(kMost)));
}

std::string Lengths::Text() const {
  static const char* const kNames[] = {"", "uniform", "normal", "lognormal"};
  char buffer[80];
  if (kind == Kind::kFixed) {
    std::snprintf(buffer, sizeof(buffer), "%.10g", a);
  } else {
    std::snprintf(buffer, sizeof(buffer), "%s:%.10g:%.10g", kNames[static_cast<int>(kind)], a, b);
  }
  return buffer;
}

}  // namespace sluice::load
