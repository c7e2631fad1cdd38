#include "src/text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>

namespace sluice {
namespace {

constexpr std::array<uint16_t, 30> MakeClassOfCategory() {
  std::array<uint16_t, 30> classes{};
  classes[UTF8PROC_CATEGORY_LU] = kLetter | kUpperish;
  classes[UTF8PROC_CATEGORY_LL] = kLetter | kLowerish;
  classes[UTF8PROC_CATEGORY_LT] = kLetter | kUpperish;
  classes[UTF8PROC_CATEGORY_LM] = kLetter | kUpperish | kLowerish;
  classes[UTF8PROC_CATEGORY_LO] = kLetter | kUpperish | kLowerish;
  classes[UTF8PROC_CATEGORY_MN] = kMark | kUpperish | kLowerish | kNonspacing;
  classes[UTF8PROC_CATEGORY_MC] = kMark | kUpperish | kLowerish;
  classes[UTF8PROC_CATEGORY_ME] = kMark | kUpperish | kLowerish;
  classes[UTF8PROC_CATEGORY_ND] = kNumber | kDecimal;
  classes[UTF8PROC_CATEGORY_NL] = kNumber;
  classes[UTF8PROC_CATEGORY_NO] = kNumber;
  for (int c = UTF8PROC_CATEGORY_PC; c <= UTF8PROC_CATEGORY_PO; ++c) classes[c] = kPunctuation;
  for (int c = UTF8PROC_CATEGORY_SM; c <= UTF8PROC_CATEGORY_SO; ++c) classes[c] = kSymbol;
  classes[UTF8PROC_CATEGORY_CC] = kHidden;
  classes[UTF8PROC_CATEGORY_CF] = kHidden;
  classes[UTF8PROC_CATEGORY_CO] = kHidden;
  return classes;
}
constexpr std::array<uint16_t, 30> kClassOfCategory = MakeClassOfCategory();

bool IsSpace(uint32_t code) {
  return (code >= 0x9 && code <= 0xD) || code == 0x20 || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

uint16_t ComputeClass(uint32_t code) {
  uint16_t classes = kClassOfCategory[utf8proc_category(static_cast<utf8proc_int32_t>(code))];
  if (IsSpace(code)) classes |= kSpace;
  if (code == '\r' || code == '\n') classes |= kNewline;
  return classes;
}

// Canonical decomposition with the marks of each run in the order of their combining classes.
std::vector<utf8proc_int32_t> Decompose(std::string_view text) {
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const DecodedChar c = DecodeChar(text, at);
    at += c.length;
    utf8proc_int32_t parts[32];  // the longest canonical decomposition has 4
    int boundary = 0;
    const utf8proc_ssize_t count = utf8proc_decompose_char(
        static_cast<utf8proc_int32_t>(c.code), parts, 32,
        static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE), &boundary);
    if (count > 0 && count <= 32) {
      codes.insert(codes.end(), parts, parts + count);
    } else {
      codes.push_back(static_cast<utf8proc_int32_t>(c.code));
    }
  }
  const auto rank = [](utf8proc_int32_t code) {
    return static_cast<uint64_t>(utf8proc_get_property(code)->combining_class);
  };
  // Stable by hand: std::stable_sort of libstdc++ 12 draws a warning from clang 19.
  std::vector<uint64_t> order;  // rank in the high half, position in the run in the low one
  std::vector<utf8proc_int32_t> run;
  for (size_t begin = 0; begin < codes.size();) {
    order.clear();
    for (size_t at = begin; at < codes.size() && rank(codes[at]) != 0; ++at) {
      order.push_back(rank(codes[at]) << 32 | (at - begin));
    }
    if (order.size() > 1 && !std::is_sorted(order.begin(), order.end())) {
      std::sort(order.begin(), order.end());
      run.assign(codes.begin() + static_cast<std::ptrdiff_t>(begin),
                 codes.begin() + static_cast<std::ptrdiff_t>(begin + order.size()));
      for (size_t i = 0; i < order.size(); ++i) codes[begin + i] = run[order[i] & 0xFFFFFFFFu];
    }
    begin += order.size() + 1;
  }
  return codes;
}

}  // namespace

