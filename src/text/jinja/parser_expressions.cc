// From the loosest to the tightest: choice, or, and, not, comparisons, + -, ~,
// * / // %, **, sign, filters and tests, postfix, primary. One difference to
// Python is Jinja's own: ** binds from the left, and no tighter than a sign.
#include <algorithm>

#include "src/base/printable.h"
#include "src/text/jinja/builtins.h"
#include "src/text/jinja/parser.h"

namespace sluice::jinja {

namespace {

constexpr int kMaxTreeDepth = 300;

bool IsConstantName(std::string_view name) {
  return name == "true" || name == "True" || name == "false" || name == "False" || name == "none" ||
         name == "None";
}

}  // namespace

Result<ExprPtr> Parser::Make(ExprKind kind, int line, std::vector<ExprPtr> kids) {
  auto expr = std::make_unique<Expr>();
  expr->kind = kind;
  expr->line = line;
  for (const ExprPtr& kid : kids) {
    if (kid != nullptr) expr->depth = std::max(expr->depth, kid->depth + 1);
  }
  expr->kids = std::move(kids);
  if (expr->depth > kMaxTreeDepth) return Fail("an expression has too many parts in each other");
  return expr;
}

Value Parser::Literal(std::string_view text) {
  auto object = std::make_unique<TextObject>();
  object->text = Text(text);
  const Value value = Value::Of(Kind::kText, object.get());
  program_.literals.push_back(std::move(object));
  return value;
}

int Parser::Symbol(const std::string& name) {
  const auto [at, fresh] =
      program_.symbol_of.try_emplace(name, static_cast<int>(program_.symbols.size()));
  if (fresh) program_.symbols.push_back(name);
  return at->second;
}

void Parser::Use(std::string_view name) {
  for (Macro* macro : macros_) {
    macro->uses_varargs |= name == "varargs";
    macro->uses_kwargs |= name == "kwargs";
    macro->uses_caller |= name == "caller";
  }
}

Result<ExprPtr> Parser::ParseTuple(const TupleOptions& options) {
  const int line = Now().line;
  std::vector<ExprPtr> items;
  bool tuple = false;
  while (true) {
    if (!items.empty()) RETURN_IF_ERROR(ExpectOp(","));
    const TokenKind kind = Now().kind;
    if (kind == TokenKind::kClose || kind == TokenKind::kCloseTag || IsOp(")") ||
        (!options.end_name.empty() && IsName(options.end_name))) {
      break;
    }
    ASSIGN_OR_RETURN(ExprPtr item, options.targets   ? ParsePrimary(options.namespaces)
                                   : options.choices ? ParseExpression()
                                                     : ParseOr());
    items.push_back(std::move(item));
    if (!IsOp(",")) break;
    tuple = true;
  }
  if (!tuple && !items.empty()) return std::move(items.front());
  if (!tuple && !options.parenthesised) return Unexpected("an expression");
  return Make(ExprKind::kTuple, line, std::move(items));
}

Result<ExprPtr> Parser::ParseExpression() {
  const Nesting nesting(*this);
  RETURN_IF_ERROR(nesting.status());
  int line = Now().line;
  const size_t known = unknown_.size();
  ASSIGN_OR_RETURN(ExprPtr expr, ParseOr());
  while (SkipName("if")) {
    ASSIGN_OR_RETURN(ExprPtr condition, ParseOr());
    ExprPtr otherwise;
    if (SkipName("else")) {
      ASSIGN_OR_RETURN(otherwise, ParseExpression());
    }
    std::vector<ExprPtr> kids;
    kids.push_back(std::move(condition));
    kids.push_back(std::move(expr));
    kids.push_back(std::move(otherwise));
    ASSIGN_OR_RETURN(expr, Make(ExprKind::kChoice, line, std::move(kids)));
    unknown_.resize(known);
    line = Now().line;
  }
  return expr;
}

Result<ExprPtr> Parser::ParseOr() {
  int line = Now().line;
  ASSIGN_OR_RETURN(ExprPtr left, ParseAnd());
  while (SkipName("or")) {
    std::vector<ExprPtr> kids;
    kids.push_back(std::move(left));
    ASSIGN_OR_RETURN(ExprPtr right, ParseAnd());
    kids.push_back(std::move(right));
    ASSIGN_OR_RETURN(left, Make(ExprKind::kOr, line, std::move(kids)));
    line = Now().line;
  }
  return left;
}

Result<ExprPtr> Parser::ParseAnd() {
  int line = Now().line;
  ASSIGN_OR_RETURN(ExprPtr left, ParseNot());
  while (SkipName("and")) {
    std::vector<ExprPtr> kids;
    kids.push_back(std::move(left));
    ASSIGN_OR_RETURN(ExprPtr right, ParseNot());
    kids.push_back(std::move(right));
    ASSIGN_OR_RETURN(left, Make(ExprKind::kAnd, line, std::move(kids)));
    line = Now().line;
  }
  return left;
}

Result<ExprPtr> Parser::ParseNot() {
  if (!IsName("not")) return ParseCompare();
  const Nesting nesting(*this);
  RETURN_IF_ERROR(nesting.status());
  const int line = Now().line;
  Next();
  std::vector<ExprPtr> kids;
  ASSIGN_OR_RETURN(ExprPtr operand, ParseNot());
  kids.push_back(std::move(operand));
  return Make(ExprKind::kNot, line, std::move(kids));
}

Result<ExprPtr> Parser::ParseCompare() {
  constexpr std::pair<std::string_view, Operator> kOperators[] = {
      {"==", Operator::kEqual},     {"!=", Operator::kUnequal}, {"<", Operator::kLess},
      {"<=", Operator::kLessEqual}, {">", Operator::kGreater},  {">=", Operator::kGreaterEqual}};
  const int line = Now().line;
  std::vector<ExprPtr> kids;
  std::vector<Operator> operators;
  ASSIGN_OR_RETURN(ExprPtr first, ParseBinary(0));
  kids.push_back(std::move(first));
  while (true) {
    const auto* op = std::find_if(std::begin(kOperators), std::end(kOperators),
                                  [&](const auto& o) { return IsOp(o.first); });
    if (op != std::end(kOperators)) {
      operators.push_back(op->second);
      Next();
    } else if (SkipName("in")) {
      operators.push_back(Operator::kIn);
    } else if (IsName("not") && Ahead().kind == TokenKind::kName && Ahead().text == "in") {
      operators.push_back(Operator::kNotIn);
      Next();
      Next();
    } else {
      break;
    }
    ASSIGN_OR_RETURN(ExprPtr next, ParseBinary(0));
    kids.push_back(std::move(next));
  }
  if (operators.empty()) return std::move(kids.front());
  ASSIGN_OR_RETURN(ExprPtr compare, Make(ExprKind::kCompare, line, std::move(kids)));
  compare->operators = std::move(operators);
  return compare;
}

Result<ExprPtr> Parser::ParseBinary(int level) {
  struct Entry {
    int level;
    std::string_view text;
    Operator op;
  };
  constexpr Entry kOperators[] = {{0, "+", Operator::kAdd},          {0, "-", Operator::kSubtract},
                                  {2, "*", Operator::kMultiply},     {2, "/", Operator::kDivide},
                                  {2, "//", Operator::kFloorDivide}, {2, "%", Operator::kModulo},
                                  {3, "**", Operator::kPower}};
  if (level == 4) return ParseUnary(true);
  int line = Now().line;
  ASSIGN_OR_RETURN(ExprPtr left, ParseBinary(level + 1));
  if (level == 1) {
    if (!IsOp("~")) return left;
    std::vector<ExprPtr> kids;
    kids.push_back(std::move(left));
    while (SkipOp("~")) {
      ASSIGN_OR_RETURN(ExprPtr next, ParseBinary(2));
      kids.push_back(std::move(next));
    }
    return Make(ExprKind::kConcat, line, std::move(kids));
  }
  while (true) {
    const Entry* op =
        std::find_if(std::begin(kOperators), std::end(kOperators),
                     [&](const Entry& e) { return e.level == level && IsOp(e.text); });
    if (op == std::end(kOperators)) return left;
    Next();
    std::vector<ExprPtr> kids;
    kids.push_back(std::move(left));
    ASSIGN_OR_RETURN(ExprPtr right, ParseBinary(level + 1));
    kids.push_back(std::move(right));
    ASSIGN_OR_RETURN(left, Make(ExprKind::kBinary, line, std::move(kids)));
    left->operators.push_back(op->op);
    line = Now().line;
  }
}

Result<ExprPtr> Parser::ParseUnary(bool with_filters) {
  const Nesting nesting(*this);
  RETURN_IF_ERROR(nesting.status());
  const int line = Now().line;
  ExprPtr expr;
  if (IsOp("-") || IsOp("+")) {
    const ExprKind kind = IsOp("-") ? ExprKind::kNegative : ExprKind::kPositive;
    Next();
    std::vector<ExprPtr> kids;
    ASSIGN_OR_RETURN(ExprPtr operand, ParseUnary(false));
    kids.push_back(std::move(operand));
    ASSIGN_OR_RETURN(expr, Make(kind, line, std::move(kids)));
  } else {
    ASSIGN_OR_RETURN(expr, ParsePrimary(false));
  }
  ASSIGN_OR_RETURN(expr, ParsePostfix(std::move(expr)));
  if (!with_filters) return expr;
  return ParseFiltersAndTests(std::move(expr));
}

Result<ExprPtr> Parser::ParsePrimary(bool namespaces) {
  const Token token = Now();
  switch (token.kind) {
    case TokenKind::kName: {
      Next();
      if (IsConstantName(token.text)) {
        ASSIGN_OR_RETURN(ExprPtr expr, Make(ExprKind::kConstant, token.line));
        expr->value = (token.text[0] | 0x20) == 'n' ? Value::None()
                                                    : Value::Of((token.text[0] | 0x20) == 't');
        return expr;
      }
      const bool attribute = namespaces && SkipOp(".");
      ASSIGN_OR_RETURN(ExprPtr expr,
                       Make(attribute ? ExprKind::kNamespace : ExprKind::kName, token.line));
      expr->symbol = Symbol(token.text);
      if (attribute) {
        ASSIGN_OR_RETURN(expr->text, ExpectName("an attribute of the namespace"));
        expr->name = Literal(expr->text);
      } else {
        Use(token.text);
      }
      return expr;
    }
    case TokenKind::kString: {
      std::string text;
      for (; Now().kind == TokenKind::kString; Next()) text += Now().text;
      ASSIGN_OR_RETURN(ExprPtr expr, Make(ExprKind::kConstant, token.line));
      expr->value = Literal(text);
      return expr;
    }
    case TokenKind::kInt:
    case TokenKind::kFloat: {
      Next();
      ASSIGN_OR_RETURN(ExprPtr expr, Make(ExprKind::kConstant, token.line));
      expr->value =
          token.kind == TokenKind::kInt ? Value::Of(token.integer) : Value::Of(token.number);
      return expr;
    }
    default:
      break;
  }
  if (SkipOp("(")) {
    ASSIGN_OR_RETURN(ExprPtr expr, ParseTuple({.parenthesised = true}));
    RETURN_IF_ERROR(ExpectOp(")"));
    return expr;
  }
  if (IsOp("[")) return ParseListOrDict(false);
  if (IsOp("{")) return ParseListOrDict(true);
  return Unexpected("an expression");
}

Result<ExprPtr> Parser::ParseListOrDict(bool dict) {
  const int line = Now().line;
  const std::string_view end = dict ? "}" : "]";
  Next();
  std::vector<ExprPtr> kids;
  while (!IsOp(end)) {
    if (!kids.empty()) RETURN_IF_ERROR(ExpectOp(","));
    if (IsOp(end)) break;
    ASSIGN_OR_RETURN(ExprPtr item, ParseExpression());
    kids.push_back(std::move(item));
    if (!dict) continue;
    RETURN_IF_ERROR(ExpectOp(":"));
    ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
    kids.push_back(std::move(value));
  }
  Next();
  return Make(dict ? ExprKind::kDict : ExprKind::kList, line, std::move(kids));
}

Result<ExprPtr> Parser::ParsePostfix(ExprPtr expr) {
  while (true) {
    if (IsOp(".") || IsOp("[")) {
      ASSIGN_OR_RETURN(expr, ParseSubscript(std::move(expr)));
    } else if (IsOp("(")) {
      ASSIGN_OR_RETURN(expr, ParseCall(std::move(expr)));
    } else {
      return expr;
    }
  }
}

Result<ExprPtr> Parser::ParseSubscript(ExprPtr expr) {
  const int line = Now().line;
  std::vector<ExprPtr> kids;
  kids.push_back(std::move(expr));
  if (SkipOp(".")) {
    const Token token = Now();
    if (token.kind == TokenKind::kName) {
      Next();
      ASSIGN_OR_RETURN(ExprPtr attribute, Make(ExprKind::kAttribute, line, std::move(kids)));
      attribute->text = token.text;
      attribute->name = Literal(token.text);
      return attribute;
    }
    if (token.kind != TokenKind::kInt) return Unexpected("a name or a number after the dot");
    Next();
    ASSIGN_OR_RETURN(ExprPtr index, Make(ExprKind::kConstant, line));
    index->value = Value::Of(token.integer);
    kids.push_back(std::move(index));
    return Make(ExprKind::kItem, line, std::move(kids));
  }
  Next();
  std::vector<ExprPtr> items;
  while (!IsOp("]")) {
    if (!items.empty()) RETURN_IF_ERROR(ExpectOp(","));
    ASSIGN_OR_RETURN(ExprPtr item, ParseSubscribed());
    items.push_back(std::move(item));
  }
  Next();
  if (items.size() == 1) {
    kids.push_back(std::move(items.front()));
  } else {
    ASSIGN_OR_RETURN(ExprPtr tuple, Make(ExprKind::kTuple, line, std::move(items)));
    kids.push_back(std::move(tuple));
  }
  return Make(ExprKind::kItem, line, std::move(kids));
}

Result<ExprPtr> Parser::ParseSubscribed() {
  const int line = Now().line;
  std::vector<ExprPtr> parts(3);
  if (!IsOp(":")) {
    ASSIGN_OR_RETURN(parts[0], ParseExpression());
    if (!IsOp(":")) return std::move(parts[0]);
  }
  Next();
  const auto ends = [&] { return IsOp(":") || IsOp("]") || IsOp(","); };
  if (!ends()) {
    ASSIGN_OR_RETURN(parts[1], ParseExpression());
  }
  if (SkipOp(":") && !IsOp("]") && !IsOp(",")) {
    ASSIGN_OR_RETURN(parts[2], ParseExpression());
  }
  return Make(ExprKind::kSlice, line, std::move(parts));
}

Status Parser::ParseArguments(Arguments& arguments) {
  RETURN_IF_ERROR(ExpectOp("("));
  for (bool first = true; !IsOp(")"); first = false) {
    if (!first) {
      RETURN_IF_ERROR(ExpectOp(","));
      if (IsOp(")")) break;
    }
    if (SkipOp("*")) {
      if (arguments.star || arguments.double_star) return Fail("a second * in a call");
      ASSIGN_OR_RETURN(arguments.star, ParseExpression());
    } else if (SkipOp("**")) {
      if (arguments.double_star) return Fail("a second ** in a call");
      ASSIGN_OR_RETURN(arguments.double_star, ParseExpression());
    } else if (Now().kind == TokenKind::kName && Ahead().kind == TokenKind::kOperator &&
               Ahead().text == "=") {
      if (arguments.double_star) return Fail("an argument after **");
      const Value name = Literal(Now().text);
      for (const auto& [other, value] : arguments.named) {
        if (Equal(other, name)) return Fail("the argument " + Now().text + " twice");
      }
      Next();
      Next();
      ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
      arguments.named.emplace_back(name, std::move(value));
    } else {
      if (arguments.star || arguments.double_star || !arguments.named.empty()) {
        return Fail("an argument by position after named ones");
      }
      ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
      arguments.values.push_back(std::move(value));
    }
  }
  return ExpectOp(")");
}

Result<ExprPtr> Parser::ParseCall(ExprPtr expr) {
  std::vector<ExprPtr> kids;
  kids.push_back(std::move(expr));
  ASSIGN_OR_RETURN(ExprPtr call, Make(ExprKind::kCall, Now().line, std::move(kids)));
  RETURN_IF_ERROR(ParseArguments(call->arguments));
  return call;
}

Result<ExprPtr> Parser::ParseFiltersAndTests(ExprPtr expr) {
  while (true) {
    if (IsOp("|")) {
      ASSIGN_OR_RETURN(expr, ParseFilters(std::move(expr), false));
    } else if (IsName("is")) {
      ASSIGN_OR_RETURN(expr, ParseTest(std::move(expr)));
    } else if (IsOp("(")) {
      ASSIGN_OR_RETURN(expr, ParseCall(std::move(expr)));
    } else {
      return expr;
    }
  }
}

Result<std::string> Parser::ParseDottedName() {
  ASSIGN_OR_RETURN(std::string name, ExpectName("the name of a filter or test"));
  while (SkipOp(".")) {
    ASSIGN_OR_RETURN(const std::string more, ExpectName("a name after the dot"));
    name += "." + more;
  }
  return name;
}

Result<ExprPtr> Parser::ParseFilters(ExprPtr expr, bool inline_start) {
  while (inline_start || IsOp("|")) {
    if (!inline_start) Next();
    inline_start = false;
    const int line = Now().line;
    std::vector<ExprPtr> kids;
    kids.push_back(std::move(expr));
    ASSIGN_OR_RETURN(expr, Make(ExprKind::kFilter, line, std::move(kids)));
    ASSIGN_OR_RETURN(expr->text, ParseDottedName());
    expr->builtin = FindFilter(expr->text);
    if (expr->builtin == nullptr && !branch_) {
      unknown_.emplace_back(line, "there is no filter \"" + Printable(expr->text, 40) + '"');
    }
    if (IsOp("(")) RETURN_IF_ERROR(ParseArguments(expr->arguments));
  }
  return expr;
}

Result<ExprPtr> Parser::ParseTest(ExprPtr expr) {
  const int line = Now().line;
  Next();
  const bool negated = SkipName("not");
  std::vector<ExprPtr> kids;
  kids.push_back(std::move(expr));
  ASSIGN_OR_RETURN(ExprPtr test, Make(ExprKind::kTest, line, std::move(kids)));
  ASSIGN_OR_RETURN(test->text, ParseDottedName());
  test->builtin = FindTest(test->text);
  if (test->builtin == nullptr && !branch_) {
    unknown_.emplace_back(line, "there is no test \"" + Printable(test->text, 40) + '"');
  }
  const TokenKind kind = Now().kind;
  if (IsOp("(")) {
    RETURN_IF_ERROR(ParseArguments(test->arguments));
  } else if ((kind == TokenKind::kName && !IsName("else") && !IsName("or") && !IsName("and")) ||
             kind == TokenKind::kString || kind == TokenKind::kInt || kind == TokenKind::kFloat ||
             IsOp("[") || IsOp("{")) {
    if (IsName("is")) return Fail("tests cannot be chained with is");
    ASSIGN_OR_RETURN(ExprPtr argument, ParsePrimary(false));
    ASSIGN_OR_RETURN(argument, ParsePostfix(std::move(argument)));
    test->arguments.values.push_back(std::move(argument));
  }
  if (!negated) return test;
  std::vector<ExprPtr> operand;
  operand.push_back(std::move(test));
  return Make(ExprKind::kNot, line, std::move(operand));
}

}  // namespace sluice::jinja
