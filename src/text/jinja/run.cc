// Statements of a template, macros and loops.
#include <algorithm>

#include "src/base/printable.h"
#include "src/text/jinja/interpreter.h"
#include "src/text/jinja/parser.h"

namespace sluice::jinja {

namespace {

// Sets a member for the time of a scope.
template <class T>
class Swap {
 public:
  Swap(T& member, T value) : member_(member), before_(member) { member_ = value; }
  ~Swap() { member_ = before_; }
  Swap(const Swap&) = delete;
  Swap& operator=(const Swap&) = delete;

 private:
  T& member_;
  T before_;
};

}  // namespace

Status Error(std::string what) { return Status(StatusCode::kInvalidArgument, std::move(what)); }

std::string MacroName(const Value& macro) {
  return "'" + static_cast<MacroObject*>(macro.object)->macro->name + "'";
}

const Value* Scope::Find(int symbol) const {
  for (const auto& [name, value] : values) {
    if (name == symbol) return &value;
  }
  return nullptr;
}

void Scope::Set(int symbol, const Value& value) {
  for (auto& [name, old] : values) {
    if (name == symbol) {
      old = value;
      return;
    }
  }
  values.emplace_back(symbol, value);
}

Interpreter::Interpreter(const Program& program, const Limits& limits, const RenderOptions& options)
    : program_(program), limits_(limits), options_(options), heap_(limits) {}

Status Interpreter::Step(uint64_t n) {
  steps_ += n;
  if (steps_ > limits_.steps) return Error("the template takes more steps than it may");
  if (const char* failure = heap_.failure(); failure != nullptr) return Error(failure);
  return Status();
}

Status Interpreter::Room(size_t bytes) {
  if (!heap_.Has(bytes)) return Error("the template makes more values than the memory it may use");
  return Status();
}

Status Interpreter::TextRoom(size_t bytes) {
  if (bytes > limits_.text_bytes) {
    return Error("a string of " + std::to_string(bytes) + " bytes, more than " +
                 std::to_string(limits_.text_bytes));
  }
  return Room(bytes);
}

Status Interpreter::Raise(std::string message) {
  raised_ = true;
  return Error(std::move(message));
}

Result<Text> Interpreter::Run(const boost::json::object& variables) {
  Text out;
  root_ = scope_ = NewScope(nullptr);
  out_ = &out;
  DefineVariables(variables);
  Status status = Step();
  if (status.ok()) status = RunBlock(program_.body).status();
  if (status.ok()) return out;
  if (raised_) return Status(status.code(), Printable(status.message(), 10000));
  return ErrorAt(line_, status.code(), status.message());
}

Scope* Interpreter::NewScope(Scope* parent) {
  Scope* scope = heap_.New<Scope>();
  scope->parent = parent;
  return scope;
}

const Value* Interpreter::Lookup(int symbol) const {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent) {
    if (const Value* value = scope->Find(symbol); value != nullptr) return value;
  }
  const auto index = static_cast<size_t>(symbol);
  return has_global_[index] ? &globals_[index] : nullptr;
}

