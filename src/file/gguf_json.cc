#include "src/file/gguf_json.h"

#include <algorithm>
#include <boost/json/string.hpp>
#include <string_view>

#include "src/file/byte_reader.h"

namespace sluice {

namespace json = boost::json;

namespace {

template <class T>
json::value Load(ByteReader& reader) {
  T value{};
  CHECK(reader.Read(&value));  // sizes were checked when the file was opened
  return value;
}

json::value LoadString(ByteReader& reader) {
  std::string_view text;
  CHECK(reader.ReadString(&text));
  return json::string(text);
}

// The next value of a type that is no array.
json::value ReadElement(GgufType type, ByteReader& reader) {
  switch (type) {
    case GgufType::kU8:
      return Load<uint8_t>(reader);
    case GgufType::kI8:
      return Load<int8_t>(reader);
    case GgufType::kU16:
      return Load<uint16_t>(reader);
    case GgufType::kI16:
      return Load<int16_t>(reader);
    case GgufType::kU32:
      return Load<uint32_t>(reader);
    case GgufType::kI32:
      return Load<int32_t>(reader);
    case GgufType::kU64:
      return Load<uint64_t>(reader);
    case GgufType::kI64:
      return Load<int64_t>(reader);
    case GgufType::kF32:
      return Load<float>(reader);
    case GgufType::kF64:
      return Load<double>(reader);
    case GgufType::kBool:
      return Load<uint8_t>(reader).as_uint64() != 0;
    case GgufType::kString:
      return LoadString(reader);
    case GgufType::kArray:
      break;
  }
  return nullptr;
}

}  // namespace

json::value GgufScalarJson(const GgufValue& value) {
  if (value.type == GgufType::kString) {
    const auto* text = reinterpret_cast<const char*>(value.bytes.data());
    return json::string(std::string_view(text, value.bytes.size()));
  }
  ByteReader reader(value.bytes);
  return ReadElement(value.type, reader);
}

json::array GgufElementsJson(const GgufValue& value, uint64_t most) {
  ByteReader reader(value.bytes);
  json::array elements;
  const uint64_t count = std::min(value.count, most);
  for (uint64_t i = 0; i < count; ++i) elements.push_back(ReadElement(value.element, reader));
  return elements;
}

}  // namespace sluice