DecodedChar DecodeChar(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(at);
  if (lead < 0x80) return {lead, 1, true, false};
  // Continuation bytes to come, and the bounds of the first of them, which rule out overlong
  // forms, surrogates and codes past U+10FFFF.
  int rest = 0;
  uint8_t low = 0x80, high = 0xBF;
  if (lead >= 0xC2 && lead <= 0xDF) {
    rest = 1;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    rest = 2;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    rest = 3;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return {kReplacement, 1, false, false};
  }
  uint32_t code = lead & (0x3Fu >> rest);
  for (int i = 1; i <= rest; ++i, low = 0x80, high = 0xBF) {
    const uint8_t length = static_cast<uint8_t>(i);
    if (at + i >= text.size()) return {kReplacement, length, false, true};
    const uint8_t next = byte(at + i);
    if (next < low || next > high) return {kReplacement, length, false, false};
    code = code << 6 | (next & 0x3F);
  }
  return {code, static_cast<uint8_t>(rest + 1), true, false};
}

void AppendUtf8(uint32_t code, std::string& out) {
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

bool IsUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const DecodedChar c = DecodeChar(text, at);
    if (!c.valid) return false;
    at += c.length;
  }
  return true;
}

std::string ReplaceBadUtf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  size_t good = 0;  // start of the well-formed bytes not yet copied
  for (size_t at = 0; at < text.size();) {
    const DecodedChar c = DecodeChar(text, at);
    if (!c.valid) {
      out.append(text, good, at - good);
      out.append(kReplacementUtf8);
      good = at + c.length;
    }
    at += c.length;
  }
  out.append(text, good);
  return out;
}

uint16_t ClassOf(uint32_t code) {
  static const std::array<uint16_t, 0x3000> table = [] {
    std::array<uint16_t, 0x3000> classes;
    for (uint32_t c = 0; c < classes.size(); ++c) classes[c] = ComputeClass(c);
    return classes;
  }();
  return code < table.size() ? table[code] : ComputeClass(code);
}

bool IsHan(uint32_t code) {
  struct Range {
    uint32_t first, last;
  };
  static constexpr Range kRanges[] = {
      {0x2E80, 0x2E99},   {0x2E9B, 0x2EF3},   {0x2F00, 0x2FD5},   {0x3005, 0x3005},
      {0x3007, 0x3007},   {0x3021, 0x3029},   {0x3038, 0x303B},   {0x3400, 0x4DBF},
      {0x4E00, 0x9FFF},   {0xF900, 0xFA6D},   {0xFA70, 0xFAD9},   {0x16FE2, 0x16FE3},
      {0x16FF0, 0x16FF1}, {0x20000, 0x2A6DF}, {0x2A700, 0x2B739}, {0x2B740, 0x2B81D},
      {0x2B820, 0x2CEA1}, {0x2CEB0, 0x2EBE0}, {0x2EBF0, 0x2EE5D}, {0x2F800, 0x2FA1D},
      {0x30000, 0x3134A}, {0x31350, 0x323AF}};
  const Range* range = std::partition_point(std::begin(kRanges), std::end(kRanges),
                                            [&](const Range& r) { return r.last < code; });
  return range != std::end(kRanges) && code >= range->first;
}

std::string Nfc(std::string_view text) {
  // Nothing below U+0300 composes or is composed further.
  const auto plain = [](char c) { return static_cast<uint8_t>(c) < 0xCC; };
  if (std::all_of(text.begin(), text.end(), plain)) return std::string(text);
  std::vector<utf8proc_int32_t> codes = Decompose(text);
  const utf8proc_ssize_t count =
      utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE));
  std::string out;
  out.reserve(text.size());
  for (utf8proc_ssize_t i = 0; i < count; ++i) AppendUtf8(static_cast<uint32_t>(codes[i]), out);
  return out;
}

std::vector<uint32_t> Nfd(std::string_view text) {
  const std::vector<utf8proc_int32_t> codes = Decompose(text);
  return std::vector<uint32_t>(codes.begin(), codes.end());
}

}  // namespace sluice
