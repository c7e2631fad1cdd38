// Arithmetic, comparisons and membership, as Python does them.
#include <algorithm>
#include <cmath>

#include "src/text/jinja/interpreter.h"

namespace sluice::jinja {

namespace {

const char* Sign(Operator op) {
  constexpr const char* kSigns[] = {
      "+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};
  return kSigns[static_cast<size_t>(op)];
}

Status BadOperands(Operator op, const Value& a, const Value& b) {
  return Error(std::string("unsupported operand types for ") + Sign(op) + ": '" + TypeName(a) +
               "' and '" + TypeName(b) + "'");
}

Status Overflow() { return Error("an integer is too large"); }
Status DivisionByZero() { return Error("division by zero"); }

Result<Value> Power(Int base, Int exponent) {
  if (exponent < 0) {
    if (base == 0) return DivisionByZero();
    return Value::Of(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  Int result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return Overflow();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) return Overflow();
  }
  return Value::Of(result);
}

Result<Value> IntArithmetic(Operator op, Int a, Int b) {
  Int result = 0;
  switch (op) {
    case Operator::kAdd:
      return __builtin_add_overflow(a, b, &result) ? Result<Value>(Overflow()) : Value::Of(result);
    case Operator::kSubtract:
      return __builtin_sub_overflow(a, b, &result) ? Result<Value>(Overflow()) : Value::Of(result);
    case Operator::kMultiply:
      return __builtin_mul_overflow(a, b, &result) ? Result<Value>(Overflow()) : Value::Of(result);
    case Operator::kDivide:
      if (b == 0) return DivisionByZero();
      return Value::Of(
          static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b)));
    case Operator::kFloorDivide:
    case Operator::kModulo: {
      if (b == 0) return DivisionByZero();
      if (b == -1) {  // the one quotient that may not fit
        if (op == Operator::kModulo) return Value::Of(Int{0});
        return IntArithmetic(Operator::kSubtract, 0, a);
      }
      Int quotient = a / b, rest = a % b;
      if (rest != 0 && (rest < 0) != (b < 0)) {
        rest += b;
        --quotient;
      }
      return Value::Of(op == Operator::kModulo ? rest : quotient);
    }
    default:
      return Power(a, b);
  }
}

Result<Value> FloatArithmetic(Operator op, double a, double b) {
  switch (op) {
    case Operator::kAdd:
      return Value::Of(a + b);
    case Operator::kSubtract:
      return Value::Of(a - b);
    case Operator::kMultiply:
      return Value::Of(a * b);
    case Operator::kDivide:
      if (b == 0) return DivisionByZero();
      return Value::Of(a / b);
    case Operator::kFloorDivide:
    case Operator::kModulo: {
      if (b == 0) return DivisionByZero();
      double rest = std::fmod(a, b);
      double quotient = (a - rest) / b;
      if (rest != 0 && (rest < 0) != (b < 0)) {
        rest += b;
        quotient -= 1;
      }
      if (op == Operator::kModulo) return Value::Of(rest == 0 ? std::copysign(0.0, b) : rest);
      double whole = std::floor(quotient);
      if (quotient - whole > 0.5) whole += 1;
      return Value::Of(quotient == 0 ? std::copysign(0.0, a / b) : whole);
    }
    default: {
      if (a == 0 && b < 0) return DivisionByZero();
      const double result = std::pow(a, b);
      if (std::isnan(result) && !std::isnan(a) && !std::isnan(b)) {
        return Error("a power that is no real number");
      }
      if (std::isinf(result) && std::isfinite(a) && std::isfinite(b)) {
        return Error("the result of ** is too large");
      }
      return Value::Of(result);
    }
  }
}

}  // namespace

Result<Value> Interpreter::Binary(Operator op, const Value& a, const Value& b) {
  if (a.IsIntLike() && b.IsIntLike()) return IntArithmetic(op, a.AsInt(), b.AsInt());
  if (a.IsNumber() && b.IsNumber()) return FloatArithmetic(op, a.AsDouble(), b.AsDouble());
  if (op == Operator::kModulo && a.Is(Kind::kText)) {
    ASSIGN_OR_RETURN(Text text, FormatPercent(*this, a.text(), b));
    return heap_.MakeText(std::move(text), a.markup());
  }
  if (a.undefined()) return Error(WhyUndefined(a));
  if (b.undefined()) return Error(WhyUndefined(b));
  if (op == Operator::kAdd && a.kind == b.kind) {
    if (a.Is(Kind::kText)) {
      RETURN_IF_ERROR(TextRoom(a.text().size() + b.text().size()));
      const bool markup = a.markup() || b.markup();
      Text text = markup && !a.markup() ? EscapeHtml(a.text()) : a.text();
      text.Append(markup && !b.markup() ? EscapeHtml(b.text()) : b.text());
      return heap_.MakeText(std::move(text), markup);
    }
    if (a.Is(Kind::kList) || a.Is(Kind::kTuple)) {
      const size_t count = a.list().items.size() + b.list().items.size();
      RETURN_IF_ERROR(Room(count * sizeof(Value)));
      RETURN_IF_ERROR(Step(count / 8));
      std::vector<Value> items = a.list().items;
      items.insert(items.end(), b.list().items.begin(), b.list().items.end());
      return heap_.MakeList(std::move(items), a.kind);
    }
  }
  if (op == Operator::kMultiply && (a.IsIntLike() || b.IsIntLike())) {
    const Value& what = a.IsIntLike() ? b : a;
    const Int times = std::max<Int>(a.IsIntLike() ? a.AsInt() : b.AsInt(), 0);
    const bool is_text = what.Is(Kind::kText);
    if (is_text || what.Is(Kind::kList) || what.Is(Kind::kTuple)) {
      const size_t size = is_text ? what.text().size() : what.list().items.size() * sizeof(Value);
      constexpr Int kMany = Int{1} << 40;
      if (size > 0 && times > kMany / static_cast<Int>(size))
        return Error("the result of * is too large");
      const size_t n = size == 0 ? 0 : static_cast<size_t>(times);
      RETURN_IF_ERROR(is_text ? TextRoom(size * n) : Room(size * n));
      RETURN_IF_ERROR(Step(n));
      if (is_text) {
        Text text;
        for (size_t i = 0; i < n; ++i) text.Append(what.text());
        return heap_.MakeText(std::move(text), what.markup());
      }
      std::vector<Value> items;
      for (size_t i = 0; i < n; ++i) {
        items.insert(items.end(), what.list().items.begin(), what.list().items.end());
      }
      return heap_.MakeList(std::move(items), what.kind);
    }
  }
  return BadOperands(op, a, b);
}

