#include "src/text/grammar/utf8_ranges.h"

#include <algorithm>
#include <string>

#include "src/text/unicode.h"

namespace sluice::grammar {

// A range is one sequence if its ends have the same length and, from the first byte in which they
// differ, all later bytes run through all of 80 to BF. It is cut until that is so.
void AppendUtf8Sequences(const CodeRange& range, std::vector<ByteSequence>& out) {
  std::vector<CodeRange> todo = {range};
  while (!todo.empty()) {
    CodeRange r = todo.back();
    todo.pop_back();
    bool cut = false;
    const auto cut_after = [&](uint32_t last) {
      todo.push_back({last + 1, r.high});
      todo.push_back({r.low, last});
      cut = true;
    };
    for (const uint32_t last : {0x7Fu, 0x7FFu, 0xFFFFu}) {
      if (!cut && r.low <= last && r.high > last) cut_after(last);
    }
    for (int i = 1; r.high > 0x7F && !cut && i <= 3; ++i) {
      const uint32_t low_bits = (1u << (6 * i)) - 1;
      if ((r.low & ~low_bits) == (r.high & ~low_bits)) continue;
      if ((r.low & low_bits) != 0) {
        cut_after(r.low | low_bits);
      } else if ((r.high & low_bits) != low_bits) {
        cut_after((r.high & ~low_bits) - 1);
      }
    }
    if (cut) continue;
    std::string low, high;
    AppendUtf8(r.low, low);
    AppendUtf8(r.high, high);
    ByteSequence s{static_cast<uint8_t>(low.size()), {}};
    for (size_t i = 0; i < low.size(); ++i) {
      s.bytes[i] = {static_cast<uint8_t>(low[i]), static_cast<uint8_t>(high[i])};
    }
    out.push_back(s);
  }
}

}  // namespace sluice::grammar
