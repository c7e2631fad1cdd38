#include "src/text/grammar/json_schema.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/base/printable.h"
#include "src/text/grammar/json_numbers.h"
#include "src/text/grammar/json_text.h"
#include "src/text/grammar/regex.h"
#include "src/text/grammar/schema_merge.h"

namespace sluice::grammar {
namespace {

namespace json = boost::json;
using Id = Expressions::Id;

constexpr size_t kMaxMerges = 2000;           // allOf, and keywords beside $ref or anyOf
constexpr size_t kMaxMergedValues = 500'000;  // copied in them
constexpr size_t kMaxNameBytes = 50'000;      // that other names must differ from
constexpr size_t kMaxPathBytes = 160;         // shown in messages

// Not kept, so not taken: an answer could break them. Those with a value that asks for nothing
// are let through.
constexpr std::string_view kRefused[] = {"not",
                                         "if",
                                         "then",
                                         "else",
                                         "patternProperties",
                                         "propertyNames",
                                         "uniqueItems",
                                         "multipleOf",
                                         "dependentRequired",
                                         "dependencies",
                                         "dependentSchemas",
                                         "contains",
                                         "minContains",
                                         "maxContains",
                                         "minProperties",
                                         "maxProperties",
                                         "unevaluatedItems",
                                         "unevaluatedProperties",
                                         "$dynamicRef",
                                         "$recursiveRef",
                                         "$dynamicAnchor"};

// Enough to keep them right, day and month too.
constexpr std::string_view kDate =
    "(\\d{4}-((0[13578]|1[02])-(0[1-9]|[12]\\d|3[01])|(0[469]|11)-(0[1-9]|[12]\\d|30)|"
    "02-(0[1-9]|1\\d|2[0-8]))|"
    "(\\d\\d(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)";
constexpr std::string_view kTime =
    "([01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(\\.\\d{1,9})?(Z|[+-]([01]\\d|2[0-3]):[0-5]\\d)";
constexpr std::string_view kUuid =
    "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}";
constexpr std::string_view kLabel = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
constexpr std::string_view kByte = "(25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)";

// The pattern of a format; nothing for those that are not known, which are annotations.
std::optional<std::string> PatternOfFormat(std::string_view format) {
  const auto whole = [](std::string inside) { return "^(" + std::move(inside) + ")$"; };
  const std::string label(kLabel), byte(kByte);
  const std::string host = label + "(\\." + label + "){0,7}";
  if (format == "date") return whole(std::string(kDate));
  if (format == "time") return whole(std::string(kTime));
  if (format == "date-time") return whole(std::string(kDate) + "T" + std::string(kTime));
  if (format == "uuid") return whole(std::string(kUuid));
  if (format == "hostname") return whole(host);
  if (format == "email") {
    const std::string atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,20}";
    return whole(atom + "(\\." + atom + "){0,2}@" + host);
  }
  if (format == "ipv4") return whole(byte + "(\\." + byte + "){3}");
  return std::nullopt;
}

bool IsType(const json::value& v, std::string_view type) {
  if (type == "number") return v.is_number();
  if (type == "integer") {
    return v.is_int64() || v.is_uint64() ||
           (v.is_double() && std::floor(v.get_double()) == v.get_double());
  }
  return (type == "string" && v.is_string()) || (type == "boolean" && v.is_bool()) ||
         (type == "null" && v.is_null()) || (type == "object" && v.is_object()) ||
         (type == "array" && v.is_array());
}

// What a schema weighs; kMaxSchemaDepth + 1 as the depth if it is deeper.
struct Weight {
  size_t values = 0, bytes = 0, depth = 0;
};
Weight Weigh(const json::value& root) {
  Weight w;
  std::vector<std::pair<const json::value*, size_t>> todo = {{&root, 1}};
  while (!todo.empty()) {
    const auto [v, depth] = todo.back();
    todo.pop_back();
    ++w.values;
    w.depth = std::max(w.depth, depth);
    if (depth > kMaxSchemaDepth) return w;
    if (v->is_string()) w.bytes += v->get_string().size();
    if (v->is_array()) {
      for (const json::value& child : v->get_array()) todo.emplace_back(&child, depth + 1);
    } else if (v->is_object()) {
      for (const auto& [key, child] : v->get_object()) {
        w.bytes += key.size();
        todo.emplace_back(&child, depth + 1);
      }
    }
  }
  return w;
}

Status Refuse(std::string_view path, const std::string& what) {
  return Status(StatusCode::kInvalidArgument, "json_schema: at " + std::string(path) + ": " + what);
}

class SchemaReader {
 public:
  explicit SchemaReader(const json::value& root) : root_(root), json_(e_) {}

