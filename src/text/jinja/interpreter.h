// One rendering of a template: walks the tree, with the scopes, the output and
// the books on what the rendering has used. One thread.
#ifndef SLUICE_SRC_TEXT_JINJA_INTERPRETER_H_
#define SLUICE_SRC_TEXT_JINJA_INTERPRETER_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/text/jinja/ast.h"
#include "src/text/jinja/builtins.h"

namespace sluice::jinja {

// Names of a block of the template; loops have one per round.
struct Scope : Object {
  Scope* parent = nullptr;
  std::vector<std::pair<int, Value>> values;

  const Value* Find(int symbol) const;  // here only
  void Set(int symbol, const Value& value);
};

struct MacroObject : Object {
  const Macro* macro = nullptr;
  Scope* closure = nullptr;
};

struct LoopObject : Object {
  const Stmt* stmt = nullptr;
  Scope* scope = nullptr;  // around the loop
  std::vector<Value> items;
  size_t index = 0;
  int depth0 = 0;
  bool has_changed = false;
  Value last_changed;
};

struct FunctionObject : Object {
  Builtin function = nullptr;
};

struct MethodObject : Object {
  Value self;
  Builtin method = nullptr;
  bool refused = false;
  std::string name;
};

std::string MacroName(const Value& macro);

class Interpreter {
 public:
  Interpreter(const Program& program, const Limits& limits, const RenderOptions& options);

  // Errors are of one line, with the line of the template unless the template raised them.
  Result<Text> Run(const boost::json::object& variables);

  Heap& heap() { return heap_; }
  const Limits& limits() const { return limits_; }
  const RenderOptions& options() const { return options_; }

  // Counts work; fails when it was too much, or values took too much memory.
  Status Step(uint64_t n = 1);
  Status Room(size_t bytes);      // before making `bytes` of values
  Status TextRoom(size_t bytes);  // before making a text of `bytes`
  // Ends the rendering with the template's own message.
  Status Raise(std::string message);

  Result<Value> Call(const Value& callee, Args& args);
  Result<Value> CallFilter(const Value& name, const Value& value, Args args);
  Result<bool> CallTest(const Value& name, const Value& value, Args args);
  // object.name, object[key]: what is not there is undefined.
  Result<Value> GetAttribute(const Value& object, const Value& name);
  Result<Value> GetItem(const Value& object, const Value& key);
  // All elements, as a for loop sees them; a generator is spent then.
  Result<std::vector<Value>> Elements(const Value& value);
  Result<Value> Length(const Value& value);
  Result<Value> Binary(Operator op, const Value& a, const Value& b);
  Result<bool> Compare(Operator op, const Value& a, const Value& b);
  Result<bool> Less(const Value& a, const Value& b);

 private:
  enum class Flow : uint8_t { kNext, kBreak, kContinue };

  Value FromJson(const boost::json::value& json, bool content, int depth);
  void DefineVariables(const boost::json::object& variables);

  // Statements: run.cc.
  Result<Flow> RunBlock(const Block& block);
  Result<Flow> RunStmt(const Stmt& stmt);
  Result<Flow> RunIf(const Stmt& stmt);
  Result<Flow> RunScoped(const Block& block, Scope* parent);
  Status RunFor(const Stmt& stmt);
  Status RunRounds(const Stmt& stmt, const Value& iterable, Scope* scope, int depth0);
  Result<Flow> RunWith(const Stmt& stmt);
  Result<Flow> RunCaptured(const Stmt& stmt);
  Status RunCallBlock(const Stmt& stmt);
  Status Print(const Value& value);
  Status Assign(const Expr& target, const Value& value);
  Result<Value> CallMacro(const MacroObject& macro, Args& args);
  Result<Value> CallLoop(const LoopObject& loop, Args& args);
  Scope* NewScope(Scope* parent);
  const Value* Lookup(int symbol) const;

  // Expressions: evaluate.cc.
  Result<Value> Eval(const Expr& expr);
  Result<Value> EvalName(const Expr& expr);
  Result<Value> EvalSequence(const Expr& expr);
  Result<Value> EvalDict(const Expr& expr);
  Result<Value> EvalAttribute(const Expr& expr);
  Result<Value> EvalItem(const Expr& expr);
  Result<Value> EvalSlice(const Value& object, const Expr& slice);
  Result<Value> EvalCall(const Expr& expr);
  Result<Value> EvalFilter(const Expr& expr, const Value* body);
  Result<Value> EvalTest(const Expr& expr);
  Result<Value> EvalSign(const Expr& expr);
  Result<Value> EvalLogic(const Expr& expr);
  Result<Value> EvalBinary(const Expr& expr);
  Result<Value> EvalConcat(const Expr& expr);
  Result<Value> EvalCompare(const Expr& expr);
  Result<Value> EvalChoice(const Expr& expr);
  Status EvalArguments(const Arguments& arguments, Args& args);
  Value Method(const Value& self, std::string_view name);
  Value LoopAttribute(LoopObject& loop, std::string_view name, bool* found);
  Value NoAttribute(const Value& object, const Value& name);
  Result<Value> Contains(const Value& container, const Value& item);

  const Program& program_;
  const Limits limits_;
  const RenderOptions& options_;
  Heap heap_;
  uint64_t steps_ = 0;
  int line_ = 1, call_depth_ = 0, tree_depth_ = 0;
  bool raised_ = false;
  Scope* root_ = nullptr;
  Scope* scope_ = nullptr;
  std::vector<Value> globals_;  // by symbol: variables of the request and functions
  std::vector<bool> has_global_;
  Text* out_ = nullptr;
};

}  // namespace sluice::jinja
#endif  // SLUICE_SRC_TEXT_JINJA_INTERPRETER_H_
