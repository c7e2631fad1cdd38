#include "src/text/jinja/value.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "src/text/jinja/interpreter.h"

namespace sluice::jinja {
namespace {

constexpr size_t kSmallDict = 12;  // up to here looking through beats hashing

}  // namespace

Value Value::None() {
  Value v;
  v.kind = Kind::kNone;
  return v;
}
Value Value::Of(bool truth) {
  Value v;
  v.kind = Kind::kBool;
  v.truth = truth;
  return v;
}
Value Value::Of(double number) {
  Value v;
  v.kind = Kind::kFloat;
  v.number = number;
  return v;
}
Value Value::Of(Int integer) {
  Value v;
  v.kind = Kind::kInt;
  v.integer = integer;
  return v;
}
Value Value::Of(Kind kind, Object* object) {
  Value v;
  v.kind = kind;
  v.object = object;
  return v;
}

const Text& Value::text() const {
  DCHECK(kind == Kind::kText);
  return static_cast<TextObject*>(object)->text;
}
bool Value::markup() const {
  return kind == Kind::kText && static_cast<TextObject*>(object)->markup;
}
ListObject& Value::list() const { return *static_cast<ListObject*>(object); }
DictObject& Value::dict() const { return *static_cast<DictObject*>(object); }

long DictObject::IndexOf(const Value& key, size_t hash) const {
  if (index_.empty()) {
    for (size_t i = 0; i < entries.size(); ++i) {
      if (Equal(entries[i].first, key)) return static_cast<long>(i);
    }
    return -1;
  }
  const auto [begin, end] = index_.equal_range(hash);
  for (auto at = begin; at != end; ++at) {
    if (Equal(entries[at->second].first, key)) return static_cast<long>(at->second);
  }
  return -1;
}

const Value* DictObject::Find(const Value& key) const {
  const long at = IndexOf(key, index_.empty() ? 0 : Hash(key));
  return at < 0 ? nullptr : &entries[static_cast<size_t>(at)].second;
}

const Value* DictObject::Find(std::string_view key) const {
  if (index_.empty()) {
    for (const auto& [name, value] : entries) {
      if (name.Is(Kind::kText) && name.text().bytes() == key) return &value;
    }
    return nullptr;
  }
  TextObject text;
  text.text = Text(key);
  return Find(Value::Of(Kind::kText, &text));
}

void DictObject::Set(const Value& key, const Value& value) {
  const size_t hash = index_.empty() ? 0 : Hash(key);
  if (const long at = IndexOf(key, hash); at >= 0) {
    entries[static_cast<size_t>(at)].second = value;
    return;
  }
  entries.emplace_back(key, value);
  if (!index_.empty()) {
    index_.emplace(hash, entries.size() - 1);
  } else if (entries.size() > kSmallDict) {
    for (size_t i = 0; i < entries.size(); ++i) index_.emplace(Hash(entries[i].first), i);
  }
}

Value Heap::MakeText(Text text, bool markup) {
  auto* made = New<TextObject>();
  made->text = std::move(text);
  made->markup = markup;
  Charge(made->text.size() + made->text.runs().size() * sizeof(Text::Run));
  return Value::Of(Kind::kText, made);
}

void Heap::AddChild(Object* object, const Value& child) {
  object->weight += Weight(child);
  if (object->weight > limit_) too_heavy_ = true;
  if (child.kind < Kind::kList || child.kind > Kind::kItems) return;
  if (child.object->depth < object->depth) return;
  object->depth = child.object->depth + 1;
  if (object->depth > value_depth_) too_deep_ = true;
}

Value Heap::MakeList(std::vector<Value> items, Kind kind) {
  auto* made = New<ListObject>();
  Charge(items.size() * sizeof(Value));
  for (const Value& item : items) AddChild(made, item);
  made->items = std::move(items);
  return Value::Of(kind, made);
}

Value Heap::MakeUndefined(std::string why) {
  auto* made = New<UndefinedObject>();
  made->why = std::move(why);
  Charge(made->why.size());
  return Value::Of(Kind::kUndefined, made);
}

void Heap::SetEntry(const Value& dict, const Value& key, const Value& value) {
  DictObject& object = dict.dict();
  const size_t before = object.entries.size();
  object.Set(key, value);
  if (object.entries.size() != before) Charge(2 * sizeof(Value) + 48);
  if (object.entries.size() != before) AddChild(&object, key);
  AddChild(&object, value);
}

const char* Heap::failure() const {
  if (used_ > limit_) return "the template makes more values than the memory it may use";
  if (too_heavy_) return "lists and dicts hold more than the memory a template may use";
  if (too_deep_) return "lists and dicts are nested too deep";
  return nullptr;
}

size_t Weight(const Value& v) {
  if (v.Is(Kind::kText)) return 16 + v.text().size();
  if (v.kind >= Kind::kList && v.kind <= Kind::kItems) return 16 + v.object->weight;
  return 16;
}

bool Truth(const Value& v) {
  switch (v.kind) {
    case Kind::kUndefined:
    case Kind::kNone:
      return false;
    case Kind::kBool:
      return v.truth;
    case Kind::kInt:
      return v.integer != 0;
    case Kind::kFloat:
      return v.number != 0;
    case Kind::kText:
      return !v.text().empty();
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
      return !v.list().items.empty();
    case Kind::kDict:
    case Kind::kKeys:
    case Kind::kValues:
    case Kind::kItems:
      return !v.dict().entries.empty();
    case Kind::kLoop:
      return static_cast<LoopObject*>(v.object)->items.size() != 0;
    default:
      return true;
  }
}

namespace {

bool EqualNumbers(const Value& a, const Value& b) {
  if (a.IsIntLike() && b.IsIntLike()) return a.AsInt() == b.AsInt();
  if (a.Is(Kind::kFloat) && b.Is(Kind::kFloat)) return a.number == b.number;
  const double d = a.Is(Kind::kFloat) ? a.number : b.number;
  const Int i = a.Is(Kind::kFloat) ? b.AsInt() : a.AsInt();
  return d == std::floor(d) && std::abs(d) < 1e38 && static_cast<Int>(d) == i;
}

}  // namespace

bool Equal(const Value& a, const Value& b) {
  if (a.IsNumber() && b.IsNumber()) return EqualNumbers(a, b);
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::kUndefined:
    case Kind::kNone:
      return true;
    case Kind::kText:
      return a.text().bytes() == b.text().bytes();
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
      return a.object == b.object ||
             std::equal(a.list().items.begin(), a.list().items.end(), b.list().items.begin(),
                        b.list().items.end(), Equal);
    case Kind::kDict: {
      if (a.object == b.object) return true;
      if (a.dict().entries.size() != b.dict().entries.size()) return false;
      for (const auto& [key, value] : a.dict().entries) {
        const Value* other = b.dict().Find(key);
        if (other == nullptr || !Equal(value, *other)) return false;
      }
      return true;
    }
    default:
      return a.object == b.object;
  }
}