  Result<std::shared_ptr<const Automaton>> Compile() {
    const Weight weight = Weigh(root_);
    if (weight.depth > kMaxSchemaDepth) {
      return Refuse(
          "#", "nested too deep; expected at most " + std::to_string(kMaxSchemaDepth) + " levels");
    }
    if (weight.bytes > kMaxSourceBytes) {
      return Refuse("#", "expected at most " + std::to_string(kMaxSourceBytes) + " bytes");
    }
    const uint32_t root = RuleOf(root_, "#");
    while (!work_.empty()) {
      const Work work = std::move(work_.front());
      work_.pop_front();
      ASSIGN_OR_RETURN(const Id body, ReadSchema(*work.schema, work.path));
      e_.Define(work.rule, body);
      if (e_.full()) return Refuse(work.path, "the schema is too large");
    }
    return BuildAutomaton(e_, root, [](uint32_t) { return std::string("json_schema"); });
  }

 private:
  struct Work {
    const json::value* schema;
    uint32_t rule;
    std::string path;
  };

  // One rule per schema, read later: nothing here recurses, and a $ref that leads back is a rule
  // that is there already.
  uint32_t RuleOf(const json::value& schema, const std::string& path) {
    const auto [at, added] = rules_.try_emplace(&schema, 0);
    if (added) {
      at->second = e_.AddRule(path);
      work_.push_back({&schema, at->second, path});
    }
    return at->second;
  }
  Id Nested(const json::value& schema, const std::string& path) {
    return e_.Rule(RuleOf(schema, path));
  }
  Id NestedOrAny(const json::value* schema, const std::string& path) {
    return schema == nullptr ? json_.AnyValue() : Nested(*schema, path);
  }
  static std::string Below(const std::string& path, std::string_view key) {
    return path.size() > kMaxPathBytes ? path : path + "/" + Printable(key, 40);
  }

  // A pointer into the schema: #/a/b, with ~0 ~1 and %NN.
  Result<const json::value*> Resolve(const json::value& reference, const std::string& path) {
    const auto fail = [&](const char* what) {
      return Refuse(
          path, std::string("$ref: ") + what + ", found " + Printable(json::serialize(reference)));
    };
    if (!reference.is_string()) return fail("expected a text");
    std::string_view text = reference.get_string();
    if (text.empty() || text[0] != '#' || (text.size() > 1 && text[1] != '/')) {
      return fail("only places within the schema are known (#/...)");
    }
    const json::value* at = &root_;
    for (text.remove_prefix(1); !text.empty();) {
      text.remove_prefix(1);
      const size_t end = std::min(text.find('/'), text.size());
      const std::string key = Unescaped(text.substr(0, end));
      text.remove_prefix(end);
      if (const json::object* o = at->if_object()) {
        at = o->if_contains(key);
      } else if (const json::array* a = at->if_array()) {
        const bool number =
            !key.empty() && key.size() < 7 &&
            std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
        at = number ? a->if_contains(std::stoul(key)) : nullptr;
      } else {
        at = nullptr;
      }
      if (at == nullptr) return fail("there is no such place");
    }
    return at;
  }
  static std::string Unescaped(std::string_view text) {
    std::string out;
    const auto hex = [](char c) { return c >= '0' && c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '~' && i + 1 < text.size()) {
        out.push_back(text[++i] == '1' ? '/' : '~');
      } else if (text[i] == '%' && i + 2 < text.size() &&
                 std::isxdigit(static_cast<uint8_t>(text[i + 1])) &&
                 std::isxdigit(static_cast<uint8_t>(text[i + 2]))) {
        out.push_back(static_cast<char>(hex(text[i + 1]) << 4 | hex(text[i + 2])));
        i += 2;
      } else {
        out.push_back(text[i]);
      }
    }
    return out;
  }

