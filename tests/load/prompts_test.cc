#include "src/load/prompts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "src/load/statistics.h"

namespace sluice::load {
namespace {

Lengths Parsed(const std::string& text) {
  Result<Lengths> lengths = ParseLengths("--prompt-tokens", text);
  EXPECT_TRUE(lengths.ok()) << text;
  return lengths.ok() ? *lengths : Lengths();
}

Distribution Drawn(const std::string& text) {
  const Lengths lengths = Parsed(text);
  std::vector<double> values;
  for (uint64_t i = 0; i < 20000; ++i) {
    values.push_back(static_cast<double>(lengths.Draw(3, 1, i)));
  }
  return Describe(values);
}

TEST(LengthsTest, DistributionsAreWhatTheySay) {
  EXPECT_EQ(Drawn("128").most, 128);
  EXPECT_EQ(Drawn("fixed:128").least, 128);
  const Distribution uniform = Drawn("uniform:10:20");
  EXPECT_EQ(uniform.least, 10);
  EXPECT_EQ(uniform.most, 20);
  EXPECT_NEAR(uniform.mean, 15, 0.1);
  const Distribution normal = Drawn("normal:200:20");
  EXPECT_NEAR(normal.mean, 200, 1);
  EXPECT_NEAR(normal.deviation, 20, 1);
  const Distribution skewed = Drawn("lognormal:200:150");
  EXPECT_NEAR(skewed.mean, 200, 5);
  EXPECT_NEAR(skewed.deviation, 150, 12);
  EXPECT_LT(skewed.p50, 175);
  EXPECT_EQ(Drawn("normal:1:5").least, 1);
}

TEST(LengthsTest, OthersAreRefused) {
  for (const char* text : {"", "0", "-1", "1.5", "x", "uniform:5", "uniform:9:3", "normal:5:",
                           "normal:5:1:2", "fixed:", "2000000", "gamma:1:2", "nan", "1e3"}) {
    const Result<Lengths> lengths = ParseLengths("--prompt-tokens", text);
    ASSERT_FALSE(lengths.ok()) << text;
    EXPECT_NE(lengths.status().message().find("--prompt-tokens"), std::string::npos);
  }
  EXPECT_EQ(Parsed("uniform:10:20").Text(), "uniform:10:20");
  EXPECT_EQ(Parsed("fixed:1048576").Text(), "1048576");
}

PromptSource Source(size_t shared, size_t groups, bool ids) {
  PromptPlan plan;
  plan.prompt = Parsed("uniform:20:30");
  plan.output = Parsed("5");
  plan.shared_prefix = shared;
  plan.prefix_groups = groups;
  PromptSource source(plan);
  source.set_form({.ids = ids, .tokens_per_prompt = 1, .tokens_per_word = 2});
  return source;
}

TEST(PromptsTest, IdsHaveTheLengthThatWasDrawn) {
  const PromptSource source = Source(0, 1, true);
  std::set<std::vector<int32_t>> all;
  for (uint64_t i = 0; i < 100; ++i) {
    const LoadPrompt p = source.Make(i);
    EXPECT_EQ(p.ids.size(), p.tokens);
    EXPECT_GE(p.tokens, 20u);
    EXPECT_LE(p.tokens, 30u);
    EXPECT_EQ(p.output_tokens, 5u);
    EXPECT_EQ(source.Make(i).ids, p.ids);
    all.insert(p.ids);
    all.insert(source.MakeWarmUp(i).ids);
  }
  EXPECT_EQ(all.size(), 200u);  // a server's prefix cache finds nothing
}

TEST(PromptsTest, OtherTextsOfTheSameLengths) {
  const PromptSource a = Source(0, 1, true);
  PromptPlan plan = a.plan();
  plan.text_seed = 2;
  PromptSource b(plan);
  b.set_form(a.form());
  for (uint64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(a.Make(i).tokens, b.Make(i).tokens);
    EXPECT_NE(a.Make(i).ids, b.Make(i).ids);
  }
}

TEST(PromptsTest, PrefixesAreShared) {
  const PromptSource source = Source(40, 3, true);
  std::set<std::vector<int32_t>> prefixes, suffixes;
  for (uint64_t i = 0; i < 60; ++i) {
    const LoadPrompt p = i % 2 == 0 ? source.Make(i) : source.MakeWarmUp(i);
    ASSERT_GE(p.ids.size(), 60u);
    prefixes.insert({p.ids.begin(), p.ids.begin() + 40});
    suffixes.insert({p.ids.begin() + 40, p.ids.begin() + 60});
  }
  EXPECT_EQ(prefixes.size(), 3u);
  EXPECT_EQ(suffixes.size(), 60u);
}

TEST(PromptsTest, WordsAreCountedAsTheServerDoes) {
  const PromptSource source = Source(0, 1, false);
  const LoadPrompt p = source.Make(0);
  EXPECT_TRUE(p.ids.empty());
  const auto words = 1 + std::count(p.text.begin(), p.text.end(), ' ');
  EXPECT_NEAR(1 + 2.0 * static_cast<double>(words), static_cast<double>(p.tokens), 1);
}

TEST(PromptFilesTest, PromptsInEveryForm) {
  const Result<std::vector<LoadPrompt>> prompts = ParsePrompts(
      "f",
      "{\"prompt\": \"one\", \"output_tokens\": 9}\n\n"
      "{\"messages\": [{\"role\": \"user\", \"content\": \"two\"}]}\r\n"
      "{\"conversations\": [{\"from\": \"human\", \"value\": \"three\"}]}\n{\"text\": \"four\"}");
  ASSERT_TRUE(prompts.ok()) << prompts.status().message();
  ASSERT_EQ(prompts->size(), 4u);
  EXPECT_EQ((*prompts)[0].output_tokens, 9u);
  EXPECT_EQ((*prompts)[1].messages.size(), 1u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ((*prompts)[i].text, (std::array{"one", "two", "three", "four"})[i]);
  }
  for (const char* text : {"", "{}\n", "[1]", "{\"prompt\": 3}", "{\"prompt\": \"a\"}\nx\n"}) {
    EXPECT_FALSE(ParsePrompts("f", text).ok()) << text;
  }
  EXPECT_NE(ParsePrompts("f", "{\"prompt\": \"a\"}\nx\n").status().message().find("line 2"),
            std::string::npos);
}

TEST(PromptFilesTest, TracesInBothForms) {
  const auto plain = ParseTrace("t", "10\n10.5\n12\n");
  ASSERT_TRUE(plain.ok());
  EXPECT_EQ((*plain)[0].due_s, 0);
  EXPECT_EQ((*plain)[2].due_s, 2);
  const auto rich = ParseTrace(
      "t",
      "{\"timestamp\": 0, \"input_length\": 1100, \"output_length\": 3, \"hash_ids\": [1, 2, 3]}\n"
      "{\"timestamp\": 1500, \"input_length\": 1030, \"output_length\": 4, \"hash_ids\": [1, "
      "2]}\n");
  ASSERT_TRUE(rich.ok()) << rich.status().message();
  EXPECT_EQ((*rich)[1].due_s, 1.5);
  PromptPlan plan;
  plan.prompt = plan.output = Parsed("7");
  plan.trace = *rich;
  PromptSource source(plan);
  source.set_form({.ids = true});
  const LoadPrompt a = source.Make(0), b = source.Make(1);
  EXPECT_EQ(a.ids.size(), 1100u);
  EXPECT_EQ(b.ids.size(), 1030u);
  EXPECT_EQ(b.output_tokens, 4u);
  EXPECT_TRUE(std::equal(a.ids.begin(), a.ids.begin() + 1024, b.ids.begin()));
  EXPECT_NE(a.ids[1024], b.ids[1024]);
  for (const char* text : {"", "x", "2\n1\n", "{\"time\": 1}", "1e999"}) {
    EXPECT_FALSE(ParseTrace("t", text).ok()) << text;
  }
}

TEST(PromptFilesTest, LengthsOfATraceAreTakenOrRefused) {
  for (const char* length : {"0", "-1", "1.5", "\"7\"", "null", "1000000000000"}) {
    const auto trace = ParseTrace(
        "t",
        "{\"timestamp\": 1}\n{\"timestamp\": 2, \"output_length\": " + std::string(length) + "}\n");
    ASSERT_FALSE(trace.ok()) << length;
    const std::string& said = trace.status().message();
    EXPECT_EQ(said.find("t: line 2: expected output_length from 1 to "), 0u) << said;
    EXPECT_NE(said.find(length[0] == '"' ? "7" : length), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace sluice::load
