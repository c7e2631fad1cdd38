// What one GGUF file says about itself: header, metadata, tensor table, parsed
// and checked from bytes in memory. Gguf::Open joins one or more of these; the
// tests parse mutated bytes with it directly. Any thread.
#ifndef SLUICE_SRC_FILE_GGUF_DIRECTORY_H_
#define SLUICE_SRC_FILE_GGUF_DIRECTORY_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/file/gguf.h"

namespace sluice {

struct GgufEntry {
  std::string_view key;
  GgufValue value;
};

// Views into the parsed bytes, which must outlive it.
struct GgufDirectory {
  uint32_t version = 0;
  uint64_t alignment = 32;
  uint64_t data_offset = 0;         // of tensor data in the file
  std::vector<GgufEntry> metadata;  // in file order
  std::vector<GgufTensor> tensors;  // in file order, `data` set
};

// Every tensor of the result lies inside `file`, aligned, overlapping no other.
Result<GgufDirectory> ParseGgufDirectory(std::span<const uint8_t> file);

// The value of an integer entry of any width; an error naming `key` otherwise.
Result<uint64_t> UnsignedValue(std::string_view key, const GgufValue& value);

// Positions of `keys` sorted by key, for look-up by binary search; a repeated
// key is an error that calls it a `what`. Sorted rather than hashed: a file
// made of colliding names must not take quadratic time.
Result<std::vector<uint32_t>> SortedUnique(std::span<const std::string_view> keys,
                                           const char* what);

}  // namespace sluice
#endif  // SLUICE_SRC_FILE_GGUF_DIRECTORY_H_
