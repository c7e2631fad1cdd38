#include "src/text/grammar/json_numbers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::grammar {
namespace {

using Id = Expressions::Id;
constexpr uint32_t kFractionDigits = 16;

class Digits {
 public:
  explicit Digits(Expressions& e) : e_(e) {}

  // Without leading zeros; 0 <= low.
  Id Whole(int64_t low, int64_t high) {
    std::vector<Id> ways;
    int64_t least = 0;  // of the numbers with `digits` digits
    for (size_t digits = 1; digits <= 16 && least <= high; ++digits) {
      int64_t most = 9;
      for (size_t i = 1; i < digits; ++i) most = 10 * most + 9;
      const int64_t from = std::max(low, least), to = std::min(high, most);
      if (from <= to) ways.push_back(SameLength(std::to_string(from), std::to_string(to)));
      least = most + 1;
    }
    return e_.Choice(ways);
  }

  // Digits after the point. AtLeast: the fraction is >= that of `bound`, or > if excluded.
  Id AtLeast(std::string_view bound, bool excluded) {
    const uint32_t left = Left(bound.size());
    Id rest = e_.Repeat(Digit('0', '9'), 0, left);
    if (excluded) {
      rest = e_.Sequence({e_.Repeat(Digit('0', '0'), 0, left), Digit('1', '9'), Any(left)});
    }
    for (size_t i = bound.size(); i-- > 0;) {
      rest = e_.Choice({e_.Sequence({Digit(bound[i], bound[i]), rest}),
                        e_.Sequence({Digit(bound[i] + 1, '9'), Any(Left(i + 1))})});
    }
    return rest;
  }
  // <= that of `bound`, or <; at least one digit, the fraction may stop within the bound's digits.
  // `bound` has no zeros at its end.
  Id AtMost(std::string_view bound, bool excluded) {
    Id rest = excluded ? e_.Never() : e_.Repeat(Digit('0', '0'), 0, Left(bound.size()));
    for (size_t i = bound.size(); i-- > 0;) {
      if (i + 1 < bound.size()) rest = e_.Optional(rest);
      rest = e_.Choice({e_.Sequence({Digit(bound[i], bound[i]), rest}),
                        e_.Sequence({Digit('0', bound[i] - 1), Any(Left(i + 1))})});
    }
    return rest;
  }
  // Both; low < high.
  Id Between(std::string low, bool low_excluded, std::string_view high, bool high_excluded) {
    if (low.size() < high.size()) low.resize(high.size(), '0');
    size_t same = 0;
    while (low[same] == high[same]) ++same;
    const char l = low[same], h = high[same];
    const std::string_view after = high.substr(same + 1);
    const Id up = AtLeast(std::string_view(low).substr(same + 1), low_excluded);
    const Id down = !after.empty()  ? e_.Optional(AtMost(after, high_excluded))
                    : high_excluded ? e_.Never()
                                    : e_.Repeat(Digit('0', '0'), 0, Left(same + 1));
    return e_.Sequence({e_.Literal(high.substr(0, same)),
                        e_.Choice({e_.Sequence({Digit(l, l), up}),
                                   e_.Sequence({Digit(l + 1, h - 1), Any(Left(same + 1))}),
                                   e_.Sequence({Digit(h, h), down})})});
  }
  Id Fraction() { return e_.Repeat(Digit('0', '9'), 1, kFractionDigits); }
  Id Zeros() { return e_.Repeat(Digit('0', '0'), 1, 2); }

 private:
  static uint32_t Left(size_t used) {
    return used >= kFractionDigits ? 0 : kFractionDigits - static_cast<uint32_t>(used);
  }
  Id Digit(int low, int high) {
    return low > high ? e_.Never()
                      : e_.Class({{static_cast<uint32_t>(low), static_cast<uint32_t>(high)}});
  }
  Id Any(uint32_t most) { return e_.Repeat(Digit('0', '9'), 0, most); }

  Id SameLength(const std::string& low, const std::string& high) {
    size_t same = 0;
    while (same < low.size() && low[same] == high[same]) ++same;
    const Id prefix = e_.Literal(std::string_view(low).substr(0, same));
    if (same == low.size()) return prefix;
    const uint32_t rest = static_cast<uint32_t>(low.size() - same - 1);
    Id up = e_.Empty(), down = e_.Empty();
    for (size_t i = low.size(); i-- > same + 1;) {
      const uint32_t after = static_cast<uint32_t>(low.size() - i - 1);
      up = e_.Choice({e_.Sequence({Digit(low[i], low[i]), up}),
                      e_.Sequence({Digit(low[i] + 1, '9'), Exactly(after)})});
      down = e_.Choice({e_.Sequence({Digit(high[i], high[i]), down}),
                        e_.Sequence({Digit('0', high[i] - 1), Exactly(after)})});
    }
    return e_.Sequence(
        {prefix, e_.Choice({e_.Sequence({Digit(low[same], low[same]), up}),
                            e_.Sequence({Digit(low[same] + 1, high[same] - 1), Exactly(rest)}),
                            e_.Sequence({Digit(high[same], high[same]), down})})});
  }
  Id Exactly(uint32_t digits) { return e_.Repeat(Digit('0', '9'), digits, digits); }

