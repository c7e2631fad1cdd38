// What can stand after `is`.
#include <unordered_map>

#include "src/text/jinja/interpreter.h"

namespace sluice::jinja {

namespace {

// A test of the value alone.
template <bool (*kHolds)(const Value&)>
Result<Value> Plain(Interpreter&, const Value& self, Args& args) {
  if (!args.values.empty() || !args.named.empty()) return Error("this test takes no arguments");
  return Value::Of(kHolds(self));
}

template <Operator kOperator>
Result<Value> Against(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("the test", args, {"other"}, 1));
  ASSIGN_OR_RETURN(const bool holds, in.Compare(kOperator, self, bound[0]));
  return Value::Of(holds);
}

bool IsIterable(const Value& v) {
  return v.undefined() || v.Is(Kind::kText) || (v.kind >= Kind::kList && v.kind <= Kind::kItems) ||
         v.Is(Kind::kLoop);
}

bool IsSequenceTest(const Value& v) {
  return v.undefined() || v.Is(Kind::kText) || v.IsSequence() || v.Is(Kind::kDict);
}

bool IsCallable(const Value& v) {
  return v.undefined() || v.Is(Kind::kMacro) || v.Is(Kind::kLoop) || v.Is(Kind::kFunction) ||
         v.Is(Kind::kMethod) || v.Is(Kind::kJoiner);
}

bool IsTrue(const Value& v) { return v.Is(Kind::kBool) && v.truth; }
bool IsFalse(const Value& v) { return v.Is(Kind::kBool) && !v.truth; }
bool IsUndefined(const Value& v) { return v.undefined(); }
bool IsDefined(const Value& v) { return !v.undefined(); }
template <Kind kKind>
bool IsKind(const Value& v) {
  return v.Is(kKind);
}
bool IsNumberTest(const Value& v) { return v.IsNumber(); }
bool IsEscaped(const Value& v) { return v.markup(); }

// str.islower and str.isupper of the printed value.
template <bool (*kRight)(uint32_t), bool (*kWrong)(uint32_t)>
bool IsCase(const Value& v) {
  bool found = false, good = true;
  ForEachChar(Str(v), [&](uint32_t code, size_t, size_t, bool) {
    found |= kRight(code);
    good &= !kWrong(code) && !IsTitle(code);
  });
  return found && good;
}

Result<Value> Modulo(Interpreter& in, const Value& self, Int by) {
  return in.Binary(Operator::kModulo, self, Value::Of(by));
}

Result<Value> Odd(Interpreter& in, const Value& self, Args&) {
  ASSIGN_OR_RETURN(const Value rest, Modulo(in, self, 2));
  return Value::Of(Equal(rest, Value::Of(Int{1})));
}

Result<Value> Even(Interpreter& in, const Value& self, Args&) {
  ASSIGN_OR_RETURN(const Value rest, Modulo(in, self, 2));
  return Value::Of(Equal(rest, Value::Of(Int{0})));
}

Result<Value> DivisibleBy(Interpreter& in, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("divisibleby", args, {"num"}, 1));
  ASSIGN_OR_RETURN(const Value rest, in.Binary(Operator::kModulo, self, bound[0]));
  return Value::Of(Equal(rest, Value::Of(Int{0})));
}

Result<Value> SameAs(Interpreter&, const Value& self, Args& args) {
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("sameas", args, {"other"}, 1));
  const bool by_value = self.kind < Kind::kList;
  return Value::Of(self.kind == bound[0].kind &&
                   (by_value ? Equal(self, bound[0]) : self.object == bound[0].object));
}

Result<Value> IsFilter(Interpreter&, const Value& self, Args&) {
  return Value::Of(self.Is(Kind::kText) && FindFilter(self.text().bytes()) != nullptr);
}

Result<Value> IsTest(Interpreter&, const Value& self, Args&) {
  return Value::Of(self.Is(Kind::kText) && FindTest(self.text().bytes()) != nullptr);
}

}  // namespace

Builtin FindTest(std::string_view name) {
  static const std::unordered_map<std::string_view, Builtin> table = {
      {"odd", Odd},
      {"even", Even},
      {"divisibleby", DivisibleBy},
      {"defined", Plain<IsDefined>},
      {"undefined", Plain<IsUndefined>},
      {"filter", IsFilter},
      {"test", IsTest},
      {"none", Plain<IsKind<Kind::kNone>>},
      {"boolean", Plain<IsKind<Kind::kBool>>},
      {"false", Plain<IsFalse>},
      {"true", Plain<IsTrue>},
      {"integer", Plain<IsKind<Kind::kInt>>},
      {"float", Plain<IsKind<Kind::kFloat>>},
      {"lower", Plain<IsCase<IsLower, IsUpper>>},
      {"upper", Plain<IsCase<IsUpper, IsLower>>},
      {"string", Plain<IsKind<Kind::kText>>},
      {"mapping", Plain<IsKind<Kind::kDict>>},
      {"number", Plain<IsNumberTest>},
      {"sequence", Plain<IsSequenceTest>},
      {"iterable", Plain<IsIterable>},
      {"callable", Plain<IsCallable>},
      {"sameas", SameAs},
      {"escaped", Plain<IsEscaped>},
      {"in", Against<Operator::kIn>},
      {"==", Against<Operator::kEqual>},
      {"eq", Against<Operator::kEqual>},
      {"equalto", Against<Operator::kEqual>},
      {"!=", Against<Operator::kUnequal>},
      {"ne", Against<Operator::kUnequal>},
      {">", Against<Operator::kGreater>},
      {"gt", Against<Operator::kGreater>},
      {"greaterthan", Against<Operator::kGreater>},
      {">=", Against<Operator::kGreaterEqual>},
      {"ge", Against<Operator::kGreaterEqual>},
      {"<", Against<Operator::kLess>},
      {"lt", Against<Operator::kLess>},
      {"lessthan", Against<Operator::kLess>},
      {"<=", Against<Operator::kLessEqual>},
      {"le", Against<Operator::kLessEqual>},
  };
  const auto at = table.find(name);
  return at == table.end() ? nullptr : at->second;
}

}  // namespace sluice::jinja
