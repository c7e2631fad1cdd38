// Finding builtins by name, unpacking what they are called with, and the functions.
#include "src/text/jinja/builtins.h"

#include <ctime>
#include <unordered_map>

#include "src/text/jinja/interpreter.h"

namespace sluice::jinja {

namespace {

using Table = std::unordered_map<std::string_view, Builtin>;

Table MakeTable(std::initializer_list<std::span<const NamedBuiltin>> parts) {
  Table table;
  for (const auto& part : parts) {
    for (const NamedBuiltin& entry : part) table.emplace(entry.name, entry.function);
  }
  return table;
}

Builtin FindIn(const Table& table, std::string_view name) {
  const auto at = table.find(name);
  return at == table.end() ? nullptr : at->second;
}

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> names) {
  for (const std::string_view other : names) {
    if (name == other) return true;
  }
  return false;
}

Result<Value> RangeOf(Interpreter& in, const Value&, Args& args) {
  if (!args.named.empty() || args.values.empty() || args.values.size() > 3) {
    return Error("range takes one to three numbers");
  }
  Int numbers[3] = {0, 0, 1};
  for (size_t i = 0; i < args.values.size(); ++i) {
    if (args.values[i].undefined()) return Error(WhyUndefined(args.values[i]));
    if (!args.values[i].IsIntLike()) {
      return Error(std::string("'") + TypeName(args.values[i]) + "' object is no integer");
    }
    numbers[i] = args.values[i].AsInt();
  }
  if (args.values.size() == 1) std::swap(numbers[0], numbers[1]);
  const auto [start, stop, step] = numbers;
  if (step == 0) return Error("the step of range must not be zero");
  constexpr Int kFar = Int{1} << 64;
  if (start > kFar || start < -kFar || stop > kFar || stop < -kFar || step > kFar || step < -kFar) {
    return Error("range: a number is too large");
  }
  const Int span = step > 0 ? stop - start : start - stop, stride = step > 0 ? step : -step;
  const Int count = span <= 0 ? 0 : (span - 1) / stride + 1;
  if (count > static_cast<Int>(in.limits().range_items)) {
    return Error("range: too many numbers, more than " + std::to_string(in.limits().range_items));
  }
  RETURN_IF_ERROR(in.Step(static_cast<uint64_t>(count) / 8));
  std::vector<Value> items;
  for (Int i = 0; i < count; ++i) items.push_back(Value::Of(start + i * step));
  const Value range = in.heap().MakeList(std::move(items), Kind::kRange);
  range.list().start = start;
  range.list().stop = stop;
  range.list().step = step;
  return range;
}

// What dict(...) and namespace(...) are given, as a dict.
Result<Value> Entries(Interpreter& in, const Args& args, const char* function) {
  const Value dict = in.heap().MakeDict();
  if (args.values.size() > 1) {
    return Error(std::string(function) + " takes at most one argument by position");
  }
  if (args.values.size() == 1) {
    const Value& from = args.values[0];
    if (from.Is(Kind::kDict) || from.Is(Kind::kNamespace)) {
      RETURN_IF_ERROR(in.Step(from.dict().entries.size()));
      for (const auto& [key, value] : from.dict().entries) in.heap().SetEntry(dict, key, value);
    } else {
      ASSIGN_OR_RETURN(const std::vector<Value> pairs, in.Elements(from));
      for (const Value& pair : pairs) {
        ASSIGN_OR_RETURN(const std::vector<Value> two, in.Elements(pair));
        if (two.size() != 2) return Error("a dict is made of pairs");
        if (!Hashable(two[0])) {
          return Error(std::string("unhashable type: '") + TypeName(two[0]) + "'");
        }
        in.heap().SetEntry(dict, two[0], two[1]);
      }
    }
  }
  for (const auto& [key, value] : args.named) in.heap().SetEntry(dict, key, value);
  return dict;
}

Result<Value> DictOf(Interpreter& in, const Value&, Args& args) {
  return Entries(in, args, "dict");
}

Result<Value> NamespaceOf(Interpreter& in, const Value&, Args& args) {
  ASSIGN_OR_RETURN(const Value dict, Entries(in, args, "namespace"));
  return Value::Of(Kind::kNamespace, dict.object);
}

Result<Value> CyclerOf(Interpreter& in, const Value&, Args& args) {
  if (args.values.empty()) return Error("cycler takes at least one item");
  return in.heap().MakeList(args.values, Kind::kCycler);
}

Result<Value> JoinerOf(Interpreter& in, const Value&, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("joiner", args, {"sep"}));
  return in.heap().MakeList({bound.Or(0, in.heap().MakeText(", "))}, Kind::kJoiner);
}

Result<Value> RaiseException(Interpreter& in, const Value&, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("raise_exception", args, {"message"}, 1));
  return in.Raise(Str(bound[0]).bytes());
}

