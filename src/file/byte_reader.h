// A bounds-checked cursor over untrusted little-endian bytes. Every parser of
// this folder reads through it, so that no length or count is used before it
// was compared with what is left. A failed read leaves the cursor where it was.
#ifndef SLUICE_SRC_FILE_BYTE_READER_H_
#define SLUICE_SRC_FILE_BYTE_READER_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace sluice {

static_assert(std::endian::native == std::endian::little, "GGUF payloads are used as they lie");

class ByteReader {
 public:
  explicit ByteReader(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  size_t offset() const { return offset_; }
  size_t left() const { return bytes_.size() - offset_; }

  template <class T>
  [[nodiscard]] bool Read(T* value) {
    if (left() < sizeof(T)) return false;
    std::memcpy(value, bytes_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return true;
  }

  [[nodiscard]] bool ReadBytes(uint64_t n, std::span<const uint8_t>* bytes) {
    if (n > left()) return false;
    *bytes = bytes_.subspan(offset_, n);
    offset_ += n;
    return true;
  }

  // `count` elements of `size` bytes each.
  [[nodiscard]] bool ReadArray(uint64_t count, size_t size, std::span<const uint8_t>* bytes) {
    return count <= left() / size && ReadBytes(count * size, bytes);
  }

  // A GGUF string: u64 length, then the bytes.
  [[nodiscard]] bool ReadString(std::string_view* text) {
    const size_t start = offset_;
    uint64_t length;
    std::span<const uint8_t> bytes;
    if (!Read(&length) || !ReadBytes(length, &bytes)) {
      offset_ = start;
      return false;
    }
    *text = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    return true;
  }

  // `count` GGUF strings in a row; `bytes` spans all of them, lengths included.
  [[nodiscard]] bool ReadStrings(uint64_t count, std::span<const uint8_t>* bytes) {
    const size_t start = offset_;
    bool good = count <= left() / sizeof(uint64_t);
    std::string_view text;
    for (uint64_t i = 0; good && i < count; ++i) good = ReadString(&text);
    if (good) *bytes = bytes_.subspan(start, offset_ - start);
    if (!good) offset_ = start;
    return good;
  }

 private:
  std::span<const uint8_t> bytes_;
  size_t offset_ = 0;
};

}  // namespace sluice
#endif  // SLUICE_SRC_FILE_BYTE_READER_H_
