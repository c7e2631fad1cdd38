// Languages that an answer can be held to: GBNF grammars as llama.cpp writes
// them, JSON schemas, any JSON, regular expressions. Compiled once per request
// (bounded in size, depth and time: the text comes from a client), then one
// TokenConstraint per sequence. Immutable, any thread.
#ifndef SLUICE_SRC_TEXT_GRAMMAR_GRAMMAR_H_
#define SLUICE_SRC_TEXT_GRAMMAR_GRAMMAR_H_

#include <boost/json/value.hpp>
#include <memory>
#include <string_view>

#include "src/base/status.h"
#include "src/text/grammar/token_constraint.h"
#include "src/text/tokenizer.h"

namespace sluice {

class GrammarVocabulary;  // the pieces of a vocabulary as a trie; one per tokenizer

// The tokenizer must outlive it.
std::shared_ptr<const GrammarVocabulary> MakeGrammarVocabulary(const Tokenizer& tokenizer);

class Grammar {
 public:
  virtual ~Grammar() = default;

  // kInvalidArgument: what is wrong and where; limits count as that.
  static Result<std::shared_ptr<const Grammar>> FromGbnf(std::string_view source);
  // Keywords that cannot be kept are refused by name, those that only describe are ignored.
  static Result<std::shared_ptr<const Grammar>> FromJsonSchema(const boost::json::value& schema);
  // A text that matches as a whole; see regex.h.
  static Result<std::shared_ptr<const Grammar>> FromRegex(std::string_view pattern);
  // Any JSON object ("json mode").
  static std::shared_ptr<const Grammar> JsonObject();

  // A constraint at its start. Masks of grammar states are kept in a bounded cache that all
  // sequences of one (grammar, vocabulary) share.
  virtual std::shared_ptr<TokenConstraint> Start(
      std::shared_ptr<const GrammarVocabulary> vocabulary) const = 0;
};

}  // namespace sluice
#endif  // SLUICE_SRC_TEXT_GRAMMAR_GRAMMAR_H_
