// A small valid GGUF with one entry of every kind, for tests to read or to spoil.
#ifndef SLUICE_TESTS_FILE_SMALL_GGUF_H_
#define SLUICE_TESTS_FILE_SMALL_GGUF_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "src/file/gguf_writer.h"

namespace sluice {

// ggml type numbers of the tensors below.
inline constexpr uint32_t kTypeF32 = 0, kTypeQ4_0 = 2, kTypeQ8_0 = 8;

// Bytes 0, 1, 2, ... of a tensor, offset by `start` to tell tensors apart.
inline std::vector<uint8_t> Pattern(size_t n, uint8_t start) {
  std::vector<uint8_t> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<uint8_t>(start + i);
  return bytes;
}

// Owns the tensor data that the writer points to.
struct SmallGguf {
  std::vector<uint8_t> norm = Pattern(64 * 4, 1);          // f32 [64]
  std::vector<uint8_t> matrix = Pattern(5 * 2 * 18, 50);   // q4_0 [5][64]
  std::vector<uint8_t> experts = Pattern(3 * 2 * 34, 90);  // q8_0 [3][2][32]
  GgufWriter writer;

  SmallGguf() {
    AddMetadata();
    AddTensors();
  }

  void AddMetadata() {
    writer.AddString("general.architecture", "llama");
    writer.AddString("general.name", "small");
    writer.AddU32("llama.block_count", 2);
    writer.AddU64("x.u64", uint64_t{1} << 40);
    writer.AddI32("x.i32", -5);
    writer.AddF32("x.f32", 0.25f);
    writer.AddBool("x.bool", true);
    const std::vector<std::string> tokens = {"<s>", "", "a", std::string("\0b", 2)};
    writer.AddStrings("tokenizer.ggml.tokens", tokens);
    const std::vector<float> scores = {0, -1, -2.5f, 3};
    writer.AddFloats("tokenizer.ggml.scores", scores);
    const std::vector<int32_t> types = {3, 1, 1, -1};
    writer.AddI32s("tokenizer.ggml.token_type", types);
  }

  void AddTensors() {
    const uint64_t norm_shape[] = {64}, matrix_shape[] = {64, 5}, experts_shape[] = {32, 2, 3};
    writer.AddTensor("norm.weight", kTypeF32, norm_shape, norm);
    writer.AddTensor("matrix.weight", kTypeQ4_0, matrix_shape, matrix);
    writer.AddTensor("experts.weight", kTypeQ8_0, experts_shape, experts);
  }

  std::vector<uint8_t> Bytes() const { return writer.Bytes(); }
};

// Where the `width` bytes after the first occurrence of `text` lie, to overwrite them.
inline size_t After(const std::vector<uint8_t>& file, const std::string& text) {
  for (size_t i = 0; i + text.size() <= file.size(); ++i) {
    if (std::memcmp(file.data() + i, text.data(), text.size()) == 0) return i + text.size();
  }
  return file.size();
}

template <class T>
void Put(std::vector<uint8_t>* file, size_t offset, T value) {
  std::memcpy(file->data() + offset, &value, sizeof(value));
}

}  // namespace sluice
#endif  // SLUICE_TESTS_FILE_SMALL_GGUF_H_
