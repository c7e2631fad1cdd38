// Typed getters over metadata values. Every element count and payload size was
// checked when the directory was parsed; types are checked here, at each use.
#include <cstring>
#include <limits>
#include <string>

#include "src/base/printable.h"
#include "src/file/byte_reader.h"
#include "src/file/gguf_directory.h"

namespace sluice {
namespace {

constexpr const char* kTypeNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                      "bool", "string", "array", "u64", "i64", "f64"};

// Element i of a payload of integers or bools of `type`; false if the type is neither, or the
// value does not fit `*value`.
bool LoadI64(GgufType type, std::span<const uint8_t> bytes, uint64_t i, int64_t* value) {
  const auto load = [&](auto zero) {
    std::memcpy(&zero, bytes.data() + i * sizeof(zero), sizeof(zero));
    *value = static_cast<int64_t>(zero);
    return true;
  };
  switch (type) {
    case GgufType::kU8:
    case GgufType::kBool:
      return load(uint8_t{});
    case GgufType::kI8:
      return load(int8_t{});
    case GgufType::kU16:
      return load(uint16_t{});
    case GgufType::kI16:
      return load(int16_t{});
    case GgufType::kU32:
      return load(uint32_t{});
    case GgufType::kI32:
      return load(int32_t{});
    case GgufType::kU64:
      return load(uint64_t{}) && *value >= 0;
    case GgufType::kI64:
      return load(int64_t{});
    default:
      return false;
  }
}

std::string TypeOf(const GgufValue& value) {
  if (value.type != GgufType::kArray) return GgufTypeName(value.type);
  return std::string("array of ") + GgufTypeName(value.element);
}

Status Mismatch(std::string_view key, const char* expected, const GgufValue& value) {
  return Status(StatusCode::kCorrupt, "metadata \"" + Printable(key) + "\": expected " + expected +
                                          ", found " + TypeOf(value));
}

bool IsInteger(GgufType type) {
  int64_t ignored;
  const uint8_t zeros[8] = {};
  return type != GgufType::kBool && LoadI64(type, zeros, 0, &ignored);
}

Status OutOfRange(std::string_view key) {
  return Status(StatusCode::kCorrupt, "metadata \"" + Printable(key) + "\": value out of range");
}

}  // namespace

const char* GgufTypeName(GgufType type) {
  const size_t i = static_cast<size_t>(type);
  return i < std::size(kTypeNames) ? kTypeNames[i] : "unknown type";
}

Result<uint64_t> UnsignedValue(std::string_view key, const GgufValue& value) {
  if (!IsInteger(value.type)) return Mismatch(key, "an integer", value);
  if (value.type == GgufType::kU64) {
    uint64_t wide;
    std::memcpy(&wide, value.bytes.data(), sizeof(wide));
    return wide;
  }
  int64_t number;
  if (!LoadI64(value.type, value.bytes, 0, &number) || number < 0) return OutOfRange(key);
  return static_cast<uint64_t>(number);
}

Result<std::optional<uint64_t>> Gguf::U64(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::optional<uint64_t>();
  ASSIGN_OR_RETURN(const uint64_t number, UnsignedValue(key, *value));
  return std::optional<uint64_t>(number);
}

Result<std::optional<int64_t>> Gguf::I64(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::optional<int64_t>();
  if (!IsInteger(value->type)) return Mismatch(key, "an integer", *value);
  int64_t number;
  if (!LoadI64(value->type, value->bytes, 0, &number)) return OutOfRange(key);
  return std::optional<int64_t>(number);
}

Result<std::optional<double>> Gguf::F64(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::optional<double>();
  if (value->type == GgufType::kF32) {
    float number;
    std::memcpy(&number, value->bytes.data(), sizeof(number));
    return std::optional<double>(number);
  }
  if (value->type != GgufType::kF64) return Mismatch(key, "f32 or f64", *value);
  double number;
  std::memcpy(&number, value->bytes.data(), sizeof(number));
  return std::optional<double>(number);
}

Result<std::optional<bool>> Gguf::Bool(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::optional<bool>();
  if (value->type != GgufType::kBool) return Mismatch(key, "bool", *value);
  return std::optional<bool>(value->bytes[0] != 0);
}

Result<std::optional<std::string_view>> Gguf::String(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::optional<std::string_view>();
  if (value->type != GgufType::kString) return Mismatch(key, "string", *value);
  return std::optional<std::string_view>(
      {reinterpret_cast<const char*>(value->bytes.data()), value->bytes.size()});
}

Result<std::vector<std::string_view>> Gguf::Strings(std::string_view key) const {
  std::vector<std::string_view> texts;
  const GgufValue* value = Find(key);
  if (value == nullptr) return texts;
  if (value->type != GgufType::kArray || value->element != GgufType::kString) {
    return Mismatch(key, "array of string", *value);
  }
  texts.resize(value->count);  // at most an eighth of the payload's bytes
  ByteReader reader(value->bytes);
  for (std::string_view& text : texts) CHECK(reader.ReadString(&text));
  return texts;
}

Result<std::vector<float>> Gguf::Floats(std::string_view key) const {
  std::vector<float> numbers;
  const GgufValue* value = Find(key);
  if (value == nullptr) return numbers;
  if (value->type != GgufType::kArray || value->element != GgufType::kF32) {
    return Mismatch(key, "array of f32", *value);
  }
  numbers.resize(value->count);
  if (value->count > 0) std::memcpy(numbers.data(), value->bytes.data(), value->bytes.size());
  return numbers;
}

Result<std::vector<int64_t>> Gguf::Integers(std::string_view key) const {
  std::vector<int64_t> numbers;
  const GgufValue* value = Find(key);
  if (value == nullptr) return numbers;
  const bool good = value->type == GgufType::kArray &&
                    (IsInteger(value->element) || value->element == GgufType::kBool);
  if (!good) return Mismatch(key, "array of integers", *value);
  numbers.resize(value->count);
  for (uint64_t i = 0; i < value->count; ++i) {
    if (!LoadI64(value->element, value->bytes, i, &numbers[i])) return OutOfRange(key);
  }
  return numbers;
}

}  // namespace sluice
