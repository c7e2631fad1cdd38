// Attributes, items, slices and elements of values.
#include <algorithm>

#include "src/text/jinja/interpreter.h"

namespace sluice::jinja {

Status NotIterable(const Value& value) {
  return Error(std::string("'") + TypeName(value) + "' object is not iterable");
}

Value Interpreter::NoAttribute(const Value& object, const Value& name) {
  std::string owner =
      object.Is(Kind::kNone) ? "'None'" : "'" + std::string(TypeName(object)) + " object'";
  if (name.Is(Kind::kText)) {
    return heap_.MakeUndefined(owner + " has no attribute '" + name.text().bytes() + "'");
  }
  return heap_.MakeUndefined(owner + " has no element " + ReprForError(name).substr(0, 100));
}

Value Interpreter::Method(const Value& self, std::string_view name) {
  bool refused = false;
  const Builtin method = FindMethod(self.kind, name, &refused);
  if (refused) {
    return heap_.MakeUndefined("'" + std::string(name) + "' would change a " + TypeName(self) +
                               ", which templates may not");
  }
  auto* object = heap_.New<MethodObject>();
  object->self = self;
  object->method = method;
  object->name = name;
  return Value::Of(Kind::kMethod, object);
}

Value Interpreter::LoopAttribute(LoopObject& loop, std::string_view name, bool* found) {
  const auto count = static_cast<Int>(loop.items.size());
  const auto index = static_cast<Int>(loop.index);
  *found = true;
  if (name == "index") return Value::Of(index + 1);
  if (name == "index0") return Value::Of(index);
  if (name == "revindex") return Value::Of(count - index);
  if (name == "revindex0") return Value::Of(count - index - 1);
  if (name == "first") return Value::Of(index == 0);
  if (name == "last") return Value::Of(index + 1 == count);
  if (name == "length") return Value::Of(count);
  if (name == "depth") return Value::Of(static_cast<Int>(loop.depth0) + 1);
  if (name == "depth0") return Value::Of(static_cast<Int>(loop.depth0));
  if (name == "previtem") {
    return index > 0 ? loop.items[loop.index - 1]
                     : heap_.MakeUndefined("there is no previous item");
  }
  if (name == "nextitem") {
    return index + 1 < count ? loop.items[loop.index + 1]
                             : heap_.MakeUndefined("there is no next item");
  }
  *found = false;
  return Value();
}

Result<Value> Interpreter::GetAttribute(const Value& object, const Value& name) {
  const std::string& text = name.text().bytes();
  bool refused = false;
  switch (object.kind) {
    case Kind::kUndefined:
      return Error(WhyUndefined(object));
    case Kind::kLoop: {
      bool found = false;
      const Value value = LoopAttribute(*static_cast<LoopObject*>(object.object), text, &found);
      if (found) return value;
      break;
    }
    case Kind::kTuple:
      if (object.list().group && (text == "grouper" || text == "list")) {
        return object.list().items[text == "list"];
      }
      break;
    case Kind::kMacro:
      if (text == "name") {
        return heap_.MakeText(static_cast<MacroObject*>(object.object)->macro->name);
      }
      break;
    case Kind::kCycler:
      if (text == "current") return object.list().items[object.list().next];
      break;
    case Kind::kNamespace:
      if (const Value* value = object.dict().Find(name); value != nullptr) return *value;
      break;
    default:
      break;
  }
  if (FindMethod(object.kind, text, &refused) != nullptr || refused) return Method(object, text);
  if (object.Is(Kind::kDict)) {
    if (const Value* value = object.dict().Find(name); value != nullptr) return *value;
  }
  return NoAttribute(object, name);
}

Result<Value> Interpreter::GetItem(const Value& object, const Value& key) {
  if (object.undefined()) return Error(WhyUndefined(object));
  if (object.Is(Kind::kDict)) {
    if (Hashable(key)) {
      RETURN_IF_ERROR(Step(Weight(key) / 64));
      if (const Value* value = object.dict().Find(key); value != nullptr) return *value;
    }
  } else if (key.IsIntLike() && (object.IsSequence() || object.Is(Kind::kText))) {
    const bool is_text = object.Is(Kind::kText);
    const size_t count = is_text ? CountChars(object.text().bytes()) : object.list().items.size();
    if (is_text) RETURN_IF_ERROR(Step(object.text().size() / 64));
    Int index = key.AsInt();
    if (index < 0) index += static_cast<Int>(count);
    if (index >= 0 && index < static_cast<Int>(count)) {
      if (!is_text) return object.list().items[static_cast<size_t>(index)];
      const Text& text = object.text();
      const size_t from = OffsetOf(text.bytes(), static_cast<size_t>(index));
      return heap_.MakeText(text.Sub(from, from + DecodeChar(text.bytes(), from).length),
                            object.markup());
    }
  }
  if (key.Is(Kind::kText)) {
    if (object.Is(Kind::kDict)) {
      bool refused = false;
      const std::string& name = key.text().bytes();
      if (FindMethod(object.kind, name, &refused) != nullptr || refused)
        return Method(object, name);
    } else {
      return GetAttribute(object, key);
    }
  }
  return NoAttribute(object, key);
}

Result<Value> Interpreter::EvalSlice(const Value& object, const Expr& slice) {
  Value parts[3];
  bool given[3] = {false, false, false};
  bool good = true;
  for (size_t i = 0; i < 3; ++i) {
    if (slice.kids[i] == nullptr) continue;
    ASSIGN_OR_RETURN(parts[i], Eval(*slice.kids[i]));
    given[i] = !parts[i].Is(Kind::kNone);
    good &= !given[i] || parts[i].IsIntLike();
  }
  line_ = slice.line;
  if (object.undefined()) return Error(WhyUndefined(object));
  const bool is_text = object.Is(Kind::kText);
  if (!is_text && !object.IsSequence()) {
    return Error(std::string("'") + TypeName(object) + "' object has no slices");
  }
  if (!good) return Error("slice indices must be integers or None");
  const Int step = given[2] ? parts[2].AsInt() : 1;
  if (step == 0) return Error("slice step cannot be zero");
  const auto count =
      static_cast<Int>(is_text ? CountChars(object.text().bytes()) : object.list().items.size());
  RETURN_IF_ERROR(Step(static_cast<uint64_t>(count) / 16));
  const auto clamp = [&](Int at) {
    if (at < 0) at += count;
    return step > 0 ? std::clamp<Int>(at, 0, count) : std::clamp<Int>(at, -1, count - 1);
  };
  const Int first = given[0] ? clamp(parts[0].AsInt()) : step > 0 ? 0 : count - 1;
  Int from = first;
  const Int to = given[1] ? clamp(parts[1].AsInt()) : step > 0 ? count : -1;
  std::vector<size_t> chosen;
  if (is_text && step == 1) {
    const Text& text = object.text();
    if (to <= from) return heap_.MakeText(Text(), object.markup());
    const size_t begin = OffsetOf(text.bytes(), static_cast<size_t>(from));
    const size_t chars = static_cast<size_t>(to - from);
    const size_t end = begin + OffsetOf(std::string_view(text.bytes()).substr(begin), chars);
    return heap_.MakeText(text.Sub(begin, end), object.markup());
  }
  // A step larger than the sequence takes one element.
  while (step > 0 ? from < to : from > to) {
    chosen.push_back(static_cast<size_t>(from));
    if (step > count || step < -count) break;
    from += step;
  }
  RETURN_IF_ERROR(Room(chosen.size() * sizeof(Value)));
  if (!is_text) {
    std::vector<Value> items;
    items.reserve(chosen.size());
    for (const size_t at : chosen) items.push_back(object.list().items[at]);
    const Value part = heap_.MakeList(std::move(items), object.kind);
    if (object.Is(Kind::kRange)) {
      part.list().start = object.list().start + first * object.list().step;
      part.list().stop = object.list().start + to * object.list().step;
      part.list().step = object.list().step * std::clamp<Int>(step, -count - 1, count + 1);
    }
    return part;
  }
  std::vector<size_t> offsets;
  for (size_t at = 0; at < object.text().size();) {
    offsets.push_back(at);
    at += DecodeChar(object.text().bytes(), at).length;
  }
  offsets.push_back(object.text().size());
  Text text;
  for (const size_t at : chosen) text.Append(object.text(), offsets[at], offsets[at + 1]);
  return heap_.MakeText(std::move(text), object.markup());
}

Result<std::vector<Value>> Interpreter::Elements(const Value& value) {
  std::vector<Value> items;
  switch (value.kind) {
    case Kind::kUndefined:
      return items;
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
      items = value.list().items;
      break;
    case Kind::kGenerator: {
      ListObject& list = value.list();
      items.assign(list.items.begin() + static_cast<long>(list.next), list.items.end());
      list.next = list.items.size();
      break;
    }
    case Kind::kDict:
    case Kind::kKeys:
    case Kind::kValues:
    case Kind::kItems: {
      RETURN_IF_ERROR(Room(value.dict().entries.size() * 5 * sizeof(Value)));
      for (const auto& [key, entry] : value.dict().entries) {
        if (value.Is(Kind::kItems)) {
          items.push_back(heap_.MakeList({key, entry}, Kind::kTuple));
        } else {
          items.push_back(value.Is(Kind::kValues) ? entry : key);
        }
      }
      break;
    }
    case Kind::kText: {
      const Text& text = value.text();
      RETURN_IF_ERROR(Room(text.size() * (sizeof(Value) + sizeof(TextObject) + 16)));
      RETURN_IF_ERROR(Step(text.size()));
      ForEachChar(text, [&](uint32_t, size_t from, size_t to, bool) {
        items.push_back(heap_.MakeText(text.Sub(from, to), value.markup()));
      });
      break;
    }
    default:
      return NotIterable(value);
  }
  RETURN_IF_ERROR(Step(items.size() / 8));
  RETURN_IF_ERROR(Room(items.size() * sizeof(Value)));
  heap_.Charge(items.size() * sizeof(Value));
  return items;
}

Result<Value> Interpreter::Length(const Value& value) {
  switch (value.kind) {
    case Kind::kUndefined:
      return Value::Of(Int{0});
    case Kind::kText:
      return Value::Of(static_cast<Int>(CountChars(value.text().bytes())));
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
      return Value::Of(static_cast<Int>(value.list().items.size()));
    case Kind::kDict:
    case Kind::kKeys:
    case Kind::kValues:
    case Kind::kItems:
      return Value::Of(static_cast<Int>(value.dict().entries.size()));
    case Kind::kLoop:
      return Value::Of(static_cast<Int>(static_cast<LoopObject*>(value.object)->items.size()));
    default:
      return Error(std::string("object of type '") + TypeName(value) + "' has no len()");
  }
}

}  // namespace sluice::jinja
