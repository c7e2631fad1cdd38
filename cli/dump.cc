#include "cli/dump.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "src/base/printable.h"
#include "src/file/summary.h"

namespace sluice {
namespace {

using Decoder = void (*)(const uint8_t* bytes, size_t n, float* out);

template <class T>
void Convert(const uint8_t* bytes, size_t n, float* out) {
  for (size_t i = 0; i < n; ++i) {
    T value;
    std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
    out[i] = static_cast<float>(value);
  }
}

struct Coding {
  Decoder decode = nullptr;
  uint64_t block_values = 1, block_bytes = 0;
};

Coding CodingOf(const GgufTensor& tensor) {
  if (const Format* format = tensor.format) {
    return {format->decode, format->block_values, format->block_bytes};
  }
  switch (tensor.type_id) {
    case 24:
      return {Convert<int8_t>, 1, 1};
    case 25:
      return {Convert<int16_t>, 1, 2};
    case 26:
      return {Convert<int32_t>, 1, 4};
    case 27:
      return {Convert<int64_t>, 1, 8};
    case 28:
      return {Convert<double>, 1, 8};
    default:
      return {};
  }
}

}  // namespace

Status DumpTensor(const Gguf& gguf, const std::string& name, std::FILE* out) {
  const GgufTensor* tensor = gguf.FindTensor(name);
  if (tensor == nullptr) {
    return Status(StatusCode::kNotFound, Printable(gguf.path(), 4096) + ": no tensor \"" +
                                             Printable(name) + "\"; --tensors lists them");
  }
  const Coding coding = CodingOf(*tensor);
  if (coding.decode == nullptr) {
    return Status(StatusCode::kUnsupported, "tensor \"" + Printable(name) + "\": " +
                                                TensorTypeName(*tensor) + " cannot be decoded");
  }
  const uint64_t step = 65536 / coding.block_values * coding.block_values;
  const uint64_t values = tensor->Elements();
  std::vector<float> buffer(std::min(step, values));
  for (uint64_t at = 0; at < values; at += step) {
    const size_t n = std::min(step, values - at);
    coding.decode(tensor->data + at / coding.block_values * coding.block_bytes, n, buffer.data());
    if (std::fwrite(buffer.data(), sizeof(float), n, out) != n) break;
  }
  if (std::fflush(out) != 0 || std::ferror(out) != 0) {
    return Status(StatusCode::kIo, std::string("cannot write the tensor: ") + std::strerror(errno));
  }
  return Status();
}

}  // namespace sluice
