#include "src/text/json_text.h"

#include <boost/json/serialize.hpp>
#include <charconv>
#include <cmath>
#include <string_view>

#include "src/text/unicode.h"

namespace sluice {

namespace json = boost::json;

namespace {

void Write(const json::value& value, std::string* out);

void WriteString(std::string_view text, std::string* out) {
  if (IsUtf8(text)) {
    *out += json::serialize(json::string_view(text));
  } else {
    *out += json::serialize(json::string_view(ReplaceBadUtf8(text)));
  }
}

// The library's own are 8E-1 and 2E0, to_chars' 1e+05: right, and nobody expects them.
template <class T>
void WriteNumber(T number, std::string* out) {
  if (!std::isfinite(number)) {
    *out += "null";
    return;
  }
  const T size = std::abs(number);
  const bool usual = size == 0 || (size >= T(1e-5) && size < T(1e15));
  char text[40];
  const auto end = usual
                       ? std::to_chars(text, text + sizeof(text), number, std::chars_format::fixed)
                       : std::to_chars(text, text + sizeof(text), number);
  out->append(text, end.ptr);
  // 5.0 stays a number with a fraction: typed clients tell it from an integer.
  if (std::string_view(text, end.ptr).find_first_of(".e") == std::string_view::npos) *out += ".0";
}

void WriteArray(const json::array& array, std::string* out) {
  *out += '[';
  for (size_t i = 0; i < array.size(); ++i) {
    if (i > 0) *out += ',';
    Write(array[i], out);
  }
  *out += ']';
}

void WriteObject(const json::object& object, std::string* out) {
  *out += '{';
  bool first = true;
  for (const auto& entry : object) {
    if (!first) *out += ',';
    first = false;
    WriteString(entry.key(), out);
    *out += ':';
    Write(entry.value(), out);
  }
  *out += '}';
}

// The library's writer prints bad UTF-8 as it is, and infinities. Values of ours are shallow.
void Write(const json::value& value, std::string* out) {
  switch (value.kind()) {
    case json::kind::array:
      return WriteArray(value.get_array(), out);
    case json::kind::object:
      return WriteObject(value.get_object(), out);
    case json::kind::string:
      return WriteString(value.get_string(), out);
    case json::kind::double_:
      return WriteNumber(value.get_double(), out);
    default:
      *out += json::serialize(value);
  }
}

}  // namespace

std::string ToJson(const json::value& value) {
  std::string out;
  Write(value, &out);
  return out;
}

void AppendJson(float number, std::string* out) { WriteNumber(number, out); }

}  // namespace sluice
