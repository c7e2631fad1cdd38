// Syntax of a template: from its tokens to the tree of ast.h.
#ifndef SLUICE_SRC_TEXT_JINJA_PARSER_H_
#define SLUICE_SRC_TEXT_JINJA_PARSER_H_

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/text/jinja/ast.h"
#include "src/text/jinja/lexer.h"

namespace sluice::jinja {

class Parser {
 public:
  Parser(std::vector<Token> tokens, Program& program);
  Status ParseProgram();

 private:
  // Statements: parser_statements.cc.
  Result<Block> ParseBody(
      std::initializer_list<std::string_view> ends);  // stops before the end's name
  Result<Block> ParseBlock(std::initializer_list<std::string_view> ends);  // from the tag's end on
  Status ParseStatement(Block& out);
  Status ParseIf(Block& out);
  Status ParseFor(Block& out);
  Status ParseSet(Block& out);
  Status ParseMacro(Block& out);
  Status ParseCallBlock(Block& out);
  Status ParseFilterBlock(Block& out);
  Status ParseWith(Block& out);
  Status ParsePrint(Block& out);
  Status ParseScope(Block& out, StmtKind kind, std::string_view end);
  Status ParseSignature(Macro& macro);
  Status ParseMacroBody(Macro& macro, std::string_view end);
  Result<ExprPtr> ParseTarget(bool with_namespace, std::string_view end_name);
  Status CheckTarget(const Expr& target);

  // Expressions: parser_expressions.cc.
  struct TupleOptions {
    bool targets = false, namespaces = false, choices = true, parenthesised = false;
    std::string_view end_name = {};
  };
  Result<ExprPtr> ParseTuple(const TupleOptions& options);
  Result<ExprPtr> ParseExpression();
  Result<ExprPtr> ParseOr();
  Result<ExprPtr> ParseAnd();
  Result<ExprPtr> ParseNot();
  Result<ExprPtr> ParseCompare();
  // Operators of one strength, strongest last: + - | ~ | * / // % | **.
  Result<ExprPtr> ParseBinary(int level);
  Result<ExprPtr> ParseUnary(bool with_filters);
  Result<ExprPtr> ParsePrimary(bool namespaces);
  Result<ExprPtr> ParseListOrDict(bool dict);
  Result<ExprPtr> ParsePostfix(ExprPtr expr);
  Result<ExprPtr> ParseSubscript(ExprPtr expr);
  Result<ExprPtr> ParseSubscribed();
  Result<ExprPtr> ParseCall(ExprPtr expr);
  Result<ExprPtr> ParseFiltersAndTests(ExprPtr expr);
  Result<ExprPtr> ParseFilters(ExprPtr expr, bool inline_start);
  Result<ExprPtr> ParseTest(ExprPtr expr);
  Status ParseArguments(Arguments& arguments);
  Result<std::string> ParseDottedName();

  // A node of a checked depth.
  Result<ExprPtr> Make(ExprKind kind, int line, std::vector<ExprPtr> kids = {});
  Value Literal(std::string_view text);
  int Symbol(const std::string& name);
  void Use(std::string_view name);  // macros around it want to know

  const Token& Now() const { return tokens_[at_]; }
  const Token& Ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  void Next() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool IsName(std::string_view name) const {
    return Now().kind == TokenKind::kName && Now().text == name;
  }
  bool IsOp(std::string_view op) const {
    return Now().kind == TokenKind::kOperator && Now().text == op;
  }
  bool SkipName(std::string_view name);
  bool SkipOp(std::string_view op);
  Status ExpectOp(std::string_view op);
  Status Expect(TokenKind kind, const char* what);
  Result<std::string> ExpectName(const char* what);
  Status Fail(const std::string& what) const;
  Status Unexpected(const std::string& expected) const;

  // How deep brackets and blocks may stand in each other.
  class Nesting {
   public:
    explicit Nesting(Parser& parser) : parser_(parser) { ++parser_.nesting_; }
    ~Nesting() { --parser_.nesting_; }
    Status status() const;

   private:
    Parser& parser_;
  };
  // Keeps a member's value for the time of a scope.
  template <class T>
  class Hold {
   public:
    Hold(T& member, T value) : member_(member), before_(member) { member_ = value; }
    ~Hold() { member_ = before_; }

   private:
    T& member_;
    T before_;
  };

  std::vector<Token> tokens_;
  size_t at_ = 0;
  Program& program_;
  int nesting_ = 0;
  int loops_ = 0;  // that break and continue could mean
  // Filters and tests that are not known are an error of the whole template, but for those in a
  // branch that may never run: they fail when it does.
  bool branch_ = false;
  std::vector<std::pair<int, std::string>> unknown_;
  std::vector<Macro*> macros_;  // around the current place
};

}  // namespace sluice::jinja
#endif  // SLUICE_SRC_TEXT_JINJA_PARSER_H_