  // The schema that holds what both hold, as a rule of its own.
  Result<const json::value*> Merged(const json::value& a, const json::value& b,
                                    const std::string& path) {
    const json::value* sides[] = {&a, &b};
    for (const json::value*& side : sides) {
      for (;;) {  // a $ref gives way to what it names, and what stands beside it
        const json::object* o = side->if_object();
        if (o == nullptr || !o->contains("$ref")) break;
        ASSIGN_OR_RETURN(const json::value* target, Resolve(o->at("$ref"), path));
        json::object beside = *o;
        beside.erase("$ref");
        if (!target->is_object() || beside.empty()) {
          RETURN_IF_ERROR(CountMerge(*target, path));
          side = target;
          continue;
        }
        json::array both = {*target, std::move(beside)};
        made_.push_back(json::object{{"allOf", std::move(both)}});
        RETURN_IF_ERROR(CountMerge(made_.back(), path));
        side = &made_.back();
      }
    }
    Result<json::value> merged = MergeSchemas(*sides[0], *sides[1]);
    if (!merged.ok()) return Refuse(path, merged.status().message());
    made_.push_back(*std::move(merged));
    RETURN_IF_ERROR(CountMerge(made_.back(), path));
    return &made_.back();
  }
  Status CountMerge(const json::value& made, const std::string& path) {
    const Weight weight = Weigh(made);
    merged_values_ += weight.values;
    if (++merges_ > kMaxMerges || merged_values_ > kMaxMergedValues ||
        weight.depth > kMaxSchemaDepth) {
      return Refuse(path, "too much to merge (allOf, $ref or anyOf beside other keywords)");
    }
    return Status();
  }

  static bool Constrains(const json::object& schema) {
    return std::any_of(schema.begin(), schema.end(),
                       [](const auto& member) { return !IsAnnotation(member.key()); });
  }
  static json::object Without(const json::object& schema, std::string_view key) {
    json::object rest = schema;
    rest.erase(key);
    return rest;
  }

  Status CheckKeywords(const json::object& schema, const std::string& path) {
    for (const std::string_view word : kRefused) {
      const json::value* v = schema.if_contains(word);
      if (v == nullptr) continue;
      const bool empty =
          (v->is_object() && v->get_object().empty() && word != "not" && word != "contains") ||
          (v->is_bool() && !v->get_bool() &&
           (word == "uniqueItems" || word == "unevaluatedProperties")) ||
          (word == "minProperties" && v->is_number() && *v == 0) ||
          (word == "multipleOf" && *v == 1 && schema.contains("type") &&
           schema.at("type") == "integer");
      if (!empty) {
        return Refuse(path, std::string(word) + " cannot be kept; expected a schema without it");
      }
    }
    return Status();
  }

  Result<Id> ReadSchema(const json::value& schema, const std::string& path) {
    if (schema.is_bool()) return schema.get_bool() ? json_.AnyValue() : e_.Never();
    const json::object* o = schema.if_object();
    if (o == nullptr) return Refuse(path, "expected an object, true or false");
    RETURN_IF_ERROR(CheckKeywords(*o, path));
    if (const json::value* reference = o->if_contains("$ref")) {
      const json::object rest = Without(*o, "$ref");
      ASSIGN_OR_RETURN(const json::value* target, Resolve(*reference, path));
      if (!Constrains(rest)) return Nested(*target, path);
      ASSIGN_OR_RETURN(const json::value* merged, Merged(*target, rest, path));
      return Nested(*merged, path);
    }
    if (const json::value* all = o->if_contains("allOf")) return ReadAllOf(*o, *all, path);
    for (const char* key : {"anyOf", "oneOf"}) {
      if (const json::value* ways = o->if_contains(key)) return ReadAnyOf(*o, key, *ways, path);
    }
    if (o->contains("const") || o->contains("enum")) return ReadValues(*o, path);
    return ReadTypes(*o, path);
  }

