#include "src/server/fields.h"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/parse.hpp>
#include <charconv>
#include <cmath>
#include <set>
#include <sstream>

#include "src/base/printable.h"

namespace sluice {

namespace json = boost::json;

namespace {

constexpr size_t kMostLevels = 64;

// Looks at what the library's own tree no longer shows: a key that stands twice (it keeps the last)
// and numbers beyond a double (it makes them infinite).
class Inspector {
 public:
  static constexpr size_t max_object_size = SIZE_MAX;
  static constexpr size_t max_array_size = SIZE_MAX;
  static constexpr size_t max_key_size = SIZE_MAX;
  static constexpr size_t max_string_size = SIZE_MAX;
  using Code = json::error_code;
  using View = json::string_view;

  bool on_document_begin(Code&) { return true; }
  bool on_document_end(Code&) { return true; }
  bool on_object_begin(Code&) { return keys_.emplace_back(), true; }
  bool on_object_end(size_t, Code&) { return keys_.pop_back(), true; }
  bool on_array_begin(Code&) { return true; }
  bool on_array_end(size_t, Code&) { return true; }
  bool on_key_part(View part, size_t, Code&) { return key_.append(part), true; }
  bool on_key(View part, size_t, Code& error) {
    key_.append(part);
    if (!keys_.back().insert(key_).second) {
      problem_ = "the key \"" + Printable(key_) + "\" stands twice in one object";
      error = json::error::syntax;
      return false;
    }
    key_.clear();
    return true;
  }
  bool on_string_part(View, size_t, Code&) { return true; }
  bool on_string(View, size_t, Code&) { return true; }
  bool on_number_part(View, Code&) { return true; }
  bool on_int64(int64_t, View, Code&) { return true; }
  bool on_uint64(uint64_t, View, Code&) { return true; }
  bool on_double(double value, View, Code& error) {
    if (std::isfinite(value)) return true;
    problem_ = "a number is larger than a double can hold";
    error = json::error::exponent_overflow;
    return false;
  }
  bool on_bool(bool, Code&) { return true; }
  bool on_null(Code&) { return true; }
  bool on_comment_part(View, Code&) { return true; }
  bool on_comment(View, Code&) { return true; }

  const std::string& problem() const { return problem_; }

 private:
  std::vector<std::set<std::string>> keys_;  // of the objects we are in
  std::string key_, problem_;
};

const char* KindName(const json::value& value) {
  switch (value.kind()) {
    case json::kind::null:
      return "null";
    case json::kind::bool_:
      return "true or false";
    case json::kind::int64:
    case json::kind::uint64:
    case json::kind::double_:
      return "a number";
    case json::kind::string:
      return "a string";
    case json::kind::array:
      return "an array";
    case json::kind::object:
      return "an object";
  }
  return "";
}

std::string Text(double value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

}  // namespace

Result<json::object> ParseBody(std::string_view body) {
  json::parse_options options;
  options.max_depth = kMostLevels;
  const auto refuse = [](const std::string& what) {
    return Status(StatusCode::kInvalidArgument, "the body: expected a JSON object, found " + what);
  };
  if (body.empty()) return refuse("nothing");
  json::basic_parser<Inspector> inspector(options);
  json::error_code error;
  const size_t read = inspector.write_some(false, body.data(), body.size(), error);
  if (!inspector.handler().problem().empty()) return refuse(inspector.handler().problem());
  if (error == json::error::too_deep) {
    return refuse("more than " + std::to_string(kMostLevels) + " levels of nesting");
  }
  if (error) return refuse("bad JSON at byte " + std::to_string(read) + ": " + error.message());
  json::value value = json::parse(body, error, {}, options);
  if (error) return refuse("bad JSON: " + error.message());
  if (!value.is_object()) return refuse(KindName(value));
  return std::move(value.as_object());
}

double AsWritten(float value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof(text), value);
  double number = value;
  std::from_chars(text, end.ptr, number);
  return number;
}

const json::value* Fields::Find(std::string_view key) const {
  const json::value* value = object_.if_contains(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

void Fields::Fail(std::string_view key, std::string message) {
  if (!status_.ok()) return;
  param_ = key;
  status_ = Status(StatusCode::kInvalidArgument, param_ + ": " + std::move(message));
}

int64_t Fields::Int(std::string_view key, int64_t fallback, int64_t least, int64_t most) {
  const json::value* value = Find(key);
  if (value == nullptr) return fallback;
  const std::string range =
      "expected an integer from " + std::to_string(least) + " to " + std::to_string(most);
  int64_t number = 0;
  if (value->is_int64()) {
    number = value->get_int64();
  } else if (value->is_uint64()) {
    number = INT64_MAX;  // what does not fit in 63 bits is above every range but the widest
    if (most == INT64_MAX) return most;
  } else if (value->is_double() && value->get_double() == std::trunc(value->get_double())) {
    const double d = value->get_double();
    if (d < -9.2e18 || d > 9.2e18) {
      Fail(key, range + ", found " + Text(d));
      return fallback;
    }
    number = static_cast<int64_t>(d);
  } else {
    Fail(key,
         range + ", found " + (value->is_double() ? Text(value->get_double()) : KindName(*value)));
    return fallback;
  }
  if (number >= least && number <= most) return number;
  Fail(key, range + ", found " + ToJson(*value));
  return fallback;
}

double Fields::Number(std::string_view key, double fallback, double least, double most) {
  const json::value* value = Find(key);
  if (value == nullptr) return fallback;
  if (!value->is_number()) {
    Fail(key, std::string("expected a number, found ") + KindName(*value));
    return fallback;
  }
  const double number = value->to_number<double>();
  if (number >= least && number <= most) return number;
  Fail(key,
       "expected a number from " + Text(least) + " to " + Text(most) + ", found " + Text(number));
  return fallback;
}

bool Fields::Bool(std::string_view key, bool fallback) {
  const json::value* value = Find(key);
  if (value == nullptr) return fallback;
  if (value->is_bool()) return value->get_bool();
  Fail(key, std::string("expected true or false, found ") + KindName(*value));
  return fallback;
}

std::string Fields::String(std::string_view key, std::string_view fallback) {
  const json::value* value = Find(key);
  if (value == nullptr) return std::string(fallback);
  if (value->is_string()) return std::string(value->get_string());
  Fail(key, std::string("expected a string, found ") + KindName(*value));
  return std::string(fallback);
}

std::vector<std::string> Fields::Strings(std::string_view key, size_t most) {
  const json::value* value = Find(key);
  std::vector<std::string> strings;
  if (value == nullptr) return strings;
  if (value->is_string()) return {std::string(value->get_string())};
  const json::array* array = value->if_array();
  const bool fits =
      array != nullptr && array->size() <= most &&
      std::all_of(array->begin(), array->end(), [](const auto& v) { return v.is_string(); });
  if (!fits) {
    Fail(key, "expected a string or an array of at most " + std::to_string(most) + " strings");
    return strings;
  }
  for (const json::value& v : *array) strings.emplace_back(v.get_string());
  return strings;
}

const json::array* Fields::Array(std::string_view key) {
  const json::value* value = Find(key);
  if (value == nullptr || value->is_array()) return value == nullptr ? nullptr : value->if_array();
  Fail(key, std::string("expected an array, found ") + KindName(*value));
  return nullptr;
}

const json::object* Fields::Object(std::string_view key) {
  const json::value* value = Find(key);
  if (value == nullptr || value->is_object()) {
    return value == nullptr ? nullptr : value->if_object();
  }
  Fail(key, std::string("expected an object, found ") + KindName(*value));
  return nullptr;
}

}  // namespace sluice
