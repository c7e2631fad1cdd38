#include "cli/metadata_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "src/base/printable.h"
#include "src/file/byte_reader.h"

namespace sluice {
namespace {

constexpr size_t kFirst = 5;            // array elements shown
constexpr size_t kTextBytes = 60;       // of a string, for people
constexpr size_t kJsonBytes = 1 << 16;  // of a string, in JSON: chat templates fit

boost::json::value Finite(double number) {
  if (std::isfinite(number)) return number;
  return boost::json::string(std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
}

template <class T>
T Load(ByteReader& reader) {
  T value{};
  CHECK(reader.Read(&value));  // sizes were checked when the file was opened
  return value;
}

// The next value of a type that is no array.
boost::json::value ReadScalar(GgufType type, ByteReader& reader) {
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
    case GgufType::kBool:
      return Load<uint8_t>(reader) != 0;
    case GgufType::kF32:
      return Finite(Load<float>(reader));
    case GgufType::kF64:
      return Finite(Load<double>(reader));
    case GgufType::kString: {
      std::string_view text;
      CHECK(reader.ReadString(&text));
      return boost::json::string(text);
    }
    case GgufType::kArray:
      break;
  }
  return nullptr;
}

boost::json::array FirstElements(const GgufValue& value) {
  ByteReader reader(value.bytes);
  boost::json::array first;
  const uint64_t n = std::min<uint64_t>(value.count, kFirst);
  for (uint64_t i = 0; i < n; ++i) first.push_back(ReadScalar(value.element, reader));
  return first;
}

boost::json::value Scalar(const GgufValue& value) {
  ByteReader reader(value.bytes);
  if (value.type != GgufType::kString) return ReadScalar(value.type, reader);
  return boost::json::string(
      std::string_view(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()));
}

// JSON text is UTF-8: other bytes are escaped by us, Boost would write them as they are.
boost::json::value CleanString(boost::json::value value) {
  if (value.is_string()) {
    const boost::json::string& text = value.get_string();
    const std::string printable = Printable(text, kJsonBytes);
    // Line breaks alone are no reason to escape: JSON does that itself.
    std::string one_line(text);
    std::replace(one_line.begin(), one_line.end(), '\n', ' ');
    if (Printable(one_line, kJsonBytes) != one_line) return boost::json::string(printable);
  }
  return value;
}

std::string ScalarText(const boost::json::value& value) {
  if (value.is_string()) return "\"" + Printable(value.get_string(), kTextBytes) + "\"";
  if (value.is_double()) {
    char text[32];
    std::snprintf(text, sizeof(text), "%g", value.get_double());
    return text;
  }
  return boost::json::serialize(value);
}

}  // namespace

std::string MetadataText(const GgufValue& value) {
  if (value.type != GgufType::kArray) return ScalarText(Scalar(value));
  std::string text =
      std::string("array of ") + GgufTypeName(value.element) + ", " + std::to_string(value.count);
  const boost::json::array first = FirstElements(value);
  for (size_t i = 0; i < first.size(); ++i) text += (i == 0 ? ": " : ", ") + ScalarText(first[i]);
  if (value.count > first.size()) text += ", ...";
  return text;
}

boost::json::value MetadataJson(const GgufValue& value) {
  if (value.type != GgufType::kArray) return CleanString(Scalar(value));
  boost::json::array first;
  for (boost::json::value& element : FirstElements(value)) {
    first.push_back(CleanString(std::move(element)));
  }
  return boost::json::object{{"element", GgufTypeName(value.element)},
                             {"count", value.count},
                             {"first", std::move(first)}};
}

}  // namespace sluice