  Result<Id> ReadAllOf(const json::object& schema, const json::value& all,
                       const std::string& path) {
    if (!all.is_array()) return Refuse(path, "allOf: expected an array");
    made_.push_back(Without(schema, "allOf"));
    RETURN_IF_ERROR(CountMerge(made_.back(), path));
    const json::value* merged = &made_.back();
    for (const json::value& part : all.get_array()) {
      ASSIGN_OR_RETURN(merged, Merged(*merged, part, path));
    }
    return Nested(*merged, path);
  }

  // oneOf too: which of the ways it is, is the model's choice.
  Result<Id> ReadAnyOf(const json::object& schema, std::string_view key, const json::value& ways,
                       const std::string& path) {
    if (!ways.is_array()) return Refuse(path, std::string(key) + ": expected an array");
    const json::value rest(Without(schema, key));
    std::vector<Id> choice;
    for (const json::value& way : ways.get_array()) {
      const std::string below = Below(Below(path, key), std::to_string(choice.size()));
      const json::value* merged = &way;
      if (Constrains(rest.get_object())) {
        ASSIGN_OR_RETURN(merged, Merged(rest, way, below));
      }
      choice.push_back(Nested(*merged, below));
    }
    return e_.Choice(choice);
  }

  Result<std::vector<std::string>> TypesOf(const json::object& schema, const std::string& path) {
    static constexpr std::string_view kTypes[] = {"object",  "array",   "string", "number",
                                                  "integer", "boolean", "null"};
    std::vector<std::string> types;
    const json::value* type = schema.if_contains("type");
    const json::array listed = type == nullptr    ? json::array()
                               : type->is_array() ? type->get_array()
                                                  : json::array{*type};
    for (const json::value& v : listed) {
      if (!v.is_string() || std::find(std::begin(kTypes), std::end(kTypes),
                                      std::string_view(v.get_string())) == std::end(kTypes)) {
        return Refuse(path,
                      "type: expected object, array, string, number, integer, boolean or "
                      "null, found " +
                          Printable(json::serialize(v)));
      }
      types.emplace_back(v.get_string());
    }
    const json::value* nullable = schema.if_contains("nullable");
    if (type != nullptr && nullable != nullptr && *nullable == true) types.push_back("null");
    return types;
  }

  // Of the values of const or enum those that the other keywords let through.
  Result<Id> ReadValues(const json::object& schema, const std::string& path) {
    json::array values;
    if (const json::value* listed = schema.if_contains("enum")) {
      if (!listed->is_array()) return Refuse(path, "enum: expected an array");
      const json::value* only = schema.if_contains("const");
      for (const json::value& v : listed->get_array()) {
        if (only == nullptr || v == *only) values.push_back(v);
      }
    } else {
      values.push_back(schema.at("const"));
    }
    ASSIGN_OR_RETURN(const std::vector<std::string> types, TypesOf(schema, path));
    ASSIGN_OR_RETURN(const NumberBounds bounds, BoundsOf(schema, path));
    for (const char* key : {"properties", "required", "additionalProperties", "items", "pattern",
                            "prefixItems", "minItems", "maxItems", "minLength", "maxLength"}) {
      if (schema.contains(key)) {
        return Refuse(path, std::string(key) + " beside enum or const cannot be kept");
      }
    }
    std::vector<Id> choice;
    for (const json::value& v : values) {
      const bool fits = types.empty() || std::any_of(types.begin(), types.end(),
                                                     [&](const auto& t) { return IsType(v, t); });
      if (fits && (!v.is_number() || Within(v.to_number<double>(), bounds))) {
        choice.push_back(e_.Literal(json::serialize(v)));
      }
    }
    return e_.Choice(choice);
  }
  static bool Within(double x, const NumberBounds& b) {
    const bool low = x > b.low || (x == b.low && !b.low_excluded);
    const bool high = x < b.high || (x == b.high && !b.high_excluded);
    return (low || b.low == -kLargestBound) && (high || b.high == kLargestBound);
  }