bool Hashable(const Value& v) {
  if (v.Is(Kind::kTuple)) {
    return std::all_of(v.list().items.begin(), v.list().items.end(), Hashable);
  }
  return v.kind != Kind::kList && v.kind != Kind::kDict && v.kind != Kind::kKeys &&
         v.kind != Kind::kItems;
}

size_t Hash(const Value& v) {
  switch (v.kind) {
    case Kind::kBool:
    case Kind::kInt:
      return std::hash<uint64_t>()(static_cast<uint64_t>(v.AsInt()));
    case Kind::kFloat:
      if (v.number == std::floor(v.number) && std::abs(v.number) < 1e38) {
        return std::hash<uint64_t>()(static_cast<uint64_t>(static_cast<Int>(v.number)));
      }
      return std::hash<double>()(v.number);
    case Kind::kText:
      return std::hash<std::string>()(v.text().bytes());
    case Kind::kTuple: {
      size_t hash = 1;
      for (const Value& item : v.list().items) hash = hash * 1000003 ^ Hash(item);
      return hash;
    }
    case Kind::kUndefined:
    case Kind::kNone:
      return static_cast<size_t>(v.kind);
    default:
      return std::hash<const void*>()(v.object);
  }
}

const char* TypeName(const Value& v) {
  constexpr const char* kNames[] = {"Undefined",
                                    "NoneType",
                                    "bool",
                                    "int",
                                    "float",
                                    "str",
                                    "list",
                                    "tuple",
                                    "range",
                                    "generator",
                                    "dict",
                                    "dict_keys",
                                    "dict_values",
                                    "dict_items",
                                    "Namespace",
                                    "Macro",
                                    "LoopContext",
                                    "function",
                                    "builtin_function_or_method",
                                    "Cycler",
                                    "Joiner"};
  return v.markup() ? "Markup" : kNames[static_cast<size_t>(v.kind)];
}

std::string WhyUndefined(const Value& v) {
  const auto* object = static_cast<UndefinedObject*>(v.object);
  return object == nullptr ? "the value is undefined" : object->why;
}

}  // namespace sluice::jinja
