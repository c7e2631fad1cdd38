// JSON schemas as grammars: every keyword with texts that fit and texts that do
// not, what is refused by name, and random walks, each of which must end as
// JSON that holds the schema.
#include <boost/json.hpp>
#include <random>

#include "src/text/grammar/grammar.h"
#include "tests/text/grammar_vocabulary.h"
#include "tests/text/schema_checker.h"

namespace sluice {
namespace {

boost::json::value Json(std::string_view text) { return boost::json::parse(text); }

std::shared_ptr<const Grammar> FromSchema(std::string_view schema) {
  const auto grammar = Grammar::FromJsonSchema(Json(schema));
  EXPECT_TRUE(grammar.ok()) << schema << ": " << grammar.status().message();
  return grammar.ok() ? *grammar : MustParse("root ::= \"no grammar\"");
}

struct Case {
  const char* schema;
  std::vector<const char*> right, wrong;
};

// What is right must fit and hold the schema by the checker too. What is wrong must not fit; it
// need not break the schema (an order of properties is not a rule of schemas).
void ExpectCases(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const auto grammar = FromSchema(c.schema);
    const boost::json::value schema = Json(c.schema);
    for (const char* text : c.right) {
      EXPECT_TRUE(Bytes::Get().Matches(*grammar, text)) << c.schema << "\nright: " << text;
      EXPECT_TRUE(SchemaChecker(schema).Holds(Json(text))) << c.schema << "\nright: " << text;
    }
    for (const char* text : c.wrong) {
      EXPECT_FALSE(Bytes::Get().Matches(*grammar, text)) << c.schema << "\nwrong: " << text;
    }
  }
}

TEST(JsonSchema, AnyValue) {
  for (const char* schema : {"{}", "true", R"({"title":"x","default":3,"examples":[1]})"}) {
    ExpectCases({{schema,
                  {"null", "true", "-0.5e+10", "\"\"", "[]", "{}", "[1, [2,{}]]",
                   R"({"a": {"b":[null]},"c":"\u00e9\n\ud83d\ude00é"})", "{\n  \"a\": 1\n}"},
                  {"", "nul", "01", "1.", ".5", "+1", "1e", "\"\n\"", "\"\\x\"", "[1,]", "{a:1}",
                   "{\"a\"}", "\"\\ud83d\"", "\"\\ude00\"", "1 ", " 1", "[\n\n1]", "[  1]"}}});
  }
}

TEST(JsonSchema, Types) {
  ExpectCases({
      {R"({"type":"null"})", {"null"}, {"0", "\"null\""}},
      {R"({"type":"boolean"})", {"true", "false"}, {"null", "True"}},
      {R"({"type":"integer"})", {"0", "-12", "907"}, {"1.0", "1e3", "-", "00", "\"1\""}},
      {R"({"type":"number"})", {"0", "-12.50", "1e9"}, {"\"1\"", "1e999", "--1"}},
      {R"({"type":"string"})", {"\"a\"", "\"\\\"\"", "\"\x7F\""}, {"a", "\"", "\"\x1F\""}},
      {R"({"type":"array"})", {"[]", "[ ]", "[1,\"a\"]"}, {"{}", "[", "[,]"}},
      {R"({"type":"object"})", {"{}", R"({"a":1})"}, {"[]", "{,}"}},
      {R"({"type":["string","null"]})", {"null", "\"\""}, {"1"}},
      {R"({"type":"string","nullable":true})", {"null", "\"a\""}, {"1"}},
  });
}

TEST(JsonSchema, Objects) {
  const char* two = R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"null"}},
                        "required":["a"],"additionalProperties":false})";
  ExpectCases({
      {two,
       {R"({"a":1})", R"({"a": 1, "b": null})", "{\n \"a\": 1,\n \"b\": null\n}"},
       {"{}", R"({"b":null})", R"({"a":1,})", R"({"a":1,"a":1})", R"({"b":null,"a":1})",
        R"({"a":1,"c":1})", R"({"a":"1"})"}},
      {R"({"properties":{"a":{},"b":{},"c":{}}})",
       {"{}", R"({"a":1})", R"({"b":1})", R"({"c":1})", R"({"a":1,"c":1})", R"({"b":1,"c":1})",
        R"({"a":1,"b":2,"c":3})"},
       {R"({,"b":1})", R"({"a":1 "b":1})", R"({"a":1,,"c":2})", R"({"d":1})"}},
      {R"({"properties":{"a":{},"b":{},"c":{}},"required":["b"]})",
       {R"({"b":1})", R"({"a":1,"b":1})", R"({"b":1,"c":1})"},
       {"{}", R"({"a":1})", R"({"a":1,"c":1})"}},
      {R"({"type":"object","properties":{}})", {"{}"}, {R"({"a":1})"}},
      {R"({"type":"object","properties":{},"additionalProperties":true})",
       {"{}", R"({"a":1})"},
       {}},
      {R"({"type":"object","required":["x"]})", {R"({"x":[]})"}, {"{}", R"({"y":1})"}},
      {R"({"properties":{"ab":{"type":"null"},"a":{"type":"null"}},
           "additionalProperties":{"type":"integer"}})",
       {"{}", R"({"ab":null})", R"({"abc":1})", R"({"b":1,"":2})", R"({"ab":null,"aa":1})",
        R"({"é":3})"},
       {R"({"ab":1})", R"({"a":1})", R"({"c":null})", R"({"\u0061":1})", R"({"c":1,"a":null})"}},
      {R"({"properties":{"a":false,"b":{}}})", {"{}", R"({"b":1})"}, {R"({"a":1})"}},
      {R"({"properties":{"\"q\\":{}},"required":["\"q\\"]})", {R"({"\"q\\":1})"}, {"{}"}},
  });
}

