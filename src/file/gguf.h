// A GGUF model file (v2, v3, little endian; split files too): directory of
// metadata and tensors over read-only maps. Nothing is copied; every count,
// length, offset, alignment, dimension and type is checked, once, here.
// Used by src/text, src/model and the cli; any thread after Open.
#ifndef SLUICE_SRC_FILE_GGUF_H_
#define SLUICE_SRC_FILE_GGUF_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quant/format.h"
#include "src/base/mapped_file.h"
#include "src/base/status.h"

namespace sluice {

enum class GgufType : uint32_t {
  kU8,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64
};
const char* GgufTypeName(GgufType type);  // "u32"

// One metadata value; views into the map.
struct GgufValue {
  GgufType type{};
  GgufType element{};  // of arrays
  uint64_t count = 1;  // elements of an array; 1 otherwise
  std::span<const uint8_t>
      bytes;  // raw little-endian payload (string: its bytes; arrays: the elements)
};

struct GgufTensor {
  std::string_view name;
  const Format* format = nullptr;  // known formats only; see type_id
  uint32_t type_id = 0;
  uint32_t dims = 0;
  uint64_t shape[4] = {1, 1, 1, 1};  // shape[0] is k, the contiguous one
  const uint8_t* data = nullptr;     // inside a map
  uint64_t bytes = 0;
  uint64_t Elements() const { return shape[0] * shape[1] * shape[2] * shape[3]; }
};

class Gguf {
 public:
  // Opens one file, or all parts when `path` is part 1 of a split (-00001-of-0000N.gguf).
  static Result<std::unique_ptr<Gguf>> Open(const std::string& path);
  virtual ~Gguf() = default;

  virtual const std::string& path() const = 0;
  virtual uint32_t version() const = 0;
  virtual uint64_t file_bytes() const = 0;            // of all parts
  virtual std::vector<FileStamp> stamps() const = 0;  // of each part

  // Metadata in file order.
  virtual size_t metadata_size() const = 0;
  virtual std::string_view metadata_key(size_t i) const = 0;
  virtual const GgufValue& metadata_value(size_t i) const = 0;
  virtual const GgufValue* Find(std::string_view key) const = 0;  // null if absent

  // Typed access. Absent: nullopt / empty. Present with another type: an error naming key,
  // expected, found. Integer getters accept any integer type whose value fits.
  Result<std::optional<uint64_t>> U64(std::string_view key) const;
  Result<std::optional<int64_t>> I64(std::string_view key) const;
  Result<std::optional<double>> F64(std::string_view key) const;  // f32 or f64
  Result<std::optional<bool>> Bool(std::string_view key) const;
  Result<std::optional<std::string_view>> String(std::string_view key) const;
  Result<std::vector<std::string_view>> Strings(std::string_view key) const;  // empty if absent
  Result<std::vector<float>> Floats(std::string_view key) const;
  Result<std::vector<int64_t>> Integers(
      std::string_view key) const;  // arrays of any integer or bool type

  virtual std::span<const GgufTensor> tensors() const = 0;
  virtual const GgufTensor* FindTensor(std::string_view name) const = 0;

  // Hints for the map behind one tensor: read ahead, or drop the pages (their bytes stay readable).
  virtual void WillNeed(const GgufTensor& tensor) const = 0;
  virtual void DontNeed(const GgufTensor& tensor) const = 0;
  // Bytes of the maps now in RAM (mincore).
  virtual uint64_t ResidentBytes() const = 0;
};

}  // namespace sluice
#endif  // SLUICE_SRC_FILE_GGUF_H_
