// Expressions of a template.
#include <algorithm>

#include "src/text/jinja/interpreter.h"

namespace sluice::jinja {

namespace {

class Deeper {
 public:
  explicit Deeper(int& depth) : depth_(depth) { ++depth_; }
  ~Deeper() { --depth_; }

 private:
  int& depth_;
};

}  // namespace

Result<Value> Interpreter::Eval(const Expr& expr) {
  line_ = expr.line;
  RETURN_IF_ERROR(Step());
  const Deeper deeper(tree_depth_);
  if (tree_depth_ > limits_.tree_depth) return Error("the template calls itself too deep");
  switch (expr.kind) {
    case ExprKind::kConstant:
      return expr.value;
    case ExprKind::kName:
      return EvalName(expr);
    case ExprKind::kTuple:
    case ExprKind::kList:
      return EvalSequence(expr);
    case ExprKind::kDict:
      return EvalDict(expr);
    case ExprKind::kAttribute:
      return EvalAttribute(expr);
    case ExprKind::kItem:
      return EvalItem(expr);
    case ExprKind::kCall:
      return EvalCall(expr);
    case ExprKind::kFilter:
      return EvalFilter(expr, nullptr);
    case ExprKind::kTest:
      return EvalTest(expr);
    case ExprKind::kNot: {
      ASSIGN_OR_RETURN(const Value value, Eval(*expr.kids[0]));
      return Value::Of(!Truth(value));
    }
    case ExprKind::kNegative:
    case ExprKind::kPositive:
      return EvalSign(expr);
    case ExprKind::kAnd:
    case ExprKind::kOr:
      return EvalLogic(expr);
    case ExprKind::kBinary:
      return EvalBinary(expr);
    case ExprKind::kConcat:
      return EvalConcat(expr);
    case ExprKind::kCompare:
      return EvalCompare(expr);
    case ExprKind::kChoice:
      return EvalChoice(expr);
    case ExprKind::kSlice:  // in a tuple of subscripts, which only arrays take
    case ExprKind::kNamespace:
      break;
  }
  return Error("a slice stands alone in its brackets");
}

Result<Value> Interpreter::EvalName(const Expr& expr) {
  if (const Value* value = Lookup(expr.symbol); value != nullptr) return *value;
  return heap_.MakeUndefined("'" + program_.symbols[static_cast<size_t>(expr.symbol)] +
                             "' is undefined");
}

Result<Value> Interpreter::EvalSequence(const Expr& expr) {
  std::vector<Value> items;
  items.reserve(expr.kids.size());
  for (const ExprPtr& kid : expr.kids) {
    ASSIGN_OR_RETURN(const Value item, Eval(*kid));
    items.push_back(item);
  }
  return heap_.MakeList(std::move(items),
                        expr.kind == ExprKind::kTuple ? Kind::kTuple : Kind::kList);
}

Result<Value> Interpreter::EvalDict(const Expr& expr) {
  const Value dict = heap_.MakeDict();
  for (size_t i = 0; i + 1 < expr.kids.size(); i += 2) {
    ASSIGN_OR_RETURN(const Value key, Eval(*expr.kids[i]));
    ASSIGN_OR_RETURN(const Value value, Eval(*expr.kids[i + 1]));
    if (!Hashable(key)) return Error(std::string("unhashable type: '") + TypeName(key) + "'");
    heap_.SetEntry(dict, key, value);
  }
  return dict;
}

Result<Value> Interpreter::EvalAttribute(const Expr& expr) {
  ASSIGN_OR_RETURN(const Value object, Eval(*expr.kids[0]));
  line_ = expr.line;
  return GetAttribute(object, expr.name);
}

Result<Value> Interpreter::EvalItem(const Expr& expr) {
  ASSIGN_OR_RETURN(const Value object, Eval(*expr.kids[0]));
  if (expr.kids[1]->kind == ExprKind::kSlice) return EvalSlice(object, *expr.kids[1]);
  ASSIGN_OR_RETURN(const Value key, Eval(*expr.kids[1]));
  line_ = expr.line;
  return GetItem(object, key);
}

Status Interpreter::EvalArguments(const Arguments& arguments, Args& args) {
  args.values.reserve(arguments.values.size());
  for (const ExprPtr& expr : arguments.values) {
    ASSIGN_OR_RETURN(const Value value, Eval(*expr));
    args.values.push_back(value);
  }
  for (const auto& [name, expr] : arguments.named) {
    ASSIGN_OR_RETURN(const Value value, Eval(*expr));
    args.named.emplace_back(name, value);
  }
  if (arguments.star != nullptr) {
    ASSIGN_OR_RETURN(const Value more, Eval(*arguments.star));
    ASSIGN_OR_RETURN(const std::vector<Value> values, Elements(more));
    args.values.insert(args.values.end(), values.begin(), values.end());
  }
  if (arguments.double_star != nullptr) {
    ASSIGN_OR_RETURN(const Value more, Eval(*arguments.double_star));
    if (!more.Is(Kind::kDict)) {
      return Error(std::string("expected a dict after **, found ") + TypeName(more));
    }
    RETURN_IF_ERROR(Step(more.dict().entries.size()));
    for (const auto& [name, value] : more.dict().entries) {
      if (!name.Is(Kind::kText)) return Error("expected names as the keys of the dict after **");
      for (const auto& [other, unused] : arguments.named) {
        if (Equal(other, name)) {
          return Error("the argument '" + name.text().bytes() + "' is there twice");
        }
      }
      args.named.emplace_back(name, value);
    }
  }
  return Status();
}

Result<Value> Interpreter::EvalCall(const Expr& expr) {
  const Expr& target = *expr.kids[0];
  Args args;
  if (target.kind != ExprKind::kAttribute) {
    ASSIGN_OR_RETURN(const Value callee, Eval(target));
    RETURN_IF_ERROR(EvalArguments(expr.arguments, args));
    line_ = expr.line;
    return Call(callee, args);
  }
  // A method, the common case: called without making a value of it.
  ASSIGN_OR_RETURN(const Value object, Eval(*target.kids[0]));
  bool refused = false;
  const Builtin method = FindMethod(object.kind, target.text, &refused);
  if (method != nullptr && !refused) {
    RETURN_IF_ERROR(EvalArguments(expr.arguments, args));
    line_ = expr.line;
    RETURN_IF_ERROR(Step(Weight(object) / 64));
    return method(*this, object, args);
  }
  ASSIGN_OR_RETURN(const Value callee, GetAttribute(object, target.name));
  RETURN_IF_ERROR(EvalArguments(expr.arguments, args));
  line_ = expr.line;
  return Call(callee, args);
}

Result<Value> Interpreter::Call(const Value& callee, Args& args) {
  RETURN_IF_ERROR(Step());
  switch (callee.kind) {
    case Kind::kUndefined:
      return Error(WhyUndefined(callee));
    case Kind::kMacro:
      return CallMacro(*static_cast<MacroObject*>(callee.object), args);
    case Kind::kLoop:
      return CallLoop(*static_cast<LoopObject*>(callee.object), args);
    case Kind::kFunction:
      return static_cast<FunctionObject*>(callee.object)->function(*this, Value(), args);
    case Kind::kMethod: {
      const auto& method = *static_cast<MethodObject*>(callee.object);
      RETURN_IF_ERROR(Step(Weight(method.self) / 64));
      return method.method(*this, method.self, args);
    }
    case Kind::kJoiner: {
      const bool first = callee.list().next == 0;
      callee.list().next = 1;
      return first ? heap_.MakeText("") : callee.list().items[0];
    }
    default:
      return Error(std::string("'") + TypeName(callee) + "' object is not callable");
  }
}

Result<Value> Interpreter::EvalFilter(const Expr& expr, const Value* body) {
  Value value;
  if (expr.kids[0] == nullptr) {
    value = *body;
  } else if (body != nullptr) {  // a chain of filters after a block
    ASSIGN_OR_RETURN(value, EvalFilter(*expr.kids[0], body));
  } else {
    ASSIGN_OR_RETURN(value, Eval(*expr.kids[0]));
  }
  if (expr.builtin == nullptr) return Error("there is no filter \"" + expr.text + '"');
  Args args;
  RETURN_IF_ERROR(EvalArguments(expr.arguments, args));
  line_ = expr.line;
  RETURN_IF_ERROR(Step(Weight(value) / 64));
  return expr.builtin(*this, value, args);
}

Result<Value> Interpreter::EvalTest(const Expr& expr) {
  ASSIGN_OR_RETURN(const Value value, Eval(*expr.kids[0]));
  if (expr.builtin == nullptr) return Error("there is no test \"" + expr.text + '"');
  Args args;
  RETURN_IF_ERROR(EvalArguments(expr.arguments, args));
  line_ = expr.line;
  return expr.builtin(*this, value, args);
}

Result<Value> Interpreter::CallFilter(const Value& name, const Value& value, Args args) {
  const Builtin filter = name.Is(Kind::kText) ? FindFilter(name.text().bytes()) : nullptr;
  if (filter == nullptr) return Error("there is no filter " + ReprForError(name));
  RETURN_IF_ERROR(Step(1 + Weight(value) / 64));
  return filter(*this, value, args);
}

Result<bool> Interpreter::CallTest(const Value& name, const Value& value, Args args) {
  const Builtin test = name.Is(Kind::kText) ? FindTest(name.text().bytes()) : nullptr;
  if (test == nullptr) return Error("there is no test " + ReprForError(name));
  RETURN_IF_ERROR(Step());
  ASSIGN_OR_RETURN(const Value result, test(*this, value, args));
  return Truth(result);
}

Result<Value> Interpreter::EvalSign(const Expr& expr) {
  ASSIGN_OR_RETURN(const Value value, Eval(*expr.kids[0]));
  const bool negative = expr.kind == ExprKind::kNegative;
  if (value.undefined()) return Error(WhyUndefined(value));
  if (value.Is(Kind::kFloat)) return Value::Of(negative ? -value.number : value.number);
  if (!value.IsIntLike()) {
    return Error(std::string("bad operand type for unary ") + (negative ? "-" : "+") + ": '" +
                 TypeName(value) + "'");
  }
  if (!negative) return Value::Of(value.AsInt());
  return Binary(Operator::kSubtract, Value::Of(Int{0}), value);
}

Result<Value> Interpreter::EvalLogic(const Expr& expr) {
  ASSIGN_OR_RETURN(const Value left, Eval(*expr.kids[0]));
  if (Truth(left) == (expr.kind == ExprKind::kOr)) return left;
  return Eval(*expr.kids[1]);
}

Result<Value> Interpreter::EvalBinary(const Expr& expr) {
  ASSIGN_OR_RETURN(const Value a, Eval(*expr.kids[0]));
  ASSIGN_OR_RETURN(const Value b, Eval(*expr.kids[1]));
  line_ = expr.line;
  return Binary(expr.operators[0], a, b);
}

Result<Value> Interpreter::EvalConcat(const Expr& expr) {
  Text text;
  for (const ExprPtr& kid : expr.kids) {
    ASSIGN_OR_RETURN(const Value value, Eval(*kid));
    AppendStr(value, text);
    RETURN_IF_ERROR(TextRoom(text.size()));
  }
  return heap_.MakeText(std::move(text));
}

Result<Value> Interpreter::EvalCompare(const Expr& expr) {
  ASSIGN_OR_RETURN(Value left, Eval(*expr.kids[0]));
  for (size_t i = 0; i < expr.operators.size(); ++i) {
    ASSIGN_OR_RETURN(const Value right, Eval(*expr.kids[i + 1]));
    line_ = expr.line;
    ASSIGN_OR_RETURN(const bool holds, Compare(expr.operators[i], left, right));
    if (!holds) return Value::Of(false);
    left = right;
  }
  return Value::Of(true);
}

Result<Value> Interpreter::EvalChoice(const Expr& expr) {
  ASSIGN_OR_RETURN(const Value condition, Eval(*expr.kids[0]));
  if (Truth(condition)) return Eval(*expr.kids[1]);
  if (expr.kids[2] != nullptr) return Eval(*expr.kids[2]);
  return heap_.MakeUndefined("the inline if-expression has no else and its condition is false");
}

}  // namespace sluice::jinja
