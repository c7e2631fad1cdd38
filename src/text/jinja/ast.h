// The syntax tree of a template. One struct for all expressions and one for
// all statements: `kind` says which members mean something. Immutable.
#ifndef SLUICE_SRC_TEXT_JINJA_AST_H_
#define SLUICE_SRC_TEXT_JINJA_AST_H_

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/text/jinja/value.h"

namespace sluice::jinja {

class Interpreter;
struct Args;
// A filter or method of `self`, a test of it, or a function, which has no self.
using Builtin = Result<Value> (*)(Interpreter&, const Value& self, Args& args);

enum class ExprKind : uint8_t {
  kConstant,   // value
  kName,       // symbol
  kTuple,      // kids
  kList,       // kids
  kDict,       // kids: key, value, key, value ...
  kAttribute,  // kids[0], text
  kItem,       // kids[0], kids[1]
  kSlice,      // kids[0..2], null where left out; only as kids[1] of kItem
  kCall,       // kids[0], arguments
  kFilter,     // kids[0] (null: the body of a block), text, builtin, arguments
  kTest,       // kids[0], text, builtin, arguments
  kNot,        // kids[0]
  kNegative,   // kids[0]
  kPositive,   // kids[0]
  kAnd,        // kids[0], kids[1]
  kOr,         // kids[0], kids[1]
  kBinary,     // kids[0], kids[1], operators[0]
  kConcat,     // kids
  kCompare,    // kids[0] operators[0] kids[1] operators[1] ...
  kChoice,     // kids: condition, then, else (may be null)
  kNamespace,  // a target: symbol, text
};

enum class Operator : uint8_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,  // clang-format off
  kEqual, kUnequal, kLess, kLessEqual, kGreater, kGreaterEqual, kIn, kNotIn,  // clang-format on
};

struct Expr;
using ExprPtr = std::unique_ptr<Expr>;

struct Arguments {
  std::vector<ExprPtr> values;
  std::vector<std::pair<Value, ExprPtr>> named;
  ExprPtr star, double_star;  // f(*star, **double_star)
};

struct Expr {
  ExprKind kind = ExprKind::kConstant;
  int line = 0;
  int depth = 1;  // of the tree
  int symbol = 0;
  bool parenthesised = false;
  Value value;
  std::string text;
  Value name;  // `text` as a value
  Builtin builtin = nullptr;
  std::vector<ExprPtr> kids;
  std::vector<Operator> operators;
  Arguments arguments;
};

enum class StmtKind : uint8_t {
  kText,       // value
  kPrint,      // expr
  kIf,         // conditions, bodies; one body more with an else
  kFor,        // target, expr, condition (if not null), body, otherwise
  kSet,        // target, expr
  kSetBlock,   // target, expr (filters or null), body
  kMacro,      // symbol, macro
  kCallBlock,  // expr, macro
  kFilter,     // expr, body
  kWith,       // targets, conditions: their values, body
  kScope,      // body, in a scope of its own
  kBlock,      // body, which sees the outermost variables only
  kBreak,
  kContinue,
};

struct Stmt;
using Block = std::vector<std::unique_ptr<Stmt>>;

struct Macro {
  std::string name;
  std::vector<int> parameters;    // symbols
  std::vector<Value> names;       // the same as texts
  std::vector<ExprPtr> defaults;  // of the last parameters
  bool uses_varargs = false, uses_kwargs = false, uses_caller = false;
  Block body;
};

struct Stmt {
  StmtKind kind = StmtKind::kText;
  int line = 0;
  int symbol = 0;
  bool recursive = false;
  Value value;
  ExprPtr target, expr, condition;
  std::vector<ExprPtr> targets, conditions;
  std::vector<Block> bodies;
  Block body, otherwise;
  std::unique_ptr<Macro> macro;
};

// Symbols that the interpreter itself asks for.
enum KnownSymbol : int { kSymbolLoop, kSymbolCaller, kSymbolVarargs, kSymbolKwargs };

struct Program {
  Block body;
  std::vector<std::string> symbols;
  std::unordered_map<std::string, int> symbol_of;
  std::vector<std::unique_ptr<Object>> literals;
};

}  // namespace sluice::jinja
#endif  // SLUICE_SRC_TEXT_JINJA_AST_H_
