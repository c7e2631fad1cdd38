#include "src/text/grammar/grammar.h"

#include <boost/json/serialize.hpp>
#include <string>

#include "src/text/grammar/automaton.h"
#include "src/text/grammar/gbnf.h"
#include "src/text/grammar/json_schema.h"
#include "src/text/grammar/regex.h"
#include "src/text/grammar/token_mask.h"
#include "src/text/grammar/vocabulary.h"

namespace sluice {
namespace {

class Constraint final : public TokenConstraint {
 public:
  Constraint(std::shared_ptr<const GrammarVocabulary> vocabulary,
             std::shared_ptr<grammar::TokenMasks> masks)
      : vocabulary_(std::move(vocabulary)), masks_(std::move(masks)) {
    masks_->Open(&position_);
  }
  ~Constraint() override { masks_->Close(&position_); }

  std::span<const uint64_t> Allowed() override {
    if (mask_ == nullptr) mask_ = masks_->Allowed(position_);
    return *mask_;
  }
  void Accept(int32_t id) override {
    mask_ = nullptr;
    masks_->Accept(&position_, id);
  }

 private:
  const std::shared_ptr<const GrammarVocabulary> vocabulary_;
  const std::shared_ptr<grammar::TokenMasks> masks_;
  grammar::TokenMasks::Position position_;
  std::shared_ptr<const grammar::Mask> mask_;
};

class CompiledGrammar final : public Grammar {
 public:
  CompiledGrammar(std::string source, std::shared_ptr<const grammar::Automaton> automaton)
      : source_(std::move(source)), automaton_(std::move(automaton)) {}

  std::shared_ptr<TokenConstraint> Start(
      std::shared_ptr<const GrammarVocabulary> vocabulary) const override {
    auto masks = GrammarVocabulary::MasksOf(vocabulary, source_, automaton_);
    return std::make_shared<Constraint>(std::move(vocabulary), std::move(masks));
  }

 private:
  const std::string source_;  // what masks are shared by: its first letter is the kind
  const std::shared_ptr<const grammar::Automaton> automaton_;
};

}  // namespace

std::shared_ptr<const GrammarVocabulary> MakeGrammarVocabulary(const Tokenizer& tokenizer) {
  return std::make_shared<GrammarVocabulary>(tokenizer);
}

Result<std::shared_ptr<const Grammar>> Grammar::FromGbnf(std::string_view source) {
  ASSIGN_OR_RETURN(auto automaton, grammar::CompileGbnf(source));
  return std::shared_ptr<const Grammar>(
      std::make_shared<CompiledGrammar>("g" + std::string(source), std::move(automaton)));
}

Result<std::shared_ptr<const Grammar>> Grammar::FromJsonSchema(const boost::json::value& schema) {
  ASSIGN_OR_RETURN(auto automaton, grammar::CompileJsonSchema(schema));
  return std::shared_ptr<const Grammar>(std::make_shared<CompiledGrammar>(
      "s" + boost::json::serialize(schema), std::move(automaton)));
}

Result<std::shared_ptr<const Grammar>> Grammar::FromRegex(std::string_view pattern) {
  ASSIGN_OR_RETURN(auto automaton, grammar::CompileRegex(pattern));
  return std::shared_ptr<const Grammar>(
      std::make_shared<CompiledGrammar>("r" + std::string(pattern), std::move(automaton)));
}

std::shared_ptr<const Grammar> Grammar::JsonObject() {
  static const std::shared_ptr<const Grammar> kObject =
      std::make_shared<CompiledGrammar>("o", grammar::CompileJsonObject());
  return kObject;
}

}  // namespace sluice
