#include "src/text/jinja/text.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstring>

namespace sluice::jinja {

void Text::Append(std::string_view bytes, bool content) {
  if (bytes.empty()) return;
  bytes_.append(bytes);
  if (runs_.empty() || runs_.back().content != content) {
    runs_.push_back({bytes_.size(), content});
  } else {
    runs_.back().end = bytes_.size();
  }
}

void Text::Append(const Text& other, size_t from, size_t to) {
  auto run = std::upper_bound(other.runs_.begin(), other.runs_.end(), from,
                              [](size_t at, const Run& r) { return at < r.end; });
  for (; from < to; ++run) {
    const size_t end = std::min(run->end, to);
    Append(std::string_view(other.bytes_).substr(from, end - from), run->content);
    from = end;
  }
}

void Text::AppendChar(uint32_t code, bool content) {
  std::string bytes;
  AppendUtf8(code, bytes);
  Append(bytes, content);
}

Text Text::Sub(size_t from, size_t to) const {
  Text part;
  part.Append(*this, from, to);
  return part;
}

bool Text::ContentAt(size_t at) const {
  const auto run = std::upper_bound(runs_.begin(), runs_.end(), at,
                                    [](size_t a, const Run& r) { return a < r.end; });
  return run != runs_.end() && run->content;
}

bool IsAscii(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](char c) { return (c & 0x80) == 0; });
}

size_t CountChars(std::string_view bytes) {
  return static_cast<size_t>(std::count_if(
      bytes.begin(), bytes.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0) != 0x80; }));
}

size_t OffsetOf(std::string_view bytes, size_t index) {
  for (size_t at = 0; at < bytes.size(); ++at) {
    if ((static_cast<uint8_t>(bytes[at]) & 0xC0) == 0x80) continue;
    if (index-- == 0) return at;
  }
  return bytes.size();
}

size_t Find(std::string_view text, std::string_view needle, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  const char* begin = text.data() + from;
  const void* found = memmem(begin, text.size() - from, needle.data(), needle.size());
  if (found == nullptr) return std::string_view::npos;
  return static_cast<size_t>(static_cast<const char*>(found) - text.data());
}

size_t FindLast(std::string_view text, std::string_view needle) {
  if (needle.size() <= 8) return text.rfind(needle);
  // std::string's rfind is quadratic at worst; the first in the mirror is the last here.
  const std::string mirror(text.rbegin(), text.rend()), wanted(needle.rbegin(), needle.rend());
  const size_t at = Find(mirror, wanted);
  return at == std::string::npos ? at : text.size() - at - needle.size();
}

namespace {

utf8proc_category_t Category(uint32_t code) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code));
}

// Characters whose upper case is several; utf8proc knows those of one.
std::u32string_view FullUpper(uint32_t code) {
  switch (code) {
    case 0xDF:
      return U"SS";
    case 0x149:
      return U"\u02BCN";
    case 0x1F0:
      return U"J\u030C";
    case 0x390:
      return U"\u0399\u0308\u0301";
    case 0x3B0:
      return U"\u03A5\u0308\u0301";
    case 0x587:
      return U"\u0535\u0552";
    case 0xFB00:
      return U"FF";
    case 0xFB01:
      return U"FI";
    case 0xFB02:
      return U"FL";
    case 0xFB03:
      return U"FFI";
    case 0xFB04:
      return U"FFL";
    case 0xFB05:
    case 0xFB06:
      return U"ST";
    default:
      return {};
  }
}

void AppendUpper(uint32_t code, bool content, Text& out) {
  const std::u32string_view full = FullUpper(code);
  for (const char32_t c : full) out.AppendChar(c, content);
  if (full.empty()) {
    out.AppendChar(static_cast<uint32_t>(utf8proc_toupper(static_cast<int32_t>(code))), content);
  }
}

void AppendTitle(uint32_t code, bool content, Text& out) {
  const std::u32string_view full = FullUpper(code);
  for (size_t i = 0; i < full.size(); ++i) {
    const auto c = static_cast<int32_t>(full[i]);
    out.AppendChar(static_cast<uint32_t>(i == 0 ? c : utf8proc_tolower(c)), content);
  }
  if (full.empty()) {
    out.AppendChar(static_cast<uint32_t>(utf8proc_totitle(static_cast<int32_t>(code))), content);
  }
}

