// Methods that ask: of str, list, tuple and dict.
#include <algorithm>

#include "src/text/jinja/sequences.h"

namespace sluice::jinja {

namespace {

// The part of a text between two character indices, as startswith and find take them.
struct Window {
  size_t from, to;     // bytes
  size_t chars;        // before it
  bool valid = false;  // Python: a start past the end matches nothing, not even ""
};

Result<Window> WindowOf(const Text& text, const Bound& bound, size_t i) {
  const auto count = static_cast<Int>(CountChars(text.bytes()));
  Int ends[2] = {0, count};
  for (size_t k = 0; k < 2; ++k) {
    if (bound.IsNone(i + k)) continue;
    ASSIGN_OR_RETURN(ends[k], bound.Integer(i + k, 0));
    if (ends[k] < 0) ends[k] = std::max<Int>(ends[k] + count, 0);
  }
  Window window{};
  window.valid = ends[0] <= count && ends[0] <= std::min(ends[1], count);
  if (!window.valid) return window;
  window.chars = static_cast<size_t>(ends[0]);
  window.from = OffsetOf(text.bytes(), window.chars);
  window.to = OffsetOf(text.bytes(), static_cast<size_t>(std::min(ends[1], count)));
  return window;
}

template <bool kStart>
Result<Value> StartsWith(Interpreter&, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind(kStart ? "startswith" : "endswith", args,
                                                  {"prefix", "start", "end"}, 1));
  ASSIGN_OR_RETURN(const Window window, WindowOf(self.text(), bound, 1));
  std::vector<Value> wanted = {bound[0]};
  if (bound[0].Is(Kind::kTuple)) wanted = bound[0].list().items;
  for (const Value& value : wanted) {
    if (value.undefined()) return Error(WhyUndefined(value));
    if (!value.Is(Kind::kText)) {
      return Error(std::string("startswith and endswith take a string or a tuple of them, found ") +
                   TypeName(value));
    }
    if (!window.valid) continue;
    const std::string_view text =
        std::string_view(self.text().bytes()).substr(window.from, window.to - window.from);
    const std::string& part = value.text().bytes();
    if (kStart ? text.starts_with(part) : text.ends_with(part)) return Value::Of(true);
  }
  return Value::Of(false);
}

template <bool kFromRight, bool kMust>
Result<Value> FindMethod(Interpreter&, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound,
                   Bound::Bind(kMust ? "index" : "find", args, {"sub", "start", "end"}, 1));
  ASSIGN_OR_RETURN(const std::string_view part, bound.String(0, {}));
  ASSIGN_OR_RETURN(const Window window, WindowOf(self.text(), bound, 1));
  if (window.valid) {
    const std::string_view text =
        std::string_view(self.text().bytes()).substr(window.from, window.to - window.from);
    const size_t at = kFromRight ? FindLast(text, part) : Find(text, part);
    if (at != text.npos) {
      return Value::Of(static_cast<Int>(window.chars + CountChars(text.substr(0, at))));
    }
  }
  if (kMust) return Error("index: the substring is not there");
  return Value::Of(Int{-1});
}

Result<Value> Count(Interpreter&, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("count", args, {"sub", "start", "end"}, 1));
  ASSIGN_OR_RETURN(const std::string_view part, bound.String(0, {}));
  ASSIGN_OR_RETURN(const Window window, WindowOf(self.text(), bound, 1));
  if (!window.valid) return Value::Of(Int{0});
  const std::string_view text =
      std::string_view(self.text().bytes()).substr(window.from, window.to - window.from);
  if (part.empty()) return Value::Of(static_cast<Int>(CountChars(text)) + 1);
  Int count = 0;
  for (size_t at = Find(text, part); at != text.npos; at = Find(text, part, at + part.size())) {
    ++count;
  }
  return Value::Of(count);
}

// All characters are of a kind, and there is one.
template <bool (*kHolds)(uint32_t)>
Result<Value> All(Interpreter&, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("this method", args, {}));
  bool all = !self.text().empty();
  ForEachChar(self.text(), [&](uint32_t code, size_t, size_t, bool) { all &= kHolds(code); });
  return Value::Of(all);
}

bool IsAlnum(uint32_t code) { return IsAlpha(code) || IsNumeric(code); }

// Cased characters are all of one case, and there is one.
template <bool kUpper>
Result<Value> IsCase(Interpreter&, const Value& self, Args&) {
  bool found = false, good = true;
  ForEachChar(self.text(), [&](uint32_t code, size_t, size_t, bool) {
    found |= kUpper ? IsUpper(code) : IsLower(code);
    good &= !(kUpper ? IsLower(code) : IsUpper(code)) && !IsTitle(code);
  });
  return Value::Of(found && good);
}

Result<Value> IsTitleText(Interpreter&, const Value& self, Args&) {
  bool found = false, good = true, inside = false;
  ForEachChar(self.text(), [&](uint32_t code, size_t, size_t, bool) {
    if (IsUpper(code) || IsTitle(code)) {
      good &= !inside;
      inside = found = true;
    } else if (IsLower(code)) {
      good &= inside;
      inside = found = true;
    } else {
      inside = false;
    }
  });
  return Value::Of(found && good);
}

