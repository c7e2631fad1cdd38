#include "src/text/grammar/schema_merge.h"

#include <algorithm>
#include <boost/json.hpp>
#include <string>

#include "src/base/printable.h"

namespace sluice::grammar {
namespace {

namespace json = boost::json;

constexpr std::string_view kAnnotations[] = {
    "title",           "description",      "default",       "examples",
    "example",         "$schema",          "$id",           "id",
    "$comment",        "deprecated",       "readOnly",      "writeOnly",
    "contentEncoding", "contentMediaType", "contentSchema", "$defs",
    "definitions",     "$anchor",          "externalDocs",  "xml",
    "$vocabulary"};
constexpr std::string_view kLargerWins[] = {"minimum", "exclusiveMinimum", "minLength", "minItems"};
constexpr std::string_view kSmallerWins[] = {"maximum", "exclusiveMaximum", "maxLength",
                                             "maxItems"};

template <class List>
bool Contains(const List& list, std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

json::value Both(const json::value& a, const json::value& b) {
  return json::object{{"allOf", json::array{a, b}}};
}

json::array AsArray(const json::value& v) { return v.is_array() ? v.get_array() : json::array{v}; }

json::array Intersection(const json::array& a, const json::array& b, bool types) {
  json::array out;
  const auto in = [](const json::array& all, const json::value& v) {
    return std::find(all.begin(), all.end(), v) != all.end();
  };
  for (const json::value& v : a) {
    if (in(b, v) || (types && v == "integer" && in(b, "number"))) out.push_back(v);
  }
  for (const json::value& v : b) {
    if (types && v == "integer" && in(a, "number") && !in(out, v)) out.push_back(v);
  }
  return out;
}

const json::object* ObjectAt(const json::object& schema, std::string_view key) {
  const json::value* v = schema.if_contains(key);
  return v == nullptr ? nullptr : v->if_object();
}

// A property that only one side names must hold the other side's additionalProperties too.
json::object MergeProperties(const json::object& a, const json::object& b) {
  json::object out;
  const json::object *pa = ObjectAt(a, "properties"), *pb = ObjectAt(b, "properties");
  const auto add = [&](const json::object& from, const json::object* other,
                       const json::object& other_schema) {
    for (const auto& [key, value] : from) {
      if (out.contains(key)) continue;
      const json::value* same = other == nullptr ? nullptr : other->if_contains(key);
      if (same == nullptr) same = other_schema.if_contains("additionalProperties");
      out.emplace(key, same == nullptr ? value : Both(value, *same));
    }
  };
  if (pa != nullptr) add(*pa, pb, b);
  if (pb != nullptr) add(*pb, pa, a);
  return out;
}

// Of two keys that both have; an error if nothing is known to hold both.
Result<json::value> MergeKey(std::string_view key, const json::value& a, const json::value& b) {
  if (a == b || IsAnnotation(key)) return a;
  if (key == "type") return json::value(Intersection(AsArray(a), AsArray(b), true));
  if (key == "enum" && a.is_array() && b.is_array()) {
    return json::value(Intersection(a.get_array(), b.get_array(), false));
  }
  if ((key == "required" || key == "allOf") && a.is_array() && b.is_array()) {
    json::array all = a.get_array();
    all.insert(all.end(), b.get_array().begin(), b.get_array().end());
    return json::value(std::move(all));
  }
  if ((key == "anyOf" || key == "oneOf") && a.is_array() && b.is_array()) {
    json::array ways;  // every way of a, together with all those of b
    for (const json::value& way : a.get_array()) {
      ways.push_back(Both(way, json::object{{key, b}}));
    }
    return json::value(std::move(ways));
  }
  if (key == "items" || key == "additionalProperties" || key == "additionalItems") {
    return Both(a, b);
  }
  if (a.is_number() && b.is_number() &&
      (Contains(kLargerWins, key) || Contains(kSmallerWins, key))) {
    const bool less = a.to_number<double>() < b.to_number<double>();
    return less == Contains(kLargerWins, key) ? b : a;
  }
  return Status(StatusCode::kInvalidArgument,
                "two different values of " + Printable(key) + " cannot be kept together");
}

}  // namespace

bool IsAnnotation(std::string_view keyword) { return Contains(kAnnotations, keyword); }

Result<json::value> MergeSchemas(const json::value& a, const json::value& b) {
  if (a.is_bool()) return a.get_bool() ? b : a;
  if (b.is_bool()) return b.get_bool() ? a : b;
  if (!a.is_object() || !b.is_object()) {
    return Status(StatusCode::kInvalidArgument, "expected an object, true or false");
  }
  const json::object &oa = a.get_object(), &ob = b.get_object();
  json::object out;
  for (const auto& [key, value] : oa) {
    const json::value* other = ob.if_contains(key);
    if (key == "properties") continue;
    if (key == "nullable") {  // null is right only if both say so
      if (other != nullptr ? *other == value : !ob.contains("type")) out.emplace(key, value);
    } else if (other == nullptr) {
      out.emplace(key, value);
    } else {
      ASSIGN_OR_RETURN(json::value merged, MergeKey(key, value, *other));
      out.emplace(key, std::move(merged));
    }
  }
  for (const auto& [key, value] : ob) {
    if (key == "properties" || oa.contains(key)) continue;
    if (key == "nullable" && oa.contains("type")) continue;
    out.emplace(key, value);
  }
  if (oa.contains("properties") || ob.contains("properties")) {
    out.emplace("properties", MergeProperties(oa, ob));
  }
  return json::value(std::move(out));
}

}  // namespace sluice::grammar