Result<Interpreter::Flow> Interpreter::RunBlock(const Block& block) {
  for (const auto& stmt : block) {
    ASSIGN_OR_RETURN(const Flow flow, RunStmt(*stmt));
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::RunStmt(const Stmt& stmt) {
  line_ = stmt.line;
  RETURN_IF_ERROR(Step());
  const Swap<int> depth(tree_depth_, tree_depth_ + 1);
  if (tree_depth_ > limits_.tree_depth) return Error("the template calls itself too deep");
  switch (stmt.kind) {
    case StmtKind::kText:
      RETURN_IF_ERROR(Print(stmt.value));
      return Flow::kNext;
    case StmtKind::kPrint: {
      ASSIGN_OR_RETURN(const Value value, Eval(*stmt.expr));
      RETURN_IF_ERROR(Print(value));
      return Flow::kNext;
    }
    case StmtKind::kIf:
      return RunIf(stmt);
    case StmtKind::kFor:
      RETURN_IF_ERROR(RunFor(stmt));
      return Flow::kNext;
    case StmtKind::kSet: {
      ASSIGN_OR_RETURN(const Value value, Eval(*stmt.expr));
      RETURN_IF_ERROR(Assign(*stmt.target, value));
      return Flow::kNext;
    }
    case StmtKind::kSetBlock:
    case StmtKind::kFilter:
      return RunCaptured(stmt);
    case StmtKind::kMacro: {
      auto* macro = heap_.New<MacroObject>();
      macro->macro = stmt.macro.get();
      macro->closure = scope_;
      scope_->Set(stmt.symbol, Value::Of(Kind::kMacro, macro));
      return Flow::kNext;
    }
    case StmtKind::kCallBlock:
      RETURN_IF_ERROR(RunCallBlock(stmt));
      return Flow::kNext;
    case StmtKind::kWith:
      return RunWith(stmt);
    case StmtKind::kScope:
      return RunScoped(stmt.body, scope_);
    case StmtKind::kBlock:
      return RunScoped(stmt.body, root_);
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Status Interpreter::Print(const Value& value) {
  const size_t before = out_->size();
  if (value.Is(Kind::kText)) RETURN_IF_ERROR(TextRoom(before + value.text().size()));
  AppendStr(value, *out_);
  heap_.Charge(out_->size() - before);
  return TextRoom(out_->size());
}

Result<Interpreter::Flow> Interpreter::RunIf(const Stmt& stmt) {
  for (size_t i = 0; i < stmt.bodies.size(); ++i) {
    if (i < stmt.conditions.size()) {
      ASSIGN_OR_RETURN(const Value condition, Eval(*stmt.conditions[i]));
      if (!Truth(condition)) continue;
    }
    return RunBlock(stmt.bodies[i]);
  }
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::RunScoped(const Block& block, Scope* parent) {
  const Swap<Scope*> scope(scope_, NewScope(parent));
  return RunBlock(block);
}

Result<Interpreter::Flow> Interpreter::RunWith(const Stmt& stmt) {
  std::vector<Value> values;
  for (const ExprPtr& expr : stmt.conditions) {
    ASSIGN_OR_RETURN(const Value value, Eval(*expr));
    values.push_back(value);
  }
  const Swap<Scope*> scope(scope_, NewScope(scope_));
  for (size_t i = 0; i < values.size(); ++i) {
    RETURN_IF_ERROR(Assign(*stmt.targets[i], values[i]));
  }
  return RunBlock(stmt.body);
}

Result<Interpreter::Flow> Interpreter::RunCaptured(const Stmt& stmt) {
  Text captured;
  Flow flow = Flow::kNext;
  {
    const Swap<Text*> out(out_, &captured);
    ASSIGN_OR_RETURN(flow, RunScoped(stmt.body, scope_));
  }
  Value value = heap_.MakeText(std::move(captured));
  if (stmt.expr != nullptr) {
    ASSIGN_OR_RETURN(value, EvalFilter(*stmt.expr, &value));
  }
  if (stmt.kind == StmtKind::kFilter) {
    RETURN_IF_ERROR(Print(value));
  } else {
    RETURN_IF_ERROR(Assign(*stmt.target, value));
  }
  return flow;
}

Status Interpreter::Assign(const Expr& target, const Value& value) {
  if (target.kind == ExprKind::kName) {
    heap_.Charge(sizeof(Value) + 16);
    scope_->Set(target.symbol, value);
    return Status();
  }
  if (target.kind == ExprKind::kNamespace) {
    const Value* space = Lookup(target.symbol);
    if (space == nullptr || !space->Is(Kind::kNamespace)) {
      return Error("cannot set an attribute of " +
                   program_.symbols[static_cast<size_t>(target.symbol)] +
                   ", which is no namespace");
    }
    heap_.Charge(2 * sizeof(Value) + 48);
    space->dict().Set(target.name, value);
    return Status();
  }
  ASSIGN_OR_RETURN(const std::vector<Value> values, Elements(value));
  if (values.size() != target.kids.size()) {
    return Error(std::string(values.size() < target.kids.size() ? "not enough" : "too many") +
                 " values to unpack (expected " + std::to_string(target.kids.size()) + ", found " +
                 std::to_string(values.size()) + ")");
  }
  for (size_t i = 0; i < values.size(); ++i) RETURN_IF_ERROR(Assign(*target.kids[i], values[i]));
  return Status();
}

Status Interpreter::RunFor(const Stmt& stmt) {
  ASSIGN_OR_RETURN(const Value iterable, Eval(*stmt.expr));
  return RunRounds(stmt, iterable, scope_, 0);
}

Status Interpreter::RunRounds(const Stmt& stmt, const Value& iterable, Scope* scope, int depth0) {
  auto* loop = heap_.New<LoopObject>();
  loop->stmt = &stmt;
  loop->scope = scope;
  loop->depth0 = depth0;
  ASSIGN_OR_RETURN(loop->items, Elements(iterable));
  const Swap<Scope*> outer(scope_, scope);
  if (stmt.condition != nullptr) {
    std::vector<Value> chosen;
    for (const Value& item : loop->items) {
      const Swap<Scope*> inner(scope_, NewScope(scope));
      RETURN_IF_ERROR(Assign(*stmt.target, item));
      ASSIGN_OR_RETURN(const Value condition, Eval(*stmt.condition));
      if (Truth(condition)) chosen.push_back(item);
    }
    loop->items = std::move(chosen);
  }
  // As Jinja has it: `else` runs unless a round came to its end.
  bool completed = false;
  for (loop->index = 0; loop->index < loop->items.size(); ++loop->index) {
    RETURN_IF_ERROR(Step());
    const Swap<Scope*> inner(scope_, NewScope(scope));
    scope_->Set(kSymbolLoop, Value::Of(Kind::kLoop, loop));
    RETURN_IF_ERROR(Assign(*stmt.target, loop->items[loop->index]));
    ASSIGN_OR_RETURN(const Flow flow, RunBlock(stmt.body));
    if (flow == Flow::kBreak) break;
    completed |= flow == Flow::kNext;
  }
  if (completed || stmt.otherwise.empty()) return Status();
  return RunScoped(stmt.otherwise, scope).status();
}

Result<Value> Interpreter::CallLoop(const LoopObject& loop, Args& args) {
  if (!loop.stmt->recursive) {
    return Error("this loop calls itself and is not marked as recursive");
  }
  ASSIGN_OR_RETURN(const Bound bound, Bound::Bind("loop", args, {"iterable"}, 1));
  const Swap<int> depth(call_depth_, call_depth_ + 1);
  if (call_depth_ > limits_.call_depth) return Error("the loop calls itself too deep");
  Text text;
  {
    const Swap<Text*> out(out_, &text);
    RETURN_IF_ERROR(RunRounds(*loop.stmt, bound[0], loop.scope, loop.depth0 + 1));
  }
  return heap_.MakeText(std::move(text));
}

Status Interpreter::RunCallBlock(const Stmt& stmt) {
  auto* caller = heap_.New<MacroObject>();
  caller->macro = stmt.macro.get();
  caller->closure = scope_;
  ASSIGN_OR_RETURN(const Value callee, Eval(*stmt.expr->kids[0]));
  Args args;
  RETURN_IF_ERROR(EvalArguments(stmt.expr->arguments, args));
  args.named.emplace_back(heap_.MakeText("caller"), Value::Of(Kind::kMacro, caller));
  ASSIGN_OR_RETURN(const Value result, Call(callee, args));
  return Print(result);
}

Result<Value> Interpreter::CallMacro(const MacroObject& object, Args& args) {
  const Macro& macro = *object.macro;
  const Swap<int> depth(call_depth_, call_depth_ + 1);
  if (call_depth_ > limits_.call_depth) return Error("macros call each other too deep");
  const Swap<Scope*> scope(scope_, NewScope(object.closure));
  const auto take = [&](const Value& name) -> std::optional<Value> {
    for (auto at = args.named.begin(); at != args.named.end(); ++at) {
      if (!Equal(at->first, name)) continue;
      const Value value = at->second;
      args.named.erase(at);
      return value;
    }
    return std::nullopt;
  };
  const size_t count = macro.parameters.size();
  const size_t first_default = count - macro.defaults.size();
  for (size_t i = 0; i < count; ++i) {
    std::optional<Value> value;
    if (i < args.values.size()) {
      value = args.values[i];
    } else if (value = take(macro.names[i]); value.has_value()) {
    } else if (i >= first_default) {
      ASSIGN_OR_RETURN(value, Eval(*macro.defaults[i - first_default]));
    } else {
      value =
          heap_.MakeUndefined("parameter '" + macro.names[i].text().bytes() + "' was not provided");
    }
    scope_->Set(macro.parameters[i], *value);
  }
  if (macro.uses_caller && scope_->Find(kSymbolCaller) == nullptr) {
    const std::optional<Value> caller = take(heap_.MakeText("caller"));
    scope_->Set(kSymbolCaller,
                caller.has_value() ? *caller : heap_.MakeUndefined("No caller defined"));
  }
  if (macro.uses_kwargs) {
    const Value rest = heap_.MakeDict();
    for (const auto& [name, value] : args.named) heap_.SetEntry(rest, name, value);
    scope_->Set(kSymbolKwargs, rest);
  } else if (!args.named.empty()) {
    return Error("the macro '" + macro.name + "' takes no argument '" +
                 args.named.front().first.text().bytes() + "'");
  }
  if (macro.uses_varargs) {
    const size_t taken = std::min(count, args.values.size());
    std::vector<Value> rest(args.values.begin() + static_cast<long>(taken), args.values.end());
    scope_->Set(kSymbolVarargs, heap_.MakeList(std::move(rest), Kind::kTuple));
  } else if (args.values.size() > count) {
    return Error("the macro '" + macro.name + "' takes at most " + std::to_string(count) +
                 " arguments, found " + std::to_string(args.values.size()));
  }
  Text text;
  {
    const Swap<Text*> out(out_, &text);
    RETURN_IF_ERROR(RunBlock(macro.body).status());
  }
  return heap_.MakeText(std::move(text));
}

}  // namespace sluice::jinja