Result<Value> IsIdentifier(Interpreter&, const Value& self, Args&) {
  bool good = !self.text().empty();
  ForEachChar(self.text(), [&](uint32_t code, size_t from, size_t, bool) {
    good &= from == 0 ? IsNameStart(code) : IsNameChar(code);
  });
  return Value::Of(good);
}

Result<Value> IsAsciiText(Interpreter&, const Value& self, Args&) {
  return Value::Of(IsAscii(self.text().bytes()));
}

Result<Value> IsPrintableText(Interpreter&, const Value& self, Args&) {
  bool good = true;
  ForEachChar(self.text(), [&](uint32_t code, size_t, size_t, bool) { good &= IsPrintable(code); });
  return Value::Of(good);
}

Result<Value> IndexOf(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("index", args, {"value", "start", "stop"}, 1));
  const std::vector<Value>& items = self.list().items;
  const auto count = static_cast<Int>(items.size());
  ASSIGN_OR_RETURN(Int from, bound.Integer(1, 0));
  ASSIGN_OR_RETURN(Int to, bound.Integer(2, count));
  if (from < 0) from = std::max<Int>(from + count, 0);
  if (to < 0) to += count;
  RETURN_IF_ERROR(in.Step(items.size()));
  for (Int i = from; i < std::min(to, count); ++i) {
    if (Equal(items[static_cast<size_t>(i)], bound[0])) return Value::Of(i);
  }
  return Error("index: the value is not in the list");
}

Result<Value> CountOf(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("count", args, {"value"}, 1));
  RETURN_IF_ERROR(in.Step(self.list().items.size()));
  Int count = 0;
  for (const Value& item : self.list().items) count += Equal(item, bound[0]);
  return Value::Of(count);
}

Result<Value> CopyList(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("copy", args, {}));
  RETURN_IF_ERROR(in.Room(self.list().items.size() * sizeof(Value)));
  return in.heap().MakeList(self.list().items);
}

Result<Value> Get(Interpreter&, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("get", args, {"key", "default"}, 1));
  if (!Hashable(bound[0]))
    return Error(std::string("unhashable type: '") + TypeName(bound[0]) + "'");
  const Value* value = self.dict().Find(bound[0]);
  return value != nullptr ? *value : bound.Or(1, Value::None());
}

template <Kind kView>
Result<Value> View(Interpreter&, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("items, keys and values", args, {}));
  return Value::Of(kView, self.object);
}

Result<Value> CopyDict(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("copy", args, {}));
  const Value dict = in.heap().MakeDict();
  RETURN_IF_ERROR(in.Step(self.dict().entries.size()));
  for (const auto& [key, value] : self.dict().entries) in.heap().SetEntry(dict, key, value);
  return dict;
}

Result<Value> FromKeys(Interpreter& in, const Value&, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("fromkeys", args, {"iterable", "value"}, 1));
  ASSIGN_OR_RETURN(const std::vector<Value> keys, in.Elements(bound[0]));
  const Value dict = in.heap().MakeDict();
  for (const Value& key : keys) {
    if (!Hashable(key)) return Error(std::string("unhashable type: '") + TypeName(key) + "'");
    in.heap().SetEntry(dict, key, bound.Or(1, Value::None()));
  }
  return dict;
}

}  // namespace

std::span<const NamedBuiltin> TextQueryMethods() {
  static constexpr NamedBuiltin kMethods[] = {{"startswith", StartsWith<true>},
                                              {"endswith", StartsWith<false>},
                                              {"find", FindMethod<false, false>},
                                              {"rfind", FindMethod<true, false>},
                                              {"index", FindMethod<false, true>},
                                              {"rindex", FindMethod<true, true>},
                                              {"count", Count},
                                              {"isalpha", All<IsAlpha>},
                                              {"isalnum", All<IsAlnum>},
                                              {"isdigit", All<IsDigit>},
                                              {"isdecimal", All<IsDecimal>},
                                              {"isnumeric", All<IsNumeric>},
                                              {"isspace", All<IsSpace>},
                                              {"isupper", IsCase<true>},
                                              {"islower", IsCase<false>},
                                              {"istitle", IsTitleText},
                                              {"isidentifier", IsIdentifier},
                                              {"isascii", IsAsciiText},
                                              {"isprintable", IsPrintableText}};
  return kMethods;
}

std::span<const NamedBuiltin> SequenceMethods() {
  static constexpr NamedBuiltin kMethods[] = {
      {"index", IndexOf}, {"count", CountOf}, {"copy", CopyList}};
  return kMethods;
}

std::span<const NamedBuiltin> DictMethods() {
  static constexpr NamedBuiltin kMethods[] = {{"get", Get},
                                              {"items", View<Kind::kItems>},
                                              {"keys", View<Kind::kKeys>},
                                              {"values", View<Kind::kValues>},
                                              {"copy", CopyDict},
                                              {"fromkeys", FromKeys}};
  return kMethods;
}

}  // namespace sluice::jinja