Result<bool> Interpreter::Less(const Value& a, const Value& b) {
  return Compare(Operator::kLess, a, b);
}

Result<bool> Interpreter::Compare(Operator op, const Value& a, const Value& b) {
  RETURN_IF_ERROR(Step(std::min(Weight(a), Weight(b)) / 64));
  switch (op) {
    case Operator::kEqual:
      return Equal(a, b);
    case Operator::kUnequal:
      return !Equal(a, b);
    case Operator::kIn:
    case Operator::kNotIn: {
      ASSIGN_OR_RETURN(const Value in, Contains(b, a));
      return Truth(in) == (op == Operator::kIn);
    }
    default:
      break;
  }
  const auto holds = [op](auto x, auto y) {
    return op == Operator::kLess        ? x < y
           : op == Operator::kLessEqual ? x <= y
           : op == Operator::kGreater   ? x > y
                                        : x >= y;
  };
  if (a.IsIntLike() && b.IsIntLike()) return holds(a.AsInt(), b.AsInt());
  if (a.IsNumber() && b.IsNumber()) {
    const auto wide = [](const Value& v) {
      return v.Is(Kind::kFloat) ? static_cast<long double>(v.number)
                                : static_cast<long double>(v.AsInt());
    };
    return holds(wide(a), wide(b));
  }
  if (a.undefined()) return Error(WhyUndefined(a));
  if (b.undefined()) return Error(WhyUndefined(b));
  if (a.kind == b.kind) {
    if (a.Is(Kind::kText)) return holds(a.text().bytes().compare(b.text().bytes()), 0);
    if (a.Is(Kind::kList) || a.Is(Kind::kTuple)) {
      const std::vector<Value>&x = a.list().items, &y = b.list().items;
      const auto [at, other] = std::mismatch(x.begin(), x.end(), y.begin(), y.end(), Equal);
      if (at != x.end() && other != y.end()) return Compare(op, *at, *other);
      return holds(x.size(), y.size());
    }
  }
  return Error(std::string("'") + Sign(op) + "' not supported between instances of '" +
               TypeName(a) + "' and '" + TypeName(b) + "'");
}

Result<Value> Interpreter::Contains(const Value& container, const Value& item) {
  RETURN_IF_ERROR(Step(Weight(container) / 64));
  const auto holds = [&](const std::vector<Value>& items) {
    return std::any_of(items.begin(), items.end(), [&](const Value& v) { return Equal(v, item); });
  };
  switch (container.kind) {
    case Kind::kText:
      if (!item.Is(Kind::kText)) {
        return Error(std::string("'in <string>' requires string as left operand, not ") +
                     TypeName(item));
      }
      return Value::Of(Find(container.text().bytes(), item.text().bytes()) != std::string::npos);
    case Kind::kList:
    case Kind::kTuple:
    case Kind::kRange:
      return Value::Of(holds(container.list().items));
    case Kind::kDict:
    case Kind::kKeys:
      if (!Hashable(item)) return Error(std::string("unhashable type: '") + TypeName(item) + "'");
      return Value::Of(container.dict().Find(item) != nullptr);
    case Kind::kGenerator: {
      ListObject& list = container.list();
      while (list.next < list.items.size()) {
        if (Equal(list.items[list.next++], item)) return Value::Of(true);
      }
      return Value::Of(false);
    }
    case Kind::kUndefined:
      return Value::Of(false);
    case Kind::kValues:
    case Kind::kItems: {
      ASSIGN_OR_RETURN(const std::vector<Value> items, Elements(container));
      return Value::Of(holds(items));
    }
    default:
      return Error(std::string("argument of type '") + TypeName(container) + "' is not iterable");
  }
}

}  // namespace sluice::jinja
