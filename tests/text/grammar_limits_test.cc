// Grammars and schemas made to cost too much: refused, or kept within bounds,
// all on a small stack.
#include <boost/json.hpp>
#include <random>
#include <string>

#include "tests/text/grammar_vocabulary.h"

namespace sluice {
namespace {

std::string Times(std::string_view text, size_t count) {
  std::string all;
  for (size_t i = 0; i < count; ++i) all += text;
  return all;
}

// Compiles it, if it can be, and goes some steps through it.
void Try(const std::string& source) {
  const auto grammar = Grammar::FromGbnf(source);
  if (!grammar.ok()) {
    EXPECT_EQ(grammar.status().code(), StatusCode::kInvalidArgument);
    EXPECT_LT(grammar.status().message().size(), 300u);
    return;
  }
  const auto constraint = (*grammar)->Start(Bytes::Get().vocabulary);
  for (int step = 0; step < 12; ++step) {
    int32_t id = 0;
    while (id < 256 && !Allows(*constraint, id)) ++id;
    if (id == 256) break;
    constraint->Accept(id);
  }
}

void ExpectRefused(const std::string& source, std::string_view part) {
  const auto grammar = Grammar::FromGbnf(source);
  ASSERT_FALSE(grammar.ok());
  EXPECT_EQ(grammar.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(grammar.status().message().find(part), std::string::npos) << grammar.status().message();
}

TEST(GrammarLimits, NestedGroups) {
  OnSmallStack([] {
    ExpectRefused("root ::= " + Times("(", 60'000) + "\"a\"" + Times(")", 60'000),
                  "nested too deep");
    ExpectRefused("root ::= " + Times("(", 300'000), "nested too deep");
    const auto most =
        Grammar::FromGbnf("root ::= " + Times("(\"b\"? ", 150) + "\"a\"" + Times(")+", 150));
    ASSERT_TRUE(most.ok()) << most.status().message();
    EXPECT_TRUE(Bytes::Get().Matches(**most, "aaba"));
  });
}

TEST(GrammarLimits, Sizes) {
  OnSmallStack([] {
    ExpectRefused("root ::= \"" + Times("a", 2'000'000) + "\"", "at most 1048576 bytes");
    std::string rules = "root ::= r0";
    for (int i = 0; i < 40'000; ++i) rules += "\nr" + std::to_string(i) + " ::= \"a\"";
    ExpectRefused(rules, "too large");
    ExpectRefused("root ::= " + Times("\"a\" ", 260'000), "too large");
  });
}

// Rules that each call the next twice: 2^n if they were written out.
TEST(GrammarLimits, DoublingRules) {
  OnSmallStack([] {
    std::string rules = "root ::= r0\n";
    for (int i = 0; i < 1000; ++i) {
      const std::string next = "r" + std::to_string(i + 1);
      rules += "r" + std::to_string(i) + " ::= " + next + " " + next + " | \"b\"\n";
    }
    Try(rules + "r1000 ::= \"a\"?");
  });
}

TEST(GrammarLimits, LongChains) {
  OnSmallStack([] {
    std::string rules = "root ::= r0\n";
    const std::string filler = Times("z", 40);
    for (int i = 0; i < 10'000; ++i) {
      rules +=
          "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + " | \"" + filler + "\"\n";
    }
    Try(rules + "r10000 ::= \"a\"");
    Try(rules + "r10000 ::= r0 \"a\"");  // left recursion over 10,000 rules
  });
}

TEST(GrammarLimits, Repetitions) {
  OnSmallStack([] {
    Try("root ::= \"a\"" + Times("*", 100'000));
    Try("root ::= \"a\"" + Times("?", 100'000) + Times("+", 100'000));
    Try("root ::= \"a\"" + Times("{2}", 10'000));
    Try("root ::= \"a\"" + Times("{2,3}", 10'000));
    Try("root ::= (((\"a\"*)*)*)*");
    Try("root ::= ((((\"a\"{0,1000000}){0,1000000}){0,1000000}){0,1000000}){0,1000000}");
    Try("root ::= " + Times("(", 150) + "[a-z]?" + Times("{1,100000})", 150));
    Try("root ::= " + Times("(", 150) + ".+ \"a\"" + Times("{1,3})", 150));
  });
}

// Thousands of elements are counted, not written out.
TEST(GrammarLimits, CountsOfThousands) {
  OnSmallStack([] {
    const auto grammar = Grammar::FromGbnf("root ::= (\"a\" | \"bb\"){2000,3000} \"c\"");
    ASSERT_TRUE(grammar.ok()) << grammar.status().message();
    EXPECT_FALSE(Bytes::Get().Matches(**grammar, Times("a", 1999) + "c"));
    EXPECT_TRUE(Bytes::Get().Matches(**grammar, Times("a", 2000) + "c"));
    EXPECT_TRUE(Bytes::Get().Matches(**grammar, Times("bb", 3000) + "c"));
    EXPECT_FALSE(Bytes::Get().Matches(**grammar, Times("a", 3001) + "c"));
    const auto schema = Grammar::FromJsonSchema(boost::json::parse(
        R"({"type":"array","minItems":10000,"maxItems":20000,"items":{"type":"null"}})"));
    ASSERT_TRUE(schema.ok()) << schema.status().message();
    EXPECT_FALSE(Bytes::Get().Matches(**schema, "[null" + Times(",null", 9998) + "]"));
    EXPECT_TRUE(Bytes::Get().Matches(**schema, "[null" + Times(",null", 9999) + "]"));
    const auto text = Grammar::FromJsonSchema(
        boost::json::parse(R"({"type":"string","minLength":2000,"maxLength":5000})"));
    ASSERT_TRUE(text.ok()) << text.status().message();
    EXPECT_FALSE(Bytes::Get().Matches(**text, "\"" + Times("x", 1999) + "\""));
    EXPECT_TRUE(Bytes::Get().Matches(**text, "\"" + Times("x", 5000) + "\""));
    EXPECT_FALSE(Bytes::Get().Matches(**text, "\"" + Times("x", 5001) + "\""));
  });
}

// Many ways at once: exponential if each were a stack of its own.
TEST(GrammarLimits, Ambiguity) {
  OnSmallStack([] {
    for (const char* source :
         {"root ::= \"a\" root \"a\" | \"a\" root \"b\" | \"a\" root \"c\" | \"a\"",
          "root ::= \"a\" root root | \"a\"", "root ::= (\"a\" | \"a\" \"a\"){1,500} \"b\"",
          "root ::= (\"a\"+ | \"a\" root?)+"}) {
      const auto grammar = MustParse(source);
      bool ends = false;
      EXPECT_EQ(Bytes::Get().Fits(*grammar, Times("a", 400), &ends), 400u) << source;
    }
  });
}

TEST(GrammarLimits, DeepText) {
  OnSmallStack([] {
    const auto grammar = MustParse("root ::= \"[\" root \"]\" | \"a\"");
    const std::string deep = Times("[", 20'000) + "a" + Times("]", 20'000);
    EXPECT_TRUE(Bytes::Get().Matches(*grammar, deep));
    EXPECT_FALSE(Bytes::Get().Matches(*grammar, deep + "]"));
  });
}

// More states than are kept: the sequences that run go on where they were.
TEST(GrammarLimits, ForgottenStates) {
  OnSmallStack([] {
    const auto grammar = MustParse("root ::= ([a-b]{2,900000} \"[\" root \"]\" | \"c\"){1,7}");
    const auto other = grammar->Start(Bytes::Get().vocabulary);
    for (const char c : std::string("aba")) other->Accept(c);
    const auto constraint = grammar->Start(Bytes::Get().vocabulary);
    for (int i = 0; i < 60'000; ++i) {
      const char c = i % 50 == 49 ? '[' : "ab"[i % 2];
      ASSERT_TRUE(Allows(*constraint, c)) << i;
      constraint->Accept(c);
    }
    EXPECT_TRUE(Allows(*other, '['));
    EXPECT_TRUE(Allows(*other, 'a'));
    EXPECT_FALSE(Allows(*other, 'c'));
    EXPECT_FALSE(Allows(*other, ']'));
  });
}

boost::json::value Nested(size_t depth, const char* key) {
  boost::json::value schema = boost::json::object{{"type", "null"}};
  for (size_t i = 0; i < depth; ++i) {
    boost::json::value outer = boost::json::object();
    outer.get_object()[key] = std::move(schema);
    schema = std::move(outer);
  }
  return schema;
}

void ExpectSchemaRefused(const boost::json::value& schema, std::string_view part) {
  const auto grammar = Grammar::FromJsonSchema(schema);
  ASSERT_FALSE(grammar.ok());
  EXPECT_EQ(grammar.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(grammar.status().message().find(part), std::string::npos) << grammar.status().message();
  EXPECT_LT(grammar.status().message().size(), 600u);
}

// The value itself is made and ended on the test's own stack: its destructor recurses.
TEST(GrammarLimits, NestedSchemas) {
  static boost::json::value deep, ignored;
  deep = Nested(5000, "items");
  ignored = Nested(5000, "title");
  OnSmallStack([] {
    ExpectSchemaRefused(deep, "nested too deep");
    ExpectSchemaRefused(ignored, "nested too deep");
    EXPECT_TRUE(Grammar::FromJsonSchema(Nested(90, "items")).ok());
  });
  deep = ignored = nullptr;
}

// References that would double at every step if each use were written out.
TEST(GrammarLimits, ExplodingReferences) {
  OnSmallStack([] {
    boost::json::object defs, merging;
    for (int i = 0; i < 200; ++i) {
      const boost::json::value next =
          boost::json::object{{"$ref", "#/$defs/d" + std::to_string(i + 1)}};
      defs["d" + std::to_string(i)] =
          boost::json::object{{"properties", {{"a", next}, {"b", next}}}};
      merging["d" + std::to_string(i)] = boost::json::object{
          {"properties",
           {{"a", {{"allOf", {next, next}}}}, {"b", {{"allOf", {next, {{"title", 1}}}}}}}},
          {"allOf", {next, next}}};
    }
    defs["d200"] = merging["d200"] = boost::json::object{{"type", "object"}};
    EXPECT_TRUE(
        Grammar::FromJsonSchema(boost::json::object{{"$ref", "#/$defs/d0"}, {"$defs", defs}}).ok());
    ExpectSchemaRefused(boost::json::object{{"$ref", "#/$defs/d0"}, {"$defs", merging}}, "merge");
    // Every way of each with every way of the others.
    boost::json::array all;
    for (int k = 0; k < 4; ++k) {
      boost::json::array ways;
      for (int i = 0; i < 100; ++i) ways.push_back(boost::json::object{{"minimum", i + k}});
      all.push_back(boost::json::object{{"anyOf", ways}});
    }
    ExpectSchemaRefused(boost::json::object{{"allOf", all}}, "merge");
  });
}

TEST(GrammarLimits, HostilePatterns) {
  OnSmallStack([] {
    for (const std::string& pattern :
         {Times("(", 20'000), Times("(", 10'000) + "a" + Times(")", 9'000), Times("(a*)*", 3000),
          Times("[", 20'000), Times("a{0,1000}", 2000), Times("(?:", 6000), Times("\\", 19'999),
          "(" + Times("(a|a)*", 100) + ")*b", Times("x", 30'000), Times("|", 20'000),
          Times("(", 150) + "a" + Times("{2})", 150),
          Times("(", 150) + "a?" + Times("{3,99999})", 150)}) {
      const auto grammar =
          Grammar::FromJsonSchema(boost::json::object{{"type", "string"}, {"pattern", pattern}});
      if (!grammar.ok()) {
        EXPECT_EQ(grammar.status().code(), StatusCode::kInvalidArgument);
        EXPECT_LT(grammar.status().message().size(), 300u);
        continue;
      }
      bool ends = false;
      EXPECT_GT(Bytes::Get().Fits(**grammar, "\"aaaaaaaaaa", &ends), 0u);
    }
  });
}

TEST(GrammarLimits, ManyProperties) {
  OnSmallStack([] {
    boost::json::object properties;
    for (int i = 0; i < 3000; ++i) {
      properties["property" + std::to_string(i)] = boost::json::object{{"type", "integer"}};
    }
    boost::json::object schema{{"properties", properties}};
    const auto grammar = Grammar::FromJsonSchema(schema);
    ASSERT_TRUE(grammar.ok()) << grammar.status().message();
    EXPECT_TRUE(Bytes::Get().Matches(**grammar, R"({"property7":1,"property2999":2})"));
    EXPECT_FALSE(Bytes::Get().Matches(**grammar, R"({"property7":1,"property7":2})"));
    boost::json::array values;
    for (int i = 0; i < 3000; ++i)
      values.push_back(boost::json::string("value" + std::to_string(i)));
    const auto listed = Grammar::FromJsonSchema(boost::json::object{{"enum", values}});
    ASSERT_TRUE(listed.ok()) << listed.status().message();
    EXPECT_TRUE(Bytes::Get().Matches(**listed, "\"value2999\""));
  });
}

// Whatever the bytes, an answer and no more.
TEST(GrammarLimits, RandomSources) {
  std::mt19937 random(11);
  const char* words[] = {"root", " ::= ", "\n",   "\"",   "a",     "(",         ")",      "[",
                         "]",    "^",     "-",    "|",    "*",     "+",         "?",      "{",
                         "}",    ",",     "3",    "\\",   "\\x41", "\\u",       "#",      ".",
                         "x",    " ",     "\xC3", "\xA9", "::=",   "root ::= ", "\"b\" ", "x ::= "};
  int compiled = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string source = "root ::= \"a\" ";
    const size_t length = random() % 14;
    for (size_t i = 0; i < length; ++i) source += words[random() % std::size(words)];
    const auto grammar = Grammar::FromGbnf(source);
    compiled += grammar.ok();
    if (round % 50 == 0) Try(source);
  }
  EXPECT_GT(compiled, 500);
}

}  // namespace
}  // namespace sluice
