// Writes GGUF files (version 3 unless told otherwise). Used by tools that make
// models from models, and by tests, which also write files that lie: nothing is
// checked here. One thread.
#ifndef SLUICE_SRC_FILE_GGUF_WRITER_H_
#define SLUICE_SRC_FILE_GGUF_WRITER_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/file/gguf.h"

namespace sluice {

class GgufWriter {
 public:
  void set_version(uint32_t version) { version_ = version; }
  // Also adds general.alignment when it is not the default 32.
  void SetAlignment(uint32_t alignment);

  // Metadata, in the order of the calls.
  void AddU32(std::string_view key, uint32_t value);
  void AddU64(std::string_view key, uint64_t value);
  void AddI32(std::string_view key, int32_t value);
  void AddF32(std::string_view key, float value);
  void AddBool(std::string_view key, bool value);
  void AddString(std::string_view key, std::string_view value);
  void AddStrings(std::string_view key, std::span<const std::string> values);
  void AddFloats(std::string_view key, std::span<const float> values);
  void AddI32s(std::string_view key, std::span<const int32_t> values);
  // Any value as read from another file, kept byte for byte.
  void AddValue(std::string_view key, const GgufValue& value);

  // `data` is not copied: it must live until the file is written. shape[0] is contiguous.
  void AddTensor(std::string_view name, uint32_t type_id, std::span<const uint64_t> shape,
                 std::span<const uint8_t> data);

  // The whole file in memory.
  std::vector<uint8_t> Bytes() const;
  // Whole or not at all (AtomicFile).
  Status Write(const std::string& path) const;

 private:
  std::vector<uint8_t> Head() const;  // all before the tensor data, padded
  uint64_t Padded(uint64_t bytes) const;
  void AddKey(std::string_view key, GgufType type);

  uint32_t version_ = 3;
  uint32_t alignment_ = 32;
  uint64_t entries_ = 0;
  std::vector<uint8_t> metadata_;
  uint64_t tensors_ = 0;
  std::vector<uint8_t> table_;
  uint64_t data_bytes_ = 0;  // of all tensors so far, padded
  std::vector<std::span<const uint8_t>> data_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_FILE_GGUF_WRITER_H_
