// Bytes from outside inside a message of ours: one line, no control
// characters, bounded length. Used wherever an error quotes a key, a name or a
// path; any thread.
#ifndef SLUICE_SRC_BASE_PRINTABLE_H_
#define SLUICE_SRC_BASE_PRINTABLE_H_

#include <string>
#include <string_view>

namespace sluice {

// Control characters and bytes that are not UTF-8 become \xNN; past `limit` bytes the rest is
// "...".
std::string Printable(std::string_view bytes, size_t limit = 80);

}  // namespace sluice
#endif  // SLUICE_SRC_BASE_PRINTABLE_H_
