#include "src/text/charsmap.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace sluice {
namespace {

// Honest rules read at most a few characters and write at most a few dozen bytes; these bounds
// keep a hostile blob from making a text quadratic or huge.
constexpr size_t kMaxPrefixBytes = 256;
constexpr size_t kMaxReplacementBytes = 1024;

// A unit: bits 10-30 offset (times 256 if bit 9 is set), bit 8 a rule ends here, bits 0-7 the
// byte that leads here; bit 31 marks a value, which is in the bits below it.
constexpr uint32_t kValueBit = uint32_t{1} << 31;
uint32_t Offset(uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }

}  // namespace

Result<Charsmap> Charsmap::Parse(std::span<const uint8_t> blob) {
  uint32_t bytes = 0;
  if (blob.size() >= 4) std::memcpy(&bytes, blob.data(), 4);
  if (blob.size() < 4 || bytes > blob.size() - 4 || bytes % 4 != 0) {
    return Status(StatusCode::kCorrupt, "tokenizer.ggml.precompiled_charsmap: its table of " +
                                            std::to_string(bytes) + " bytes does not fit in " +
                                            std::to_string(blob.size()));
  }
  Charsmap map;
  map.units_ = blob.subspan(4, bytes);
  const std::span<const uint8_t> rest = blob.subspan(4 + size_t{bytes});
  map.replacements_ = {reinterpret_cast<const char*>(rest.data()), rest.size()};
  return map;
}

uint32_t Charsmap::Unit(uint32_t index) const {
  uint32_t unit = 0;
  if (index < units_.size() / 4) std::memcpy(&unit, units_.data() + size_t{index} * 4, 4);
  return unit;
}

Charsmap::Rule Charsmap::Longest(std::string_view text) const {
  Rule rule;
  if (units_.empty()) return rule;
  uint32_t node = Offset(Unit(0));
  const size_t limit = std::min(text.size(), kMaxPrefixBytes);
  for (size_t i = 0; i < limit; ++i) {
    const uint8_t byte = static_cast<uint8_t>(text[i]);
    if (byte == 0) break;  // ends keys
    node ^= byte;
    const uint32_t unit = Unit(node);
    if ((unit & (kValueBit | 0xFF)) != byte) break;
    node ^= Offset(unit);
    if (!(unit >> 8 & 1)) continue;
    const size_t start = Unit(node) & ~kValueBit;
    const size_t end =
        start < replacements_.size() ? replacements_.find('\0', start) : std::string_view::npos;
    if (end == std::string_view::npos || end - start > kMaxReplacementBytes) continue;
    rule = {i + 1, replacements_.substr(start, end - start)};
  }
  return rule;
}

}  // namespace sluice
