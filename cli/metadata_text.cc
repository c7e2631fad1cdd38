#include "cli/metadata_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "src/base/printable.h"
#include "src/file/gguf_json.h"
#include "src/text/json_text.h"

namespace sluice {
namespace {

constexpr size_t kFirst = 5;            // array elements shown
constexpr size_t kTextBytes = 60;       // of a string, for people
constexpr size_t kJsonBytes = 1 << 16;  // of a string, in JSON: chat templates fit

// JSON has no infinities.
boost::json::value Finite(boost::json::value value) {
  if (!value.is_double() || std::isfinite(value.get_double())) return value;
  const double number = value.get_double();
  return boost::json::string(std::isnan(number) ? "nan" : number > 0 ? "inf" : "-inf");
}

boost::json::array FirstElements(const GgufValue& value) {
  boost::json::array first = GgufElementsJson(value, kFirst);
  for (boost::json::value& element : first) element = Finite(std::move(element));
  return first;
}

boost::json::value Scalar(const GgufValue& value) { return Finite(GgufScalarJson(value)); }

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
  return ToJson(value);
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