TEST(JsonSchema, Arrays) {
  ExpectCases({
      {R"({"items":{"type":"integer"}})", {"[]", "[1]", "[1, 2,3]"}, {"[\"\"]", "[1,]"}},
      {R"({"items":{"type":"null"},"minItems":2,"maxItems":3})",
       {"[null,null]", "[null,null,null]"},
       {"[]", "[null]", "[null,null,null,null]"}},
      {R"({"items":{"type":"null"},"minItems":1})", {"[null]", "[null,null]"}, {"[]"}},
      {R"({"type":"array","maxItems":0})", {"[]", "[ ]"}, {"[1]"}},
      {R"({"type":"array","maxItems":1})", {"[]", "[1]"}, {"[1,1]"}},
      {R"({"prefixItems":[{"type":"null"},{"type":"integer"}],"minItems":1})",
       {"[null]", "[null,1]"},
       {"[]", "[1]", "[null,1,1]"}},
      {R"({"prefixItems":[{"type":"null"}],"items":{"type":"integer"}})",
       {"[]", "[null]", "[null,1,2]"},
       {"[1]", "[null,null]"}},
      {R"({"prefixItems":[{"type":"null"},{}],"minItems":4,"items":{"type":"integer"},"maxItems":5})",
       {"[null,\"\",1,2]", "[null,\"\",1,2,3]"},
       {"[null,\"\",1]", "[null,\"\",1,2,3,4]"}},
      {R"({"type":"array","prefixItems":[{},{}],"items":false,"minItems":2})",
       {"[1,2]"},
       {"[1]", "[1,2,3]"}},
  });
}

TEST(JsonSchema, Strings) {
  ExpectCases({
      {R"({"type":"string","minLength":2,"maxLength":3})",
       {"\"ab\"", "\"é€😀\"", R"("\n\u0041")", R"("\ud83d\ude00a")"},
       {"\"\"", "\"a\"", "\"abcd\"", R"("\ud83d\ude00")"}},
      {R"({"minLength":30,"maxLength":31})",
       {"\"123456789012345678901234567890\"", "\"1234567890123456789012345678901\""},
       {"\"12345678901234567890123456789\"", "\"12345678901234567890123456789012\""}},
      {R"({"maxLength":0})", {"\"\""}, {"\"a\""}},
      {R"({"type":"string","pattern":"^[a-c]+\\d{2}$"})", {"\"abc12\""}, {"\"12\"", "\"a123\""}},
      {R"({"pattern":"b+"})", {"\"b\"", "\"abc\"", R"("\nb\n")"}, {"\"\"", "\"ac\""}},
      {R"({"pattern":"^a|b$"})", {"\"ac\"", "\"cb\""}, {"\"ca\"", "\"bc\""}},
      {R"({"pattern":"^(?:x|(y)z)?\\.\\w\\s\\S[^\"\\d]$"})",
       {"\".a bc\"", "\"yz._ --\"", R"("x.a\tbc")"},
       {"\"y.a bc\"", R"(".a b\"")", "\".a b1\""}},
      {R"({"pattern":"^[\"\\\\\\n]{2}$"})", {R"("\"\\")", R"("\n\n")"}, {R"("\"")", "\"nn\""}},
      {R"({"pattern":"^.\\u00e9\\x41\\/$"})", {R"("qéA/")"}, {R"("\néA/")"}},
      {R"({"pattern":"^a{2,}?b*?$"})", {"\"aa\"", "\"aaabb\""}, {"\"a\""}},
      {R"({"pattern":""})", {"\"\"", "\"x\""}, {}},
  });
}

