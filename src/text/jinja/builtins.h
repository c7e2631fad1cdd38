// What templates find by name: filters, tests, functions, and the methods of
// Python's types. Each is one function; `Arguments` below unpacks what it got.
#ifndef SLUICE_SRC_TEXT_JINJA_BUILTINS_H_
#define SLUICE_SRC_TEXT_JINJA_BUILTINS_H_

#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "src/text/jinja/ast.h"

namespace sluice::jinja {

struct Args {
  std::vector<Value> values;
  std::vector<std::pair<Value, Value>> named;
};

// Null if there is none.
Builtin FindFilter(std::string_view name);
Builtin FindTest(std::string_view name);
Builtin FindFunction(std::string_view name);
// Of values of `kind`. `refused`: Python has it, but it would change the value, which templates may
// not.
Builtin FindMethod(Kind kind, std::string_view name, bool* refused);

struct NamedBuiltin {
  std::string_view name;
  Builtin function;
};
// The tables, one per file.
std::span<const NamedBuiltin> TextFilters();
std::span<const NamedBuiltin> HtmlFilters();
std::span<const NamedBuiltin> NumberFilters();
std::span<const NamedBuiltin> ListFilters();
std::span<const NamedBuiltin> SelectFilters();
std::span<const NamedBuiltin> TextMethods();
std::span<const NamedBuiltin> TextQueryMethods();
std::span<const NamedBuiltin> SequenceMethods();
std::span<const NamedBuiltin> DictMethods();

// Arguments put into the order of `names`, by position or by name; those not given are empty.
class Bound {
 public:
  static Result<Bound> Bind(std::string_view function, const Args& args,
                            std::initializer_list<std::string_view> names, size_t required = 0);

  bool Has(size_t i) const { return values_[i].has_value(); }
  bool IsNone(size_t i) const { return !Has(i) || values_[i]->Is(Kind::kNone); }
  const Value& operator[](size_t i) const { return *values_[i]; }
  Value Or(size_t i, const Value& otherwise) const { return Has(i) ? *values_[i] : otherwise; }
  bool Truthy(size_t i, bool otherwise = false) const {
    return Has(i) ? Truth(*values_[i]) : otherwise;
  }
  Result<Int> Integer(size_t i, Int otherwise) const;
  Result<std::string_view> String(size_t i, std::string_view otherwise) const;

 private:
  std::string_view function_;
  std::vector<std::optional<Value>> values_;
};

Status Error(std::string what);
Status NotIterable(const Value& value);

// tojson, as Python's json.dumps; `level` of the indentation.
struct JsonOptions {
  bool ascii = false, sort_keys = false, indented = false;
  Text indent;
  Text item_separator = Text(", "), key_separator = Text(": ");
};
Status AppendJson(const Value& value, const JsonOptions& options, size_t level, Text& out);
// printf-like: format % value, where named values are looked up in a dict.
Result<Text> FormatPercent(Interpreter& in, const Text& format, const Value& values);
// str.format.
Result<Text> FormatBraces(Interpreter& in, const Text& format, const Args& args);
// strftime.
std::string FormatTime(const std::tm& time, std::string_view format);

}  // namespace sluice::jinja
#endif  // SLUICE_SRC_TEXT_JINJA_BUILTINS_H_
