// Tags, and what all of the parser uses.
#include "src/base/printable.h"
#include "src/text/jinja/builtins.h"
#include "src/text/jinja/parser.h"

namespace sluice::jinja {

namespace {

constexpr int kMaxNesting = 200;

std::string Describe(const Token& token) {
  switch (token.kind) {
    case TokenKind::kText:
      return "text";
    case TokenKind::kOpen:
      return "{{";
    case TokenKind::kClose:
      return "}}";
    case TokenKind::kOpenTag:
      return "{%";
    case TokenKind::kCloseTag:
      return "%}";
    case TokenKind::kString:
      return "a string";
    case TokenKind::kInt:
    case TokenKind::kFloat:
      return "a number";
    case TokenKind::kEnd:
      return "the end of the template";
    default:
      return '"' + Printable(token.text, 40) + '"';
  }
}

std::unique_ptr<Stmt> NewStmt(StmtKind kind, int line) {
  auto stmt = std::make_unique<Stmt>();
  stmt->kind = kind;
  stmt->line = line;
  return stmt;
}

}  // namespace

Status Parser::Nesting::status() const {
  if (parser_.nesting_ <= kMaxNesting) return Status();
  return parser_.Fail("brackets, operators and blocks are nested too deep");
}

Parser::Parser(std::vector<Token> tokens, Program& program)
    : tokens_(std::move(tokens)), program_(program) {
  for (const char* name : {"loop", "caller", "varargs", "kwargs"}) Symbol(name);
}

Status Parser::Fail(const std::string& what) const {
  return ErrorAt(Now().line, StatusCode::kUnsupported, what);
}

Status Parser::Unexpected(const std::string& expected) const {
  return Fail("expected " + expected + ", found " + Describe(Now()));
}

bool Parser::SkipName(std::string_view name) {
  if (!IsName(name)) return false;
  Next();
  return true;
}

bool Parser::SkipOp(std::string_view op) {
  if (!IsOp(op)) return false;
  Next();
  return true;
}

Status Parser::ExpectOp(std::string_view op) {
  return SkipOp(op) ? Status() : Unexpected('"' + std::string(op) + '"');
}

Status Parser::Expect(TokenKind kind, const char* what) {
  if (Now().kind != kind) return Unexpected(what);
  Next();
  return Status();
}

Result<std::string> Parser::ExpectName(const char* what) {
  if (Now().kind != TokenKind::kName) return Unexpected(what);
  std::string name = Now().text;
  Next();
  return name;
}

Status Parser::ParseProgram() {
  ASSIGN_OR_RETURN(program_.body, ParseBody({}));
  if (!unknown_.empty()) {
    return ErrorAt(unknown_.front().first, StatusCode::kUnsupported, unknown_.front().second);
  }
  return Status();
}

Result<Block> Parser::ParseBody(std::initializer_list<std::string_view> ends) {
  const Nesting nesting(*this);
  RETURN_IF_ERROR(nesting.status());
  Block block;
  const int first_line = Now().line;
  while (Now().kind != TokenKind::kEnd) {
    const Token token = Now();
    Next();
    if (token.kind == TokenKind::kText) {
      block.push_back(NewStmt(StmtKind::kText, token.line));
      block.back()->value = Literal(token.text);
    } else if (token.kind == TokenKind::kOpen) {
      block.push_back(NewStmt(StmtKind::kPrint, token.line));
      ASSIGN_OR_RETURN(block.back()->expr, ParseTuple({}));
      RETURN_IF_ERROR(Expect(TokenKind::kClose, "}}"));
    } else {
      for (const std::string_view end : ends) {
        if (IsName(end)) return block;
      }
      RETURN_IF_ERROR(ParseStatement(block));
      RETURN_IF_ERROR(Expect(TokenKind::kCloseTag, "%}"));
    }
  }
  if (ends.size() == 0) return block;
  return ErrorAt(first_line, StatusCode::kUnsupported,
                 "this block has no {% " + std::string(*(ends.end() - 1)) + " %}");
}

Result<Block> Parser::ParseBlock(std::initializer_list<std::string_view> ends) {
  SkipOp(":");
  RETURN_IF_ERROR(Expect(TokenKind::kCloseTag, "%}"));
  return ParseBody(ends);
}

Status Parser::ParseStatement(Block& out) {
  const int line = Now().line;
  ASSIGN_OR_RETURN(const std::string tag, ExpectName("the name of a tag"));
  if (tag == "if") return ParseIf(out);
  if (tag == "for") return ParseFor(out);
  if (tag == "set") return ParseSet(out);
  if (tag == "macro") return ParseMacro(out);
  if (tag == "call") return ParseCallBlock(out);
  if (tag == "filter") return ParseFilterBlock(out);
  if (tag == "with") return ParseWith(out);
  if (tag == "print") return ParsePrint(out);
  if (tag == "generation") return ParseScope(out, StmtKind::kScope, "endgeneration");
  if (tag == "break" || tag == "continue") {
    if (loops_ == 0) return ErrorAt(line, StatusCode::kUnsupported, tag + " outside a loop");
    out.push_back(NewStmt(tag == "break" ? StmtKind::kBreak : StmtKind::kContinue, line));
    return Status();
  }
  if (tag == "autoescape") {
    ASSIGN_OR_RETURN(const ExprPtr on, ParseExpression());
    if (on->kind != ExprKind::kConstant || Truth(on->value)) {
      return ErrorAt(line, StatusCode::kUnsupported,
                     "autoescape is not supported here, templates make prompts, no HTML");
    }
    return ParseScope(out, StmtKind::kScope, "endautoescape");
  }
  if (tag == "block") {
    ASSIGN_OR_RETURN(const std::string name, ExpectName("the name of the block"));
    const bool scoped = SkipName("scoped");
    SkipName("required");
    RETURN_IF_ERROR(ParseScope(out, scoped ? StmtKind::kScope : StmtKind::kBlock, "endblock"));
    SkipName(name);
    return Status();
  }
  if (tag == "include" || tag == "import" || tag == "from" || tag == "extends") {
    return ErrorAt(line, StatusCode::kUnsupported,
                   "{% " + tag + " %} asks for another template; a chat template stands alone");
  }
  return ErrorAt(line, StatusCode::kUnsupported, "unknown tag \"" + Printable(tag, 40) + '"');
}

Status Parser::ParseIf(Block& out) {
  auto stmt = NewStmt(StmtKind::kIf, Now().line);
  const Hold<bool> branch(branch_, true);
  while (true) {
    ASSIGN_OR_RETURN(ExprPtr condition, ParseTuple({.choices = false}));
    stmt->conditions.push_back(std::move(condition));
    ASSIGN_OR_RETURN(Block body, ParseBlock({"elif", "else", "endif"}));
    stmt->bodies.push_back(std::move(body));
    if (SkipName("elif")) continue;
    if (SkipName("else")) {
      ASSIGN_OR_RETURN(Block otherwise, ParseBlock({"endif"}));
      stmt->bodies.push_back(std::move(otherwise));
    }
    Next();  // endif
    out.push_back(std::move(stmt));
    return Status();
  }
}

Status Parser::CheckTarget(const Expr& target) {
  if (target.kind == ExprKind::kTuple) {
    for (const ExprPtr& kid : target.kids) RETURN_IF_ERROR(CheckTarget(*kid));
    return Status();
  }
  if (target.kind == ExprKind::kName || target.kind == ExprKind::kNamespace) return Status();
  return ErrorAt(target.line, StatusCode::kUnsupported,
                 "only names, tuples of names and attributes of a namespace can be set");
}

Result<ExprPtr> Parser::ParseTarget(bool with_namespace, std::string_view end_name) {
  ASSIGN_OR_RETURN(
      ExprPtr target,
      ParseTuple({.targets = true, .namespaces = with_namespace, .end_name = end_name}));
  RETURN_IF_ERROR(CheckTarget(*target));
  return target;
}

Status Parser::ParseFor(Block& out) {
  auto stmt = NewStmt(StmtKind::kFor, Now().line);
  ASSIGN_OR_RETURN(stmt->target, ParseTarget(false, "in"));
  if (!SkipName("in")) return Unexpected("\"in\"");
  ASSIGN_OR_RETURN(stmt->expr, ParseTuple({.choices = false, .end_name = "recursive"}));
  {
    const Hold<bool> branch(branch_, false);
    if (SkipName("if")) {
      ASSIGN_OR_RETURN(stmt->condition, ParseExpression());
    }
    stmt->recursive = SkipName("recursive");
    {
      const Hold<int> loops(loops_, loops_ + 1);
      ASSIGN_OR_RETURN(stmt->body, ParseBlock({"else", "endfor"}));
    }
    if (SkipName("else")) {
      ASSIGN_OR_RETURN(stmt->otherwise, ParseBlock({"endfor"}));
    }
  }
  Next();  // endfor
  out.push_back(std::move(stmt));
  return Status();
}

Status Parser::ParseSet(Block& out) {
  const int line = Now().line;
  ASSIGN_OR_RETURN(ExprPtr target, ParseTarget(true, {}));
  auto stmt = NewStmt(StmtKind::kSet, line);
  stmt->target = std::move(target);
  if (SkipOp("=")) {
    ASSIGN_OR_RETURN(stmt->expr, ParseTuple({}));
  } else {
    stmt->kind = StmtKind::kSetBlock;
    const Hold<bool> branch(branch_, false);
    if (IsOp("|")) {
      ASSIGN_OR_RETURN(stmt->expr, ParseFilters(nullptr, false));
    }
    ASSIGN_OR_RETURN(stmt->body, ParseBlock({"endset"}));
    Next();
  }
  out.push_back(std::move(stmt));
  return Status();
}

Status Parser::ParseSignature(Macro& macro) {
  RETURN_IF_ERROR(ExpectOp("("));
  while (!IsOp(")")) {
    if (!macro.parameters.empty()) RETURN_IF_ERROR(ExpectOp(","));
    if (IsOp(")")) break;
    ASSIGN_OR_RETURN(const std::string name, ExpectName("the name of a parameter"));
    macro.parameters.push_back(Symbol(name));
    macro.names.push_back(Literal(name));
    if (SkipOp("=")) {
      ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
      macro.defaults.push_back(std::move(value));
    } else if (!macro.defaults.empty()) {
      return Fail("a parameter without a default after one with it");
    }
  }
  Next();
  return Status();
}

Status Parser::ParseMacroBody(Macro& macro, std::string_view end) {
  const Hold<bool> branch(branch_, false);
  const Hold<int> loops(loops_, 0);
  macros_.push_back(&macro);
  Result<Block> body = ParseBlock({end});
  macros_.pop_back();
  if (!body.ok()) return body.status();
  macro.body = *std::move(body);
  Next();
  return Status();
}

Status Parser::ParseMacro(Block& out) {
  auto stmt = NewStmt(StmtKind::kMacro, Now().line);
  stmt->macro = std::make_unique<Macro>();
  ASSIGN_OR_RETURN(stmt->macro->name, ExpectName("the name of the macro"));
  stmt->symbol = Symbol(stmt->macro->name);
  RETURN_IF_ERROR(ParseSignature(*stmt->macro));
  RETURN_IF_ERROR(ParseMacroBody(*stmt->macro, "endmacro"));
  out.push_back(std::move(stmt));
  return Status();
}

Status Parser::ParseCallBlock(Block& out) {
  auto stmt = NewStmt(StmtKind::kCallBlock, Now().line);
  stmt->macro = std::make_unique<Macro>();
  stmt->macro->name = "caller";
  if (IsOp("(")) RETURN_IF_ERROR(ParseSignature(*stmt->macro));
  ASSIGN_OR_RETURN(stmt->expr, ParseExpression());
  if (stmt->expr->kind != ExprKind::kCall) return Fail("expected a call of a macro");
  RETURN_IF_ERROR(ParseMacroBody(*stmt->macro, "endcall"));
  out.push_back(std::move(stmt));
  return Status();
}

Status Parser::ParseFilterBlock(Block& out) {
  auto stmt = NewStmt(StmtKind::kFilter, Now().line);
  const Hold<bool> branch(branch_, false);
  ASSIGN_OR_RETURN(stmt->expr, ParseFilters(nullptr, true));
  ASSIGN_OR_RETURN(stmt->body, ParseBlock({"endfilter"}));
  Next();
  out.push_back(std::move(stmt));
  return Status();
}

Status Parser::ParseWith(Block& out) {
  auto stmt = NewStmt(StmtKind::kWith, Now().line);
  while (Now().kind != TokenKind::kCloseTag && Now().kind != TokenKind::kEnd) {
    if (!stmt->targets.empty()) RETURN_IF_ERROR(ExpectOp(","));
    ASSIGN_OR_RETURN(ExprPtr target, ParsePrimary(false));
    RETURN_IF_ERROR(CheckTarget(*target));
    RETURN_IF_ERROR(ExpectOp("="));
    ASSIGN_OR_RETURN(ExprPtr value, ParseExpression());
    stmt->targets.push_back(std::move(target));
    stmt->conditions.push_back(std::move(value));
  }
  const Hold<bool> branch(branch_, false);
  ASSIGN_OR_RETURN(stmt->body, ParseBlock({"endwith"}));
  Next();
  out.push_back(std::move(stmt));
  return Status();
}

Status Parser::ParsePrint(Block& out) {
  while (Now().kind != TokenKind::kCloseTag && Now().kind != TokenKind::kEnd) {
    auto stmt = NewStmt(StmtKind::kPrint, Now().line);
    ASSIGN_OR_RETURN(stmt->expr, ParseExpression());
    out.push_back(std::move(stmt));
    if (Now().kind != TokenKind::kCloseTag) RETURN_IF_ERROR(ExpectOp(","));
  }
  return Status();
}

Status Parser::ParseScope(Block& out, StmtKind kind, std::string_view end) {
  auto stmt = NewStmt(kind, Now().line);
  const Hold<bool> branch(branch_, false);
  ASSIGN_OR_RETURN(stmt->body, ParseBlock({end}));
  Next();
  out.push_back(std::move(stmt));
  return Status();
}

}  // namespace sluice::jinja
