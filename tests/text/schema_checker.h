// Does a JSON value hold a schema? The few keywords that the tests of grammars
// use, each as its definition says, with no thought for speed.
#ifndef SLUICE_TESTS_TEXT_SCHEMA_CHECKER_H_
#define SLUICE_TESTS_TEXT_SCHEMA_CHECKER_H_

#include <boost/json.hpp>
#include <cmath>
#include <regex>
#include <string>

#include "src/text/unicode.h"

namespace sluice {

class SchemaChecker {
 public:
  explicit SchemaChecker(const boost::json::value& root) : root_(root) {}
  bool Holds(const boost::json::value& v) const { return Holds(root_, v); }

 private:
  using Value = boost::json::value;

  static size_t Length(const Value& v) {
    size_t characters = 0;
    const std::string_view text = v.get_string();
    for (size_t at = 0; at < text.size(); ++characters) at += DecodeChar(text, at).length;
    return characters;
  }
  static bool IsType(const Value& v, std::string_view type) {
    if (type == "object") return v.is_object();
    if (type == "array") return v.is_array();
    if (type == "string") return v.is_string();
    if (type == "boolean") return v.is_bool();
    if (type == "null") return v.is_null();
    if (type == "number") return v.is_number();
    return v.is_number() && v.to_number<double>() == std::floor(v.to_number<double>());
  }

  bool Holds(const Value& schema, const Value& v) const {
    if (schema.is_bool()) return schema.get_bool();
    for (const auto& [key, value] : schema.get_object()) {
      if (!HoldsKey(schema.get_object(), key, value, v)) return false;
    }
    return true;
  }

  bool HoldsKey(const boost::json::object& schema, std::string_view key, const Value& k,
                const Value& v) const {
    const auto number = [&] { return v.to_number<double>(); };
    const auto limit = [&] { return k.to_number<double>(); };
    if (key == "$ref") {
      std::string path(k.get_string());
      if (const size_t at = path.find("%20"); at != std::string::npos) path.replace(at, 3, " ");
      return Holds(path == "#" ? root_ : root_.at_pointer(std::string_view(path).substr(1)), v);
    }
    if (key == "type") {
      if (v.is_null() && schema.contains("nullable")) return true;
      if (k.is_string()) return IsType(v, k.get_string());
      for (const Value& type : k.get_array()) {
        if (IsType(v, type.get_string())) return true;
      }
      return false;
    }
    if (key == "enum") {
      const auto& all = k.get_array();
      return std::find(all.begin(), all.end(), v) != all.end();
    }
    if (key == "const") return v == k;
    if (key == "anyOf" || key == "oneOf" || key == "allOf") {
      size_t held = 0;
      for (const Value& way : k.get_array()) held += Holds(way, v);
      return key == "allOf" ? held == k.get_array().size() : held > 0;
    }
    if (v.is_number()) {
      if (key == "minimum") return number() >= limit();
      if (key == "maximum") return number() <= limit();
      if (key == "exclusiveMinimum") return number() > limit();
      if (key == "exclusiveMaximum") return number() < limit();
    }
    if (v.is_string()) {
      if (key == "minLength") return static_cast<double>(Length(v)) >= limit();
      if (key == "maxLength") return static_cast<double>(Length(v)) <= limit();
      if (key == "pattern") {  // std::regex knows bytes only
        return Length(v) != v.get_string().size() ||
               std::regex_search(std::string(v.get_string()), std::regex(k.get_string().c_str()));
      }
    }
    if (v.is_array()) return HoldsArray(schema, key, k, v.get_array());
    if (v.is_object()) return HoldsObject(schema, key, k, v.get_object());
    return true;
  }

  bool HoldsArray(const boost::json::object& schema, std::string_view key, const Value& k,
                  const boost::json::array& v) const {
    const Value* prefix = schema.if_contains("prefixItems");
    const size_t first = prefix == nullptr ? 0 : prefix->get_array().size();
    if (key == "minItems") return static_cast<double>(v.size()) >= k.to_number<double>();
    if (key == "maxItems") return static_cast<double>(v.size()) <= k.to_number<double>();
    for (size_t i = 0; i < v.size(); ++i) {
      if (key == "items" && i >= first && !Holds(k, v[i])) return false;
      if (key == "prefixItems" && i < first && !Holds(k.get_array()[i], v[i])) return false;
    }
    return true;
  }

  bool HoldsObject(const boost::json::object& schema, std::string_view key, const Value& k,
                   const boost::json::object& v) const {
    if (key == "required") {
      for (const Value& name : k.get_array()) {
        if (!v.contains(name.get_string())) return false;
      }
    }
    const Value* named = schema.if_contains("properties");
    for (const auto& [name, value] : v) {
      const Value* its = named == nullptr ? nullptr : named->get_object().if_contains(name);
      if (key == "properties" && its != nullptr && !Holds(*its, value)) return false;
      if (key == "additionalProperties" && its == nullptr && !Holds(k, value)) return false;
    }
    return true;
  }

  const Value& root_;
};

}  // namespace sluice
#endif  // SLUICE_TESTS_TEXT_SCHEMA_CHECKER_H_
