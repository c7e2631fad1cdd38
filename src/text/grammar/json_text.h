// The pieces that JSON is made of, as expressions: strings, numbers, lists,
// any value. White space stands only between tokens and is bounded, so that a
// model cannot go on with blanks for ever. Used by json_schema.cc.
#ifndef SLUICE_SRC_TEXT_GRAMMAR_JSON_TEXT_H_
#define SLUICE_SRC_TEXT_GRAMMAR_JSON_TEXT_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/text/grammar/expressions.h"

namespace sluice::grammar {

class JsonText {
 public:
  using Id = Expressions::Id;
  explicit JsonText(Expressions& expressions) : e_(expressions) {}

  Id Space() { return Shared(space_, "space", &JsonText::MakeSpace); }
  Id AnyValue() { return Shared(value_, "value", &JsonText::MakeValue); }
  Id AnyObject() { return Shared(object_, "object", &JsonText::MakeObject); }
  Id AnyArray() { return Shared(array_, "array", &JsonText::MakeArray); }
  Id AnyString() { return Shared(string_, "string", &JsonText::MakeString); }
  Id Number() { return Shared(number_, "number", &JsonText::MakeNumber); }
  Id Integer() { return Shared(integer_, "integer", &JsonText::MakeInteger); }
  Id Boolean() { return e_.Choice({e_.Literal("true"), e_.Literal("false")}); }
  Id Null() { return e_.Literal("null"); }

  Id Character();  // one character of a string, written out or escaped
  // One of the characters of `ranges`, written the shortest way.
  Id CharacterOf(const std::vector<CodeRange>& ranges);
  Id String(uint32_t min, uint32_t max);  // by its number of characters
  Id Quoted(Id inside) { return e_.Sequence({e_.Literal("\""), inside, e_.Literal("\"")}); }
  // A string that is none of `names`; its characters are not escaped.
  Id KeyNoneOf(const std::vector<std::string_view>& names);
  Id Member(Id key, Id value);
  Id Comma();  // and the space after it
  Id Braces(Id members, bool may_be_empty);
  Id Brackets(Id items, bool may_be_empty);
  // items between commas, at least one
  Id List(Id item, Id same_item, uint32_t min, uint32_t max);

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  Id Shared(uint32_t& rule, const char* name, void (JsonText::*make)(uint32_t rule));
  Id Enclosed(const char* open, Id inside, const char* close, bool may_be_empty);
  Id Digits(uint32_t min, uint32_t max) { return e_.Repeat(e_.Class({{'0', '9'}}), min, max); }
  Id Hex(uint32_t digits);
  Id IntegerText();
  void MakeSpace(uint32_t rule);
  void MakeValue(uint32_t rule);
  void MakeObject(uint32_t rule);
  void MakeArray(uint32_t rule);
  void MakeString(uint32_t rule);
  void MakeNumber(uint32_t rule);
  void MakeInteger(uint32_t rule);

  Expressions& e_;
  uint32_t space_ = kNone, value_ = kNone, object_ = kNone, array_ = kNone, string_ = kNone,
           number_ = kNone, integer_ = kNone;
};

}  // namespace sluice::grammar
#endif  // SLUICE_SRC_TEXT_GRAMMAR_JSON_TEXT_H_