  Expressions& e_;
};

// The shortest decimal digits after the point of `x`, none if it is whole.
std::string FractionOf(double x) {
  char text[400];
  const auto end = std::to_chars(text, text + sizeof(text), x, std::chars_format::fixed).ptr;
  const std::string_view all(text, static_cast<size_t>(end - text));
  const size_t point = all.find('.');
  return std::string(point == std::string_view::npos ? std::string_view() : all.substr(point + 1));
}

// 0 <= low <= high.
Id PositiveBetween(const NumberBounds& b, Expressions& e) {
  Digits digits(e);
  const int64_t low = static_cast<int64_t>(std::floor(b.low));
  const int64_t high = static_cast<int64_t>(std::floor(b.high));
  const std::string low_fraction = FractionOf(b.low), high_fraction = FractionOf(b.high);
  const bool low_free = low_fraction.empty() && !b.low_excluded;  // the whole number itself is in
  const bool high_whole_in = !(high_fraction.empty() && b.high_excluded);
  const auto with = [&](Id whole, Id fraction, bool needed) {
    const Id after = e.Sequence({e.Literal("."), fraction});
    return e.Sequence({whole, needed ? after : e.Optional(after)});
  };
  const auto below_high = [&] {
    return high_fraction.empty() ? digits.Zeros() : digits.AtMost(high_fraction, b.high_excluded);
  };
  if (low == high) {
    if (low_free)
      return high_whole_in ? with(digits.Whole(low, low), below_high(), false) : e.Never();
    if (high_fraction.empty()) return e.Never();
    if (low_fraction == high_fraction) {
      return b.low_excluded || b.high_excluded
                 ? e.Never()
                 : with(digits.Whole(low, low), e.Literal(low_fraction), true);
    }
    return with(digits.Whole(low, low),
                digits.Between(low_fraction, b.low_excluded, high_fraction, b.high_excluded), true);
  }
  std::vector<Id> ways;
  ways.push_back(
      low_free ? with(digits.Whole(low, low), digits.Fraction(), false)
               : with(digits.Whole(low, low), digits.AtLeast(low_fraction, b.low_excluded), true));
  if (low + 1 < high) {
    ways.push_back(with(digits.Whole(low + 1, high - 1), digits.Fraction(), false));
  }
  if (high_whole_in) ways.push_back(with(digits.Whole(high, high), below_high(), false));
  return e.Choice(ways);
}

}  // namespace

Id IntegerBetween(const NumberBounds& b, Expressions& e) {
  const double low = b.low_excluded ? std::floor(b.low) + 1 : std::ceil(b.low);
  const double high = b.high_excluded ? std::ceil(b.high) - 1 : std::floor(b.high);
  std::vector<Id> ways;
  Digits digits(e);
  if (low < 0 && low <= high) {
    const int64_t least = high < 0 ? static_cast<int64_t>(-high) : 1;
    ways.push_back(e.Sequence({e.Literal("-"), digits.Whole(least, static_cast<int64_t>(-low))}));
  }
  if (high >= 0 && low <= high) {
    ways.push_back(
        digits.Whole(static_cast<int64_t>(std::max(low, 0.0)), static_cast<int64_t>(high)));
  }
  return e.Choice(ways);
}

Id NumberBetween(const NumberBounds& b, Expressions& e) {
  std::vector<Id> ways;
  const bool any = b.low < b.high || (b.low == b.high && !b.low_excluded && !b.high_excluded);
  if (any && b.low < 0) {
    const bool to_zero = b.high >= 0;
    const NumberBounds mirrored{to_zero ? 0 : -b.high, -b.low,
                                to_zero ? b.high == 0 && b.high_excluded : b.high_excluded,
                                b.low_excluded};
    ways.push_back(e.Sequence({e.Literal("-"), PositiveBetween(mirrored, e)}));
  }
  if (any && b.high >= 0 && !(b.high == 0 && b.high_excluded)) {
    const bool from_zero = b.low < 0;
    ways.push_back(PositiveBetween(
        {from_zero ? 0 : b.low, b.high, from_zero ? false : b.low_excluded, b.high_excluded}, e));
  }
  return e.Choice(ways);
}

}  // namespace sluice::grammar