TEST(JsonSchema, Formats) {
  ExpectCases({
      {R"({"type":"string","format":"date"})",
       {"\"2024-02-29\"", "\"2000-02-29\"", "\"2023-12-31\"", "\"2023-04-30\""},
       {"\"2023-02-29\"", "\"1900-02-29\"", "\"2023-04-31\"", "\"2023-13-01\"", "\"2023-1-1\""}},
      {R"({"format":"time"})",
       {"\"23:59:59Z\"", "\"00:00:00.5+01:30\""},
       {"\"24:00:00Z\"", "\"12:60:00Z\"", "\"12:00:00\""}},
      {R"({"format":"date-time"})", {"\"2024-02-29T01:02:03Z\""}, {"\"2024-02-29 01:02:03Z\""}},
      {R"({"format":"uuid"})",
       {"\"123e4567-e89b-12d3-a456-426614174000\""},
       {"\"123e4567e89b12d3a456426614174000\""}},
      {R"({"format":"email"})", {"\"a.b@c.de\"", "\"x@y\""}, {"\"a\"", "\"@b\"", "\"a..b@c\""}},
      {R"({"format":"ipv4"})",
       {"\"0.10.200.255\""},
       {"\"1.2.3\"", "\"1.2.3.256\"", "\"01.2.3.4\""}},
      {R"({"type":"string","format":"something new"})", {"\"x\""}, {"1"}},
  });
}

TEST(JsonSchema, Values) {
  ExpectCases({
      {R"({"enum":["a","\n",1,null,[1,{"b":2}]]})",
       {"\"a\"", R"("\n")", "1", "null", R"([1,{"b":2}])"},
       {"\"b\"", "2", "[1, {\"b\":2}]"}},
      {R"({"const":null})", {"null"}, {"0"}},
      {R"({"const":{"a":"é"}})", {R"({"a":"é"})"}, {"{}"}},
      {R"({"type":"string","enum":["a",1]})", {"\"a\""}, {"1"}},
      {R"({"type":"integer","enum":[1,5,9],"minimum":3,"exclusiveMaximum":9})", {"5"}, {"1", "9"}},
      {R"({"properties":{"a":{"enum":[]}}})", {"{}"}, {R"({"a":1})"}},
  });
}

// All integers near the bounds, against comparing them.
TEST(JsonSchema, IntegerBounds) {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    const int64_t scale = round % 3 == 0 ? 20 : round % 3 == 1 ? 300 : 70'000;
    int64_t low = static_cast<int64_t>(random() % (2 * scale)) - scale;
    int64_t high = low + static_cast<int64_t>(random() % scale);
    boost::json::object schema{{"type", "integer"}};
    const bool has_low = round % 5 != 0, has_high = round % 7 != 0, excluded = round % 2 == 0;
    if (has_low) schema[excluded ? "exclusiveMinimum" : "minimum"] = low;
    if (has_high) schema[excluded ? "exclusiveMaximum" : "maximum"] = high;
    if (excluded) ++low, --high;
    if (has_low && has_high && low > high) continue;
    const auto grammar = Grammar::FromJsonSchema(schema);
    ASSERT_TRUE(grammar.ok()) << grammar.status().message();
    for (int i = 0; i < 300; ++i) {
      const int64_t near = i % 2 == 0 ? low : high;
      const int64_t x = near + static_cast<int64_t>(random() % (1 + i * i)) - i * i / 2;
      const bool in = (!has_low || x >= low) && (!has_high || x <= high);
      ASSERT_EQ(Bytes::Get().Matches(**grammar, std::to_string(x)), in)
          << boost::json::serialize(schema) << " " << x;
    }
  }
}