  Result<Id> ReadTypes(const json::object& schema, const std::string& path) {
    ASSIGN_OR_RETURN(std::vector<std::string> types, TypesOf(schema, path));
    if (!schema.contains("type")) {
      // Keywords of one type and no type: taken to mean that type.
      static constexpr std::pair<std::string_view, const char*> kHints[] = {
          {"properties", "object"},
          {"required", "object"},
          {"additionalProperties", "object"},
          {"items", "array"},
          {"prefixItems", "array"},
          {"minItems", "array"},
          {"maxItems", "array"},
          {"pattern", "string"},
          {"minLength", "string"},
          {"maxLength", "string"},
          {"format", "string"},
          {"minimum", "number"},
          {"maximum", "number"},
          {"exclusiveMinimum", "number"},
          {"exclusiveMaximum", "number"}};
      for (const auto& [key, type] : kHints) {
        if (schema.contains(key) && (types.empty() || types.back() != type)) types.push_back(type);
      }
      if (types.empty()) return json_.AnyValue();
    }
    std::vector<Id> choice;
    for (const std::string& type : types) {
      ASSIGN_OR_RETURN(const Id one, ReadType(type, schema, path));
      choice.push_back(one);
    }
    return e_.Choice(choice);
  }

  Result<Id> ReadType(const std::string& type, const json::object& schema,
                      const std::string& path) {
    if (type == "object") return ReadObject(schema, path);
    if (type == "array") return ReadArray(schema, path);
    if (type == "string") return ReadString(schema, path);
    if (type == "boolean") return json_.Boolean();
    if (type == "null") return json_.Null();
    ASSIGN_OR_RETURN(const NumberBounds bounds, BoundsOf(schema, path));
    const NumberBounds none;
    const bool bounded = bounds.low != none.low || bounds.high != none.high;
    if (type == "integer") return bounded ? IntegerBetween(bounds, e_) : json_.Integer();
    return bounded ? NumberBetween(bounds, e_) : json_.Number();
  }

  Result<NumberBounds> BoundsOf(const json::object& schema, const std::string& path) {
    NumberBounds b;
    for (const char* key : {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}) {
      const json::value* v = schema.if_contains(key);
      if (v == nullptr) continue;
      const std::string_view word = key;
      const bool is_low = word == "minimum" || word == "exclusiveMinimum";
      const bool excluded = word.starts_with("exclusive");
      if (v->is_bool() && excluded) {  // as in drafts before 6
        if (v->get_bool()) (is_low ? b.low_excluded : b.high_excluded) = true;
        continue;
      }
      if (!v->is_number()) return Refuse(path, std::string(key) + ": expected a number");
      const double x = v->to_number<double>();
      if (is_low ? x > kLargestBound : x < -kLargestBound) {
        return Refuse(path, std::string(key) + ": expected at most 9e15 in size");
      }
      if (is_low && x >= b.low) {
        b.low_excluded = excluded || (x == b.low && b.low_excluded);
        b.low = x;
      } else if (!is_low && x <= b.high) {
        b.high_excluded = excluded || (x == b.high && b.high_excluded);
        b.high = x;
      }
    }
    return b;
  }

  // A count such as minItems.
  Result<uint32_t> CountOf(const json::object& schema, const char* key, uint32_t otherwise,
                           const std::string& path) {
    const json::value* v = schema.if_contains(key);
    if (v == nullptr) return otherwise;
    const double x = v->is_number() ? v->to_number<double>() : -1;
    const bool is_most = std::string_view(key).starts_with("max");
    if (!(x >= 0) || x != std::floor(x) || (x > kMaxRepeat && !is_most)) {
      return Refuse(path, std::string(key) + ": expected a whole number from 0 to " +
                              std::to_string(kMaxRepeat) + ", found " +
                              Printable(json::serialize(*v)));
    }
    return x > kMaxRepeat ? kNoMaximum - 1 : static_cast<uint32_t>(x);
  }