// A sigma that ends a word has its own form.
bool EndsWord(const std::string& bytes, size_t from, size_t to) {
  const auto ignorable = [](uint32_t c) {
    const utf8proc_category_t k = Category(c);
    return c == '\'' || c == '.' || c == ':' || c == 0x2019 || k == UTF8PROC_CATEGORY_MN ||
           k == UTF8PROC_CATEGORY_CF || k == UTF8PROC_CATEGORY_LM;
  };
  size_t before = from;
  bool cased = false;
  while (before > 0) {
    do --before;
    while (before > 0 && (static_cast<uint8_t>(bytes[before]) & 0xC0) == 0x80);
    const uint32_t c = DecodeChar(bytes, before).code;
    if (ignorable(c)) continue;
    cased = IsCased(c);
    break;
  }
  if (!cased) return false;
  while (to < bytes.size()) {
    const DecodedChar c = DecodeChar(bytes, to);
    if (!ignorable(c.code)) return !IsCased(c.code);
    to += c.length;
  }
  return true;
}

void AppendLower(const Text& text, uint32_t code, size_t from, size_t to, bool content, Text& out) {
  if (code == 0x130) {
    out.AppendChar('i', content);
    out.AppendChar(0x307, content);
  } else if (code == 0x3A3) {
    out.AppendChar(EndsWord(text.bytes(), from, to) ? 0x3C2 : 0x3C3, content);
  } else {
    out.AppendChar(static_cast<uint32_t>(utf8proc_tolower(static_cast<int32_t>(code))), content);
  }
}

}  // namespace

bool IsSpace(uint32_t code) {
  return (ClassOf(code) & kSpace) != 0 || (code >= 0x1C && code <= 0x1F);
}
bool IsLineBreak(uint32_t code) {
  return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) || code == 0x85 ||
         code == 0x2028 || code == 0x2029;
}
bool IsUpper(uint32_t code) { return Category(code) == UTF8PROC_CATEGORY_LU; }
bool IsLower(uint32_t code) {
  return Category(code) == UTF8PROC_CATEGORY_LL || code == 0xAA || code == 0xBA ||
         (code >= 0x2B0 && code <= 0x2B8) || (code >= 0x2170 && code <= 0x217F) ||
         (code >= 0x24D0 && code <= 0x24E9);
}
bool IsTitle(uint32_t code) { return Category(code) == UTF8PROC_CATEGORY_LT; }
bool IsCased(uint32_t code) { return IsUpper(code) || IsLower(code) || IsTitle(code); }
bool IsAlpha(uint32_t code) { return (ClassOf(code) & kLetter) != 0; }
bool IsNumeric(uint32_t code) { return (ClassOf(code) & kNumber) != 0; }
bool IsDecimal(uint32_t code) { return (ClassOf(code) & kDecimal) != 0; }
bool IsDigit(uint32_t code) {
  return IsDecimal(code) || code == 0xB2 || code == 0xB3 || code == 0xB9 || code == 0x2070 ||
         (code >= 0x2074 && code <= 0x2079) || (code >= 0x2080 && code <= 0x2089) ||
         (code >= 0x2460 && code <= 0x2468);
}
bool IsPrintable(uint32_t code) {
  switch (Category(code)) {
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return false;
    case UTF8PROC_CATEGORY_ZS:
      return code == ' ';
    default:
      return true;
  }
}
bool IsNameStart(uint32_t code) {
  return code == '_' || IsAlpha(code) || Category(code) == UTF8PROC_CATEGORY_NL;
}
bool IsNameChar(uint32_t code) {
  const utf8proc_category_t k = Category(code);
  return IsNameStart(code) || k == UTF8PROC_CATEGORY_ND || k == UTF8PROC_CATEGORY_MN ||
         k == UTF8PROC_CATEGORY_MC || k == UTF8PROC_CATEGORY_PC;
}

