#include "src/base/printable.h"

#include <cstdint>

namespace sluice {
namespace {

// Length of the well-formed UTF-8 sequence at the start of `s`, 0 if there is none.
size_t Utf8Length(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(s[i]); };
  const uint8_t lead = byte(0);
  const size_t n = lead < 0x80                   ? 1
                   : lead >= 0xC2 && lead < 0xE0 ? 2
                   : lead >= 0xE0 && lead < 0xF0 ? 3
                   : lead >= 0xF0 && lead < 0xF5 ? 4
                                                 : 0;
  if (n == 0 || n > s.size()) return 0;
  for (size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, beyond U+10FFFF.
  if ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F)) return 0;
  if ((lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F)) return 0;
  return n;
}

// C0 and C1 controls, DEL, and the line separators U+2028 and U+2029.
bool IsControl(std::string_view c) {
  const uint8_t b0 = static_cast<uint8_t>(c[0]);
  if (c.size() == 1) return b0 < 0x20 || b0 == 0x7F;
  if (c.size() == 2) return b0 == 0xC2 && static_cast<uint8_t>(c[1]) < 0xA0;
  return c == "\u2028" || c == "\u2029";
}

}  // namespace

std::string Printable(std::string_view bytes, size_t limit) {
  static const char kHex[] = "0123456789ABCDEF";
  std::string out;
  size_t i = 0;
  while (i < bytes.size() && i < limit) {
    const size_t n = Utf8Length(bytes.substr(i));
    if (n > 0 && !IsControl(bytes.substr(i, n))) {
      out.append(bytes.substr(i, n));
      i += n;
      continue;
    }
    const uint8_t b = static_cast<uint8_t>(bytes[i++]);
    out.append({'\\', 'x', kHex[b >> 4], kHex[b & 15]});
  }
  if (i < bytes.size()) out += "...";
  return out;
}

}  // namespace sluice