  Result<Id> ReadString(const json::object& schema, const std::string& path) {
    ASSIGN_OR_RETURN(const uint32_t min, CountOf(schema, "minLength", 0, path));
    ASSIGN_OR_RETURN(uint32_t max, CountOf(schema, "maxLength", kNoMaximum, path));
    std::optional<std::string> pattern;
    std::string source = "pattern";
    if (const json::value* v = schema.if_contains("pattern")) {
      if (!v->is_string()) return Refuse(path, "pattern: expected a text");
      pattern = std::string(v->get_string());
    }
    const json::value* format = schema.if_contains("format");
    if (format != nullptr && !format->is_string()) return Refuse(path, "format: expected a text");
    if (format != nullptr) {
      if (auto known = PatternOfFormat(format->get_string())) {
        if (pattern.has_value()) return Refuse(path, "pattern beside format cannot be kept");
        pattern = std::move(known);
        source = "format";
      }
    }
    if (!pattern.has_value()) {
      if (max < min) return e_.Never();
      return min == 0 && max == kNoMaximum ? json_.AnyString() : json_.String(min, max);
    }
    if (min > 0 || max != kNoMaximum) {
      return Refuse(path, "minLength or maxLength beside " + source + " cannot be kept");
    }
    Result<Id> inside = ReadPattern(*pattern, e_, json_);
    if (!inside.ok()) return Refuse(path, inside.status().message());
    return json_.Quoted(*inside);
  }

  Result<Id> ReadArray(const json::object& schema, const std::string& path) {
    ASSIGN_OR_RETURN(const uint32_t min, CountOf(schema, "minItems", 0, path));
    ASSIGN_OR_RETURN(const uint32_t max, CountOf(schema, "maxItems", kNoMaximum, path));
    const json::value* rest = schema.if_contains("items");
    const json::value* first = schema.if_contains("prefixItems");
    if (rest != nullptr && rest->is_array()) {  // as in drafts before 2020
      first = rest;
      rest = schema.if_contains("additionalItems");
    }
    if (max < min) return e_.Never();
    if (first != nullptr && !first->is_array()) {
      return Refuse(path, "prefixItems: expected an array");
    }
    if (first != nullptr && !first->get_array().empty()) {
      return ReadTuple(first->get_array(), rest, min, max, path);
    }
    if (max == 0) return json_.Brackets(e_.Empty(), false);
    const std::string below = Below(path, "items");
    const Id item = NestedOrAny(rest, below), same_item = NestedOrAny(rest, below);
    return json_.Brackets(json_.List(item, same_item, min, max), min == 0);
  }

  // Without `items` nothing follows the prefix, unless so many are asked for.
  Result<Id> ReadTuple(const json::array& first, const json::value* rest, uint32_t min,
                       uint32_t max, const std::string& path) {
    const uint32_t count = static_cast<uint32_t>(first.size());
    Id tail = e_.Empty();
    if ((rest != nullptr || min > count) && max > count) {
      const Id more = e_.Sequence({json_.Comma(), NestedOrAny(rest, Below(path, "items"))});
      tail = e_.Repeat(more, min > count ? min - count : 0, max == kNoMaximum ? max : max - count);
    }
    for (uint32_t i = std::min(count, max); i-- > 0;) {
      const Id item = Nested(first[i], Below(Below(path, "prefixItems"), std::to_string(i)));
      tail = e_.Sequence({i > 0 ? json_.Comma() : e_.Empty(), item, tail});
      if (i >= min && i > 0) tail = e_.Optional(tail);
    }
    return json_.Brackets(tail, min == 0);
  }