// Decimals of up to three places: those in the grammar are within the bounds, and those within
// the bounds are in the grammar, but for zeros that may be asked for at the end.
TEST(JsonSchema, NumberBounds) {
  const char* bounds[][2] = {{"0", "1"},      {"0.25", "0.5"},   {"-1.5", "2.125"},
                             {"0.2", "0.25"}, {"-0.75", "-0.5"}, {"1.5", "12"},
                             {"-3", "-1"},    {"0.05", "0.051"}, {"9.9", "100.1"},
                             {"-0.001", "0"}, {"0.4", "0.6"}};
  for (const auto& [low, high] : bounds) {
    for (int excluded = 0; excluded < 4; ++excluded) {
      const bool low_out = excluded & 1, high_out = excluded & 2;
      const std::string schema = std::string("{\"type\":\"number\",\"") +
                                 (low_out ? "exclusiveMinimum" : "minimum") + "\":" + low + ",\"" +
                                 (high_out ? "exclusiveMaximum" : "maximum") + "\":" + high + "}";
      const auto grammar = FromSchema(schema);
      const double a = std::stod(low), b = std::stod(high);
      for (int thousandths = -4000; thousandths <= 13000; ++thousandths) {
        char text[32];
        snprintf(text, sizeof(text), "%s%d.%03d", thousandths < 0 ? "-" : "",
                 std::abs(thousandths) / 1000, std::abs(thousandths) % 1000);
        const double x = std::stod(text);
        const bool in = (low_out ? x > a : x >= a) && (high_out ? x < b : x <= b);
        const bool whole = thousandths % 1000 == 0;
        const bool fits =
            Bytes::Get().Matches(*grammar, text) ||
            (whole && Bytes::Get().Matches(*grammar, std::to_string(thousandths / 1000)));
        ASSERT_EQ(fits, in) << schema << " " << text;
      }
    }
  }
}

TEST(JsonSchema, Combinations) {
  ExpectCases({
      {R"({"anyOf":[{"type":"null"},{"type":"integer","minimum":5}]})", {"null", "5"}, {"4"}},
      {R"({"oneOf":[{"const":1},{"const":2}],"description":"x"})", {"1", "2"}, {"3"}},
      {R"({"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"}},
           "anyOf":[{"required":["a"]},{"required":["b"]}]})",
       {R"({"a":null})", R"({"b":null})", R"({"a":null,"b":null})"},
       {"{}"}},
      {R"({"allOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},
                    {"properties":{"b":{"type":"null"},"a":{"minimum":3}},"required":["b"]}]})",
       {R"({"a":3,"b":null})"},
       {R"({"a":3})", R"({"a":2,"b":null})", R"({"b":null})"}},
      {R"({"allOf":[{"type":["integer","string"]},{"type":["number","null"]}],"maximum":9})",
       {"9"},
       {"10", "null", "\"\"", "1.5"}},
      {R"({"allOf":[{"properties":{"a":{}},"additionalProperties":false},
                    {"properties":{"b":{}}}]})",
       {"{}", R"({"a":1})"},
       {R"({"b":1})", R"({"c":1})"}},
      {R"({"allOf":[{"anyOf":[{"minimum":1},{"type":"null"}]},{"anyOf":[{"maximum":3},{"const":7}]}],
           "type":["integer","null"]})",
       {"1", "3", "7", "null"},
       {"0", "4"}},
  });
}

TEST(JsonSchema, References) {
  ExpectCases({
      {R"({"$ref":"#/$defs/a","$defs":{"a":{"type":"integer"}}})", {"1"}, {"\"\""}},
      {R"({"$ref":"#/definitions/a~1b%20c","definitions":{"a/b c":{"type":"null"}}})",
       {"null"},
       {"1"}},
      {R"({"properties":{"v":{"type":"integer"},"next":{"$ref":"#"}},"required":["v"]})",
       {R"({"v":1})", R"({"v":1,"next":{"v":2,"next":{"v":3}}})"},
       {R"({"v":1,"next":{}})"}},
      {R"({"$ref":"#/$defs/t","$defs":{"t":{"anyOf":[{"type":"null"},
           {"type":"array","items":{"$ref":"#/$defs/t"},"maxItems":2}]}}})",
       {"null", "[]", "[[null],null]", "[[[],[]]]"},
       {"[[],[],[]]", "1"}},
      {R"({"$ref":"#/$defs/a","minimum":3,"$defs":{"a":{"$ref":"#/$defs/b","maximum":5},
           "b":{"type":"integer"}}})",
       {"3", "5"},
       {"2", "6", "3.5"}},
      {R"({"properties":{"a":{"$ref":"#/properties/b"},"b":{"enum":[1]}}})",
       {R"({"a":1,"b":1})"},
       {R"({"a":2})"}},
  });
}