int DecimalValue(uint32_t code) {
  if (code >= '0' && code <= '9') return static_cast<int>(code - '0');
  if (code < 0x80 || !IsDecimal(code)) return -1;
  // Digits of a script stand in a row, from a zero on.
  int value = 0;
  while (value < 9 && IsDecimal(code - 1 - static_cast<uint32_t>(value))) ++value;
  return value;
}

Text Upper(const Text& text) {
  Text out;
  ForEachChar(
      text, [&](uint32_t code, size_t, size_t, bool content) { AppendUpper(code, content, out); });
  return out;
}

Text Lower(const Text& text) {
  Text out;
  ForEachChar(text, [&](uint32_t code, size_t from, size_t to, bool content) {
    AppendLower(text, code, from, to, content, out);
  });
  return out;
}

std::string Lower(std::string_view text) { return Lower(Text(text)).bytes(); }

Text Capitalize(const Text& text) {
  Text out;
  ForEachChar(text, [&](uint32_t code, size_t from, size_t to, bool content) {
    if (from == 0) {
      AppendTitle(code, content, out);
    } else {
      AppendLower(text, code, from, to, content, out);
    }
  });
  return out;
}

Text TitleWords(const Text& text) {
  Text out;
  bool inside = false;
  ForEachChar(text, [&](uint32_t code, size_t from, size_t to, bool content) {
    if (inside) {
      AppendLower(text, code, from, to, content, out);
    } else {
      AppendTitle(code, content, out);
    }
    inside = IsCased(code);
  });
  return out;
}

Text SwapCase(const Text& text) {
  Text out;
  ForEachChar(text, [&](uint32_t code, size_t from, size_t to, bool content) {
    if (IsUpper(code)) {
      AppendLower(text, code, from, to, content, out);
    } else if (IsLower(code)) {
      AppendUpper(code, content, out);
    } else {
      out.AppendChar(code, content);
    }
  });
  return out;
}

Text CaseFold(const Text& text) {
  Text out;
  ForEachChar(Lower(text), [&](uint32_t code, size_t, size_t, bool content) {
    const std::u32string_view full = FullUpper(code);
    for (const char32_t c : full) {
      out.AppendChar(static_cast<uint32_t>(utf8proc_tolower(static_cast<int32_t>(c))), content);
    }
    if (full.empty()) out.AppendChar(code == 0x3C2 ? 0x3C3 : code, content);
  });
  return out;
}

Text Strip(const Text& text, std::string_view chars, bool left, bool right) {
  const std::string& bytes = text.bytes();
  std::vector<uint32_t> set;
  for (size_t at = 0; at < chars.size();) {
    const DecodedChar c = DecodeChar(chars, at);
    set.push_back(c.code);
    at += c.length;
  }
  std::sort(set.begin(), set.end());
  const auto goes = [&](uint32_t code) {
    return chars.empty() ? IsSpace(code) : std::binary_search(set.begin(), set.end(), code);
  };
  size_t begin = 0, end = bytes.size();
  while (left && begin < end) {
    const DecodedChar c = DecodeChar(bytes, begin);
    if (!goes(c.code)) break;
    begin += c.length;
  }
  while (right && end > begin) {
    size_t last = end - 1;
    while (last > begin && (static_cast<uint8_t>(bytes[last]) & 0xC0) == 0x80) --last;
    if (!goes(DecodeChar(bytes, last).code)) break;
    end = last;
  }
  return text.Sub(begin, end);
}

Text EscapeHtml(const Text& text) {
  Text out;
  size_t from = 0;
  const auto replace = [&](size_t at, std::string_view by) {
    out.Append(text, from, at);
    out.Append(by, text.ContentAt(at));
    from = at + 1;
  };
  for (size_t at = 0; at < text.size(); ++at) {
    switch (text.bytes()[at]) {
      case '&':
        replace(at, "&amp;");
        break;
      case '<':
        replace(at, "&lt;");
        break;
      case '>':
        replace(at, "&gt;");
        break;
      case '"':
        replace(at, "&#34;");
        break;
      case '\'':
        replace(at, "&#39;");
        break;
      default:
        break;
    }
  }
  out.Append(text, from, text.size());
  return out;
}

}  // namespace sluice::jinja