  // Properties in the order of the schema. Others only where the schema speaks of them, or has
  // no properties at all: a model given names should use them.
  Result<Id> ReadObject(const json::object& schema, const std::string& path) {
    static const json::object kNone;
    static const json::value kAny(true);
    const json::object* properties = &kNone;
    if (const json::value* v = schema.if_contains("properties")) {
      properties = v->if_object();
      if (properties == nullptr) return Refuse(path, "properties: expected an object");
    }
    std::vector<std::string_view> required;
    if (const json::value* v = schema.if_contains("required"); v != nullptr && !v->is_bool()) {
      if (!v->is_array()) return Refuse(path, "required: expected an array of names");
      for (const json::value& name : v->get_array()) {
        if (!name.is_string()) return Refuse(path, "required: expected an array of names");
        required.push_back(name.get_string());
      }
    }
    std::sort(required.begin(), required.end());
    required.erase(std::unique(required.begin(), required.end()), required.end());
    const json::value* others = schema.if_contains("additionalProperties");
    std::vector<std::string_view> names;
    std::vector<Id> members;
    std::vector<bool> optional;
    const auto add = [&](std::string_view name, const json::value& value, bool may_miss) {
      const Id key = e_.Literal(json::serialize(json::string(name)));
      members.push_back(json_.Member(key, Nested(value, Below(Below(path, "properties"), name))));
      names.push_back(name);
      optional.push_back(may_miss);
    };
    for (const auto& [name, value] : *properties) {
      add(name, value,
          !std::binary_search(required.begin(), required.end(), std::string_view(name)));
    }
    for (const std::string_view name : required) {
      if (!properties->contains(name)) add(name, others == nullptr ? kAny : *others, false);
    }
    if (others == nullptr && names.empty() && !schema.contains("properties")) others = &kAny;
    if (others != nullptr && *others != false) {
      RETURN_IF_ERROR(AddOthers(*others, names, path, members, optional));
    }
    if (members.empty()) return json_.Braces(e_.Empty(), false);
    const bool may_be_empty = std::find(optional.begin(), optional.end(), false) == optional.end();
    const std::unique_ptr<bool[]> flags(new bool[optional.size()]);
    std::copy(optional.begin(), optional.end(), flags.get());
    return json_.Braces(e_.Members(json_.Comma(), members, std::span(flags.get(), optional.size())),
                        may_be_empty);
  }

  // Any number of properties with other names.
  Status AddOthers(const json::value& schema, const std::vector<std::string_view>& names,
                   const std::string& path, std::vector<Id>& members, std::vector<bool>& optional) {
    size_t bytes = 0;
    for (const std::string_view name : names) bytes += name.size();
    if (bytes > kMaxNameBytes) {
      return Refuse(path, "additionalProperties beside more than " + std::to_string(kMaxNameBytes) +
                              " bytes of names");
    }
    const std::string below = Below(path, "additionalProperties");
    const uint32_t rule = e_.AddRule(below);
    const Id key = names.empty() ? json_.AnyString() : json_.KeyNoneOf(names);
    e_.Define(rule, json_.Member(key, Nested(schema, below)));
    members.push_back(json_.List(e_.Rule(rule), e_.Rule(rule), 1, kNoMaximum));
    optional.push_back(true);
    return Status();
  }

  const json::value& root_;
  Expressions e_;
  JsonText json_;
  std::deque<Work> work_;
  std::unordered_map<const json::value*, uint32_t> rules_;
  std::deque<json::value> made_;  // by merging; they stay where they are
  size_t merges_ = 0, merged_values_ = 0;
};

}  // namespace

Result<std::shared_ptr<const Automaton>> CompileJsonSchema(const json::value& schema) {
  return SchemaReader(schema).Compile();
}

std::shared_ptr<const Automaton> CompileJsonObject() {
  Expressions expressions;
  JsonText text(expressions);
  const uint32_t root = expressions.AddRule("root");
  expressions.Define(root, text.AnyObject());
  auto automaton =
      BuildAutomaton(expressions, root, [](uint32_t) { return std::string("JSON object"); });
  return *std::move(automaton);  // of nothing from outside
}

}  // namespace sluice::grammar