void ExpectRefused(const boost::json::value& schema, const std::string& part) {
  const auto grammar = Grammar::FromJsonSchema(schema);
  const std::string text = boost::json::serialize(schema).substr(0, 200);
  ASSERT_FALSE(grammar.ok()) << text;
  EXPECT_EQ(grammar.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(grammar.status().message().find(part), std::string::npos) << text << "\n"
                                                                      << grammar.status().message();
  EXPECT_LT(grammar.status().message().size(), 500u);
}

TEST(JsonSchema, RefusedByName) {
  for (const char* word :
       {"not", "if", "then", "else", "patternProperties", "propertyNames", "uniqueItems",
        "multipleOf", "dependentRequired", "dependentSchemas", "dependencies", "contains",
        "minContains", "maxContains", "minProperties", "maxProperties", "unevaluatedItems",
        "unevaluatedProperties"}) {
    ExpectRefused(boost::json::object{{word, 7}}, word);
    ExpectRefused(boost::json::object{{"items", {{word, 7}}}}, std::string("#/items: ") + word);
  }
  ExpectCases({{R"({"type":"array","uniqueItems":false})", {"[]"}, {}},
               {R"({"type":"object","patternProperties":{},"minProperties":0})", {"{}"}, {}}});
}

TEST(JsonSchema, Refused) {
  const std::pair<const char*, const char*> cases[] = {
      {"3", "expected an object, true or false"},
      {"[]", "expected an object, true or false"},
      {R"j({"properties":{"a":3}})j", "#/properties/a"},
      {R"j({"properties":[]})j", "properties: expected an object"},
      {R"j({"required":"a"})j", "required"},
      {R"j({"required":[1]})j", "required"},
      {R"j({"type":"text"})j", "type: expected"},
      {R"j({"type":3})j", "type: expected"},
      {R"j({"type":"array","minItems":-1})j", "minItems"},
      {R"j({"type":"array","minItems":1.5})j", "minItems"},
      {R"j({"type":"array","minItems":1000000000})j", "minItems"},
      {R"j({"type":"string","maxLength":"3"})j", "maxLength"},
      {R"j({"minimum":"3"})j", "minimum"},
      {R"j({"minimum":1e300})j", "minimum"},
      {R"j({"enum":3})j", "enum"},
      {R"j({"anyOf":{}})j", "anyOf"},
      {R"j({"allOf":3})j", "allOf"},
      {R"j({"$ref":"#/$defs/x"})j", "$ref: there is no such place"},
      {R"j({"$ref":"http://example.org/a"})j", "$ref: only places within"},
      {R"j({"$ref":3})j", "$ref"},
      {R"j({"$ref":"#"})j", "goes on for ever"},
      {R"j({"$ref":"#","minimum":3})j", "too much to merge"},
      {R"j({"allOf":[{"$ref":"#"}]})j", "too much to merge"},
      {R"j({"anyOf":[{"$ref":"#"},{"type":"null"}]})j", "left recursion"},
      {"false", "no text can ever match"},
      {R"j({"enum":[]})j", "no text can ever match"},
      {R"j({"type":"string","minLength":3,"maxLength":2})j", "no text can ever match"},
      {R"j({"properties":{"a":{"$ref":"#"}},"required":["a"]})j", "goes on for ever"},
      {R"j({"pattern":"a","maxLength":3})j", "beside pattern"},
      {R"j({"pattern":"(?=a)"})j", "pattern: only"},
      {R"j({"pattern":"(?<!a)"})j", "pattern: only"},
      {R"j({"pattern":"\\b"})j", "pattern: an escape that is not known"},
      {R"j({"pattern":"(a)\\1"})j", "pattern: an escape that is not known"},
      {R"j({"pattern":"a(^b)"})j", "pattern: ^ is known only"},
      {R"j({"pattern":"a$b"})j", "pattern: $ is known only"},
      {R"j({"pattern":"*"})j", "nothing to repeat"},
      {R"j({"pattern":"a**"})j", "a quantifier after"},
      {R"j({"pattern":"("})j", "never closed"},
      {R"j({"pattern":")"})j", "never opened"},
      {R"j({"pattern":"[a"})j", "never closed"},
      {R"j({"pattern":"[b-a]"})j", "a range that is none"},
      {R"j({"pattern":"a{3,2}"})j", "most is less"},
      {R"j({"pattern":"a{0,1000000000}"})j", "repetitions"},
      {R"j({"pattern":"a\\"})j", "a \\ at the end"},
      {R"j({"allOf":[{"pattern":"a"},{"pattern":"b"}]})j", "pattern cannot be kept together"},
  };
  for (const auto& [schema, part] : cases) ExpectRefused(Json(schema), part);
}

// Pieces of the kind that JSON is written in.
std::vector<std::string> JsonPieces() {
  return PieceTokenizer::WithBytes(
      {"{\"",      "\": ",     "\":",  "\", \"", "\",",  "\"}",  "\"]", "}}",    "]}",
       "},",       "], ",      "true", "false",  "null", "12",   "305", "-1",    ".5",
       "0.",       "\n  ",     "  ",   "name",   "ab",   "abc",  "\\n", "\\u00", "\xC3\xA9",
       "\xF0\x9F", "\x98\x80", "e+",   "2024-",  "[[",   "[{\"", "é\"", "value"});
}

TEST(JsonSchema, WalksEndInWhatHoldsTheSchema) {
  const char* schemas[] = {
      R"({"type":"object","properties":{"name":{"type":"string","maxLength":12},
          "age":{"type":"integer","minimum":0,"maximum":150},"score":{"type":"number",
          "minimum":-1,"maximum":1},"tags":{"type":"array","items":{"enum":["ab","abc","value"]},
          "minItems":1,"maxItems":4},"more":{"anyOf":[{"type":"null"},{"$ref":"#"}]}},
          "required":["name","age"],"additionalProperties":false})",
      R"({"type":"array","minItems":2,"maxItems":5,"items":{"type":"object",
          "properties":{"a":{"type":"boolean"},"ab":{"type":["null","integer"]}},
          "additionalProperties":{"type":"string","minLength":1,"maxLength":6}}})",
      R"({"prefixItems":[{"type":"string","pattern":"^[a-c]{1,4}(é|\\d)$"},{"const":{"x":[1,2]}},
          {"type":"number","exclusiveMinimum":0.25,"maximum":12.5}],"minItems":2,
          "items":{"type":"boolean"},"maxItems":6})",
      R"({"allOf":[{"$ref":"#/$defs/base"},{"properties":{"kind":{"enum":["ab","x"]}},
          "required":["kind"]}],"$defs":{"base":{"type":"object","properties":{"id":
          {"type":"string","minLength":3,"maxLength":3}},"required":["id"]}}})",
  };
  const PieceTokenizer tokenizer(JsonPieces());
  const auto vocabulary = MakeGrammarVocabulary(tokenizer);
  std::mt19937 random(7);
  for (const char* source : schemas) {
    const boost::json::value schema = Json(source);
    const auto grammar = FromSchema(source);
    int ended = 0;
    for (int walk = 0; walk < 150; ++walk) {
      const auto constraint = grammar->Start(vocabulary);
      std::string text;
      for (int step = 0; step < 300; ++step) {
        std::vector<int32_t> allowed, long_ones;
        for (size_t i = 0; i < tokenizer.vocab_size(); ++i) {
          const int32_t id = static_cast<int32_t>(i);
          if (!Allows(*constraint, id)) continue;
          allowed.push_back(id);
          if (i >= 256 || i == '"' || i == '}' || i == ']') long_ones.push_back(id);
        }
        ASSERT_FALSE(allowed.empty());
        const auto& from = !long_ones.empty() && random() % 3 != 0 ? long_ones : allowed;
        const int32_t id = from[random() % from.size()];
        if (tokenizer.IsEnd(id)) {
          ++ended;
          boost::json::error_code error;
          const boost::json::value value = boost::json::parse(text, error);
          ASSERT_FALSE(error) << text;
          ASSERT_TRUE(SchemaChecker(schema).Holds(value)) << source << "\n" << text;
          break;
        }
        constraint->Accept(id);
        text += tokenizer.Piece(id);
      }
    }
    EXPECT_GT(ended, 30) << source;
  }
}

}  // namespace
}  // namespace sluice
