#include "src/text/pretokenize_rules.h"

#include <algorithm>
#include <iterator>

#include "src/text/unicode.h"

namespace sluice {
namespace {

constexpr uint16_t kWordOrSpace = kLetter | kNumber | kSpace;

// End of the longest run of characters of some class in `mask`.
size_t RunOf(const TextSpan& text, size_t at, uint16_t mask) {
  while (text.Classes(at) & mask) ++at;
  return at;
}

// The same of characters of none of the classes.
size_t RunWithout(const TextSpan& text, size_t at, uint16_t mask) {
  while (at < text.end && !(text.chars[at].classes & mask)) ++at;
  return at;
}

template <class Predicate>
size_t RunWhere(const TextSpan& text, size_t at, Predicate good) {
  while (at < text.end && good(text.chars[at].code)) ++at;
  return at;
}

bool IsAsciiLetter(uint32_t c) { return (c | 0x20) >= 'a' && (c | 0x20) <= 'z'; }

// 's 't 'm 'd 're 've 'll; with `fold` in either case (U+017F folds to s).
size_t Contraction(const TextSpan& text, size_t at, bool fold) {
  if (text.Code(at) != '\'') return at;
  const auto letter = [&](size_t i) {
    const uint32_t c = text.Code(i);
    if (!fold) return c;
    if (c == 0x17F) return uint32_t{'s'};
    return c >= 'A' && c <= 'Z' ? c + 0x20 : c;
  };
  const uint32_t first = letter(at + 1), second = letter(at + 2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return at + 2;
  const bool pair = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                    (first == 'l' && second == 'l');
  return pair ? at + 3 : at;
}

// \s+(?!\S) | \s+ : all of a run but its last blank, which is left to the word behind it.
size_t Blanks(const TextSpan& text, size_t at) {
  const size_t end = RunOf(text, at, kSpace);
  return end < text.end && end > at + 1 ? end - 1 : end;
}

// \s*[\r\n]+ : a run up to its last newline. Then as Blanks.
size_t NewlinesOrBlanks(const TextSpan& text, size_t at) {
  size_t last = at;  // past the last newline
  size_t end = at;
  for (; text.Classes(end) & kSpace; ++end) {
    if (text.chars[end].classes & kNewline) last = end + 1;
  }
  if (last > at) return last;
  return end < text.end && end > at + 1 ? end - 1 : end;
}

struct CaseMasks {
  uint16_t upper, lower;
};

bool MayOpen(const TextSpan& text, size_t at, uint16_t mask, bool han) {
  return (text.Classes(at) & mask) && !(han && IsHan(text.chars[at].code));
}

// [upper]*[lower]+ from `at`; `at` if it does not match. The greedy first part gives back what
// the second needs: the last character it holds that is of both.
size_t CapitalsThenSmall(const TextSpan& text, size_t at, bool han) {
  size_t both = at;  // past the last character of both classes
  size_t i = at;
  for (; MayOpen(text, i, kUpperish, han); ++i) {
    if (text.chars[i].classes & kLowerish) both = i + 1;
  }
  const size_t end = [&] {
    size_t j = i;
    while (MayOpen(text, j, kLowerish, han)) ++j;
    return j;
  }();
  return end > i ? end : both;
}

// [upper]+[lower]* from `at`.
size_t Capitals(const TextSpan& text, size_t at, bool han) {
  size_t i = at;
  while (MayOpen(text, i, kUpperish, han)) ++i;
  if (i == at) return at;
  while (MayOpen(text, i, kLowerish, han)) ++i;
  return i;
}

// `word` after one optional character that is neither newline, letter nor number.
template <class Word>
size_t Prefixed(const TextSpan& text, size_t at, Word word) {
  const bool prefix = at < text.end && !(text.chars[at].classes & (kNewline | kLetter | kNumber));
  if (prefix) {
    const size_t end = word(at + 1);
    if (end > at + 1) return end;
  }
  return word(at);
}

size_t CasedWord(const TextSpan& text, size_t at, const WordStyle& style) {
  size_t end = Prefixed(text, at, [&](size_t i) { return CapitalsThenSmall(text, i, style.han); });
  if (end == at) {
    end = Prefixed(text, at, [&](size_t i) { return Capitals(text, i, style.han); });
  }
  return end > at && style.suffix ? Contraction(text, end, true) : end;
}

size_t UpTo(const TextSpan& text, size_t at, uint16_t mask, int most) {
  for (; most > 0 && (text.Classes(at) & mask); --most) ++at;
  return at;
}

bool Within(uint32_t code, uint32_t first, uint32_t last) { return code >= first && code <= last; }

}  // namespace

size_t Gpt2Words(const TextSpan& text, size_t at) {
  if (const size_t end = Contraction(text, at, false); end > at) return end;
  const size_t first = at + (text.Code(at) == ' ');
  for (const uint16_t mask : {kLetter, kNumber}) {
    if (text.Classes(first) & mask) return RunOf(text, first, mask);
  }
  if (const size_t end = RunWithout(text, first, kWordOrSpace); end > first) return end;
  return Blanks(text, at);
}

size_t Words(const TextSpan& text, size_t at, const WordStyle& style) {
  if (style.han) {
    const size_t end = RunWhere(text, at, IsHan);
    if (end > at) return end;
  }
  if (style.contractions) {
    if (const size_t end = Contraction(text, at, true); end > at) return end;
  }
  const uint16_t letters = style.marks ? kLetter | kMark : kLetter;
  const size_t word = style.cased
                          ? CasedWord(text, at, style)
                          : Prefixed(text, at, [&](size_t i) { return RunOf(text, i, letters); });
  if (word > at) return word;
  if (const size_t end = UpTo(text, at, kNumber, style.max_digits); end > at) return end;
  const size_t first = at + (text.Code(at) == ' ');
  const uint16_t no_sign = static_cast<uint16_t>(letters | kNumber | kSpace);
  if (size_t end = RunWithout(text, first, no_sign); end > first) {
    if (!style.newlines) return end;
    const auto tail = [&](uint32_t c) {
      return c == '\r' || c == '\n' || (style.slashes && c == '/');
    };
    return RunWhere(text, end, tail);
  }
  return NewlinesOrBlanks(text, at);
}

size_t DeepseekWords(const TextSpan& text, size_t at) {
  const uint32_t code = text.Code(at);
  const bool sign = code < 0x7F && code > ' ' && !IsAsciiLetter(code) && !Within(code, '0', '9');
  if (sign && IsAsciiLetter(text.Code(at + 1))) return RunWhere(text, at + 1, IsAsciiLetter);
  constexpr uint16_t kWord = kLetter | kMark, kSign = kPunctuation | kSymbol;
  if (at < text.end && !(text.chars[at].classes & (kNewline | kLetter | kSign))) {
    if (text.Classes(at + 1) & kWord) return RunOf(text, at + 1, kWord);
  }
  if (text.Classes(at) & kWord) return RunOf(text, at, kWord);
  const size_t first = at + (code == ' ');
  if (text.Classes(first) & kSign) return RunOf(text, RunOf(text, first, kSign), kNewline);
  return NewlinesOrBlanks(text, at);
}

size_t DeepseekLetters(const TextSpan& text, size_t at) {
  struct Range {
    uint32_t first, last;
  };
  static constexpr Range kRanges[] = {
      {'A', 'Z'},         {'a', 'z'},         {0xB5, 0xB5},       {0xC0, 0xD6},
      {0xD8, 0xF6},       {0xF8, 0x1BA},      {0x1BC, 0x1BF},     {0x1C4, 0x293},
      {0x295, 0x2AF},     {0x370, 0x373},     {0x376, 0x377},     {0x37B, 0x37D},
      {0x37F, 0x37F},     {0x386, 0x386},     {0x388, 0x38A},     {0x38C, 0x38C},
      {0x38E, 0x3A1},     {0x3A3, 0x3F5},     {0x3F7, 0x481},     {0x48A, 0x52F},
      {0x531, 0x556},     {0x10A0, 0x10C5},   {0x13A0, 0x13F5},   {0x13F8, 0x13FD},
      {0x1C90, 0x1CBA},   {0x1CBD, 0x1CBF},   {0x1D00, 0x1D2B},   {0x1D6B, 0x1D77},
      {0x1D79, 0x1D9A},   {0x1E00, 0x1F15},   {0x1F18, 0x1F1D},   {0x1F20, 0x1F45},
      {0x1F48, 0x1F4D},   {0x1F50, 0x1F57},   {0x1F59, 0x1F59},   {0x1F5B, 0x1F5B},
      {0x1F5D, 0x1F5D},   {0x1F5F, 0x1F7D},   {0x1F80, 0x1FB4},   {0x1FB6, 0x1FBC},
      {0x1FBE, 0x1FBE},   {0x1FC2, 0x1FC4},   {0x1FC6, 0x1FCC},   {0x1FD0, 0x1FD3},
      {0x1FD6, 0x1FDB},   {0x1FE0, 0x1FEC},   {0x1FF2, 0x1FF4},   {0x1FF6, 0x1FFC},
      {0x2102, 0x2102},   {0x2107, 0x2107},   {0x210A, 0x2113},   {0x2115, 0x2115},
      {0x2119, 0x211D},   {0x2124, 0x2124},   {0x2126, 0x2126},   {0x2128, 0x2128},
      {0x212A, 0x212D},   {0x212F, 0x2134},   {0x2139, 0x2139},   {0x213C, 0x213F},
      {0x2145, 0x2149},   {0x214E, 0x214E},   {0x2183, 0x2184},   {0x2C00, 0x2C7B},
      {0x2C7E, 0x2CE4},   {0x2CEB, 0x2CEE},   {0x2CF2, 0x2CF3},   {0xA640, 0xA66D},
      {0xA680, 0xA69B},   {0xA722, 0xA76F},   {0xA771, 0xA787},   {0xA78B, 0xA78E},
      {0xAB70, 0xABBF},   {0xFB00, 0xFB06},   {0xFB13, 0xFB17},   {0xFF21, 0xFF3A},
      {0xFF41, 0xFF5A},   {0x10400, 0x1044F}, {0x104B0, 0x104D3}, {0x104D8, 0x104FB},
      {0x10C80, 0x10CB2}, {0x10CC0, 0x10CF2}, {0x118A0, 0x118DF}, {0x1E900, 0x1E943}};
  const auto letter = [](uint32_t code) {
    const Range* range = std::partition_point(std::begin(kRanges), std::end(kRanges),
                                              [&](const Range& r) { return r.last < code; });
    return range != std::end(kRanges) && code >= range->first;
  };
  const size_t first = at + ((text.Classes(at) & kSpace) != 0);
  const size_t end = RunWhere(text, first, letter);
  return end > first ? end : at;
}

size_t DeepseekPunctuation(const TextSpan& text, size_t at) {
  const auto sign = [](uint32_t c) {
    return Within(c, '!', '/') || Within(c, ':', '~') || Within(c, 0xFF01, 0xFF0F) ||
           Within(c, 0xFF1A, 0xFF5E) || Within(c, 0x2018, 0x201F) || Within(c, 0x3000, 0x3002);
  };
  // The optional blank may itself be U+3000; it is given back when nothing follows it.
  if (text.Classes(at) & kSpace) {
    if (const size_t end = RunWhere(text, at + 1, sign); end > at + 1) return end;
  }
  return RunWhere(text, at, sign);
}

size_t SpacePunctuation(const TextSpan& text, size_t at) {
  const size_t first = at + ((text.Classes(at) & kSpace) != 0);
  const size_t end = RunOf(text, first, kPunctuation);
  return end > first ? end : at;
}

size_t SpaceLetters(const TextSpan& text, size_t at) {
  const size_t first = at + ((text.Classes(at) & kSpace) != 0);
  const size_t end = RunOf(text, first, kLetter);
  return end > first ? end : at;
}

size_t Newline(const TextSpan& text, size_t at) {
  return at + ((text.Classes(at) & kNewline) != 0);
}

size_t TrailingSpaces(const TextSpan& text, size_t at) {
  // Inside a run: the run's first blank has already failed.
  if (at > text.begin && (text.chars[at - 1].classes & kSpace)) return at;
  const size_t end = RunOf(text, at, kSpace);
  return end == text.end ? end : at;
}

size_t HanAndKana(const TextSpan& text, size_t at) {
  return RunWhere(
      text, at, [](uint32_t c) { return Within(c, 0x4E00, 0x9FA5) || Within(c, 0x3040, 0x30FF); });
}

size_t HanToHangul(const TextSpan& text, size_t at) {
  return RunWhere(
      text, at, [](uint32_t c) { return Within(c, 0x0800, 0x9FA5) || Within(c, 0xAC00, 0xD7FF); });
}

size_t OneNumber(const TextSpan& text, size_t at) { return UpTo(text, at, kNumber, 1); }

size_t NumberRun(const TextSpan& text, size_t at) { return RunOf(text, at, kNumber); }

size_t ThreeNumbers(const TextSpan& text, size_t at) { return UpTo(text, at, kNumber, 3); }

size_t ThreeAsciiDigits(const TextSpan& text, size_t at) {
  for (size_t i = at; i < at + 3; ++i) {
    if (!Within(text.Code(i), '0', '9')) return at;
  }
  return at + 3;
}

size_t DefaultPunctuation(const TextSpan& text, size_t at) {
  constexpr std::string_view kSigns = "$+<=>^~|";
  while (at < text.end &&
         ((text.chars[at].classes & kPunctuation) ||
          (text.Code(at) < 0x7F && kSigns.find(static_cast<char>(text.Code(at))) != kSigns.npos))) {
    ++at;
  }
  return at;
}

size_t FalconPunctuation(const TextSpan& text, size_t at) {
  size_t end = at;
  for (;;) {
    const size_t next = text.Code(end) == '`' ? end + 1 : DefaultPunctuation(text, end);
    if (next == end) return end;
    end = next;
  }
}

size_t BloomWords(const TextSpan& text, size_t at) {
  const auto word = [](uint32_t c) {
    constexpr std::u32string_view kStops = U"(|.,!?\u2026\u3002\uFF0C\u3001\u0964\u06D4\u060C)";
    return !(ClassOf(c) & kSpace) && kStops.find(static_cast<char32_t>(c)) == kStops.npos;
  };
  const size_t first = at + (text.Code(at) == ' ');
  const size_t end = RunWhere(text, first, word);
  return end > first ? end : at;
}

size_t LinesAndBreaks(const TextSpan& text, size_t at) {
  const bool break_run = text.Code(at) == '\n';
  return RunWhere(text, at, [&](uint32_t c) { return (c == '\n') == break_run; });
}

}  // namespace sluice