Result<Value> StrftimeNow(Interpreter& in, const Value&, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("strftime_now", args, {"format"}, 1));
  ASSIGN_OR_RETURN(const std::string_view format, bound.String(0, {}));
  std::tm now{};
  if (in.options().now.has_value()) {
    now = *in.options().now;
  } else {
    const std::time_t clock = std::time(nullptr);
    localtime_r(&clock, &now);
  }
  const bool content = args.values.empty() ? false : bound[0].text().ContentAt(0);
  return in.heap().MakeText(FormatTime(now, format), content);
}

Result<Value> CyclerNext(Interpreter&, const Value& self, Args&) {
  ListObject& list = self.list();
  const Value now = list.items[list.next];
  list.next = (list.next + 1) % list.items.size();
  return now;
}

Result<Value> CyclerReset(Interpreter&, const Value& self, Args&) {
  self.list().next = 0;
  return Value::None();
}

Result<Value> LoopCycle(Interpreter&, const Value& self, Args& args) {
  if (args.values.empty()) return Error("loop.cycle takes at least one item");
  return args.values[static_cast<LoopObject*>(self.object)->index % args.values.size()];
}

Result<Value> LoopChanged(Interpreter& in, const Value& self, Args& args) {
  auto& loop = *static_cast<LoopObject*>(self.object);
  const Value now = in.heap().MakeList(args.values, Kind::kTuple);
  const bool changed = !loop.has_changed || !Equal(loop.last_changed, now);
  loop.has_changed = true;
  loop.last_changed = now;
  return Value::Of(changed);
}

}  // namespace

Builtin FindFilter(std::string_view name) {
  static const Table table =
      MakeTable({TextFilters(), HtmlFilters(), NumberFilters(), ListFilters(), SelectFilters()});
  return FindIn(table, name);
}

Builtin FindFunction(std::string_view name) {
  constexpr NamedBuiltin kFunctions[] = {
      {"range", RangeOf},           {"dict", DictOf},     {"namespace", NamespaceOf},
      {"cycler", CyclerOf},         {"joiner", JoinerOf}, {"raise_exception", RaiseException},
      {"strftime_now", StrftimeNow}};
  static const Table table = MakeTable({kFunctions});
  return FindIn(table, name);
}

Builtin FindMethod(Kind kind, std::string_view name, bool* refused) {
  static const Table text = MakeTable({TextMethods(), TextQueryMethods()});
  static const Table sequence = MakeTable({SequenceMethods()});
  static const Table dict = MakeTable({DictMethods()});
  *refused = false;
  switch (kind) {
    case Kind::kText:
      return FindIn(text, name);
    case Kind::kDict:
      *refused = IsOneOf(name, {"clear", "pop", "popitem", "setdefault", "update"});
      return FindIn(dict, name);
    case Kind::kList:
      *refused = IsOneOf(
          name, {"append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove"});
      return FindIn(sequence, name);
    case Kind::kTuple:
    case Kind::kRange:
      return name == "copy" ? nullptr : FindIn(sequence, name);
    case Kind::kLoop:
      return name == "cycle" ? LoopCycle : name == "changed" ? LoopChanged : nullptr;
    case Kind::kCycler:
      return name == "next" ? CyclerNext : name == "reset" ? CyclerReset : nullptr;
    default:
      return nullptr;
  }
}

Result<Bound> Bound::Bind(std::string_view function, const Args& args,
                          std::initializer_list<std::string_view> names, size_t required) {
  Bound bound;
  bound.function_ = function;
  bound.values_.resize(names.size());
  const std::string who(function);
  if (args.values.size() > names.size()) {
    return Error(who + " takes at most " + std::to_string(names.size()) + " arguments, found " +
                 std::to_string(args.values.size()));
  }
  for (size_t i = 0; i < args.values.size(); ++i) bound.values_[i] = args.values[i];
  for (const auto& [name, value] : args.named) {
    size_t i = 0;
    while (i < names.size() && names.begin()[i] != name.text().bytes()) ++i;
    if (i == names.size()) return Error(who + " takes no argument '" + name.text().bytes() + "'");
    if (bound.values_[i].has_value()) {
      return Error(who + ": the argument '" + name.text().bytes() + "' is there twice");
    }
    bound.values_[i] = value;
  }
  for (size_t i = 0; i < required; ++i) {
    if (!bound.values_[i].has_value()) {
      return Error(who + ": the argument '" + std::string(names.begin()[i]) + "' is missing");
    }
  }
  return bound;
}

Result<Int> Bound::Integer(size_t i, Int otherwise) const {
  if (!Has(i)) return otherwise;
  const Value& value = *values_[i];
  if (value.undefined()) return Error(WhyUndefined(value));
  if (value.IsIntLike()) return value.AsInt();
  return Error(std::string(function_) + ": expected an integer, found " + TypeName(value));
}

Result<std::string_view> Bound::String(size_t i, std::string_view otherwise) const {
  if (!Has(i)) return otherwise;
  const Value& value = *values_[i];
  if (value.undefined()) return Error(WhyUndefined(value));
  if (value.Is(Kind::kText)) return std::string_view(value.text().bytes());
  return Error(std::string(function_) + ": expected a string, found " + TypeName(value));
}

}  // namespace sluice::jinja
