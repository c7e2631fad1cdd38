// Bodies as llama-server's clients send them, read for a tiny model.
#include "src/server/llama_request.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <boost/json/parse.hpp>
#include <span>
#include <string>

#include "src/server/llama_deadline.h"
#include "src/server/llama_infill.h"
#include "tests/server/tiny_served.h"

namespace sluice {
namespace {

namespace json = boost::json;

json::value Parse(const std::string& text) {
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  EXPECT_FALSE(error) << text;
  return value;
}

class LlamaRequestTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { served_ = new TinyServed(kTinyTemplate); }
  static void TearDownTestSuite() {
    delete served_;
    served_ = nullptr;
  }
  LlamaRequest Good(const std::string& body) {
    Result<LlamaRequest> request = ReadLlamaCompletion(Parse(body).as_object(), served_->model());
    EXPECT_TRUE(request.ok()) << body << ": " << request.status().message();
    return request.ok() ? *std::move(request) : LlamaRequest();
  }
  std::string Bad(const std::string& body) {
    const Result<LlamaRequest> request =
        ReadLlamaCompletion(Parse(body).as_object(), served_->model());
    EXPECT_EQ(request.status().code(), StatusCode::kInvalidArgument) << body;
    return request.status().message();
  }
  std::vector<std::string> Prompts(const std::string& prompt) {
    std::vector<std::string> texts;
    const auto prompts = LlamaPrompts(Parse(prompt), *served_->model());
    EXPECT_TRUE(prompts.ok()) << prompt << prompts.status().message();
    if (!prompts.ok()) return texts;
    for (const std::vector<int32_t>& ids : *prompts) {
      EXPECT_FALSE(ids.empty());
      texts.push_back(served_->model()->tokenizer().Decode(ids, true));
    }
    return texts;
  }

  static TinyServed* served_;
};
TinyServed* LlamaRequestTest::served_ = nullptr;

TEST_F(LlamaRequestTest, PromptsInAllForms) {
  using Texts = std::vector<std::string>;
  const int32_t q = served_->model()->tokenizer().Encode("q", {}).back();
  const std::string id = std::to_string(q);
  EXPECT_EQ(Prompts("\"abc\""), Texts({"abc"}));
  EXPECT_EQ(Prompts("[" + id + ", " + id + "]").size(), 1u);
  EXPECT_EQ(Prompts("[\"ab\", " + id + "]").size(), 1u);
  EXPECT_EQ(Prompts("[\"ab\", \"cd\"]"), Texts({"ab", "cd"}));
  EXPECT_EQ(Prompts("[\"ab\"]"), Texts({"ab"}));
  EXPECT_EQ(Prompts("[[" + id + "], \"cd\", [\"x\", " + id + "]]").size(), 3u);
  for (const char* bad :
       {"[]", "[[]]", "5", "{}", "null", "[320]", "[-1]", "[1.5]", "[true]", "[[[1]]]"}) {
    EXPECT_FALSE(LlamaPrompts(Parse(bad), *served_->model()).ok()) << bad;
  }
}

TEST_F(LlamaRequestTest, OneBosWhoeverWroteIt) {
  const auto ids = [&](const char* prompt) {
    return LlamaPrompts(Parse(prompt), *served_->model()).value()[0];
  };
  EXPECT_EQ(ids("\"<s>\""), (std::vector<int32_t>{TinyModel::kBos}));
  EXPECT_EQ(ids("\"\""), (std::vector<int32_t>{TinyModel::kBos}));
  EXPECT_EQ(ids("[100, \"q\"]")[0], 100);  // ids are taken as they are
}

TEST_F(LlamaRequestTest, Defaults) {
  const LlamaRequest request = Good(R"({"prompt": "a"})");
  EXPECT_EQ(request.call.options.max_tokens, SIZE_MAX);
  EXPECT_EQ(request.call.options.sampler.temp, 0.8f);
  EXPECT_EQ(request.call.options.sampler.top_p, 0.95f);
  EXPECT_EQ(request.call.options.sampler.repeat_penalty, 1.0f);
  EXPECT_TRUE(request.call.options.use_cache);
  EXPECT_FALSE(request.answer.stream);
  EXPECT_EQ(request.call.options.logprobs, -1);
  EXPECT_EQ(request.answer.settings.at("n_predict"), -1);
  EXPECT_EQ(request.answer.settings.at("top_k"), 40);
}

TEST_F(LlamaRequestTest, FieldsReachTheCall) {
  const LlamaRequest request = Good(
      R"({"prompt": ["a", "bc"], "n_predict": 0, "stream": true, "n_probs": 2, "seed": 5,
          "cache_prompt": false, "id_slot": 3, "return_tokens": true, "return_progress": true,
          "timings_per_token": true, "response_fields": ["content"], "n_indent": 4,
          "samplers": ["top_k", "temperature"], "logit_bias": [[100, false]], "mirostat": 0,
          "stop": ["x"], "grammar": "root ::= \"a\"", "ignore_eos": true})");
  EXPECT_EQ(request.call.options.max_tokens, 0u);
  EXPECT_EQ(request.call.options.logprobs, 2);
  EXPECT_FALSE(request.call.options.use_cache);
  EXPECT_NE(request.call.grammar, nullptr);
  EXPECT_EQ(request.answer.id_slot, 3);
  EXPECT_EQ(request.answer.prompts.size(), 2u);
  EXPECT_EQ(request.answer.prompt_tokens[0], request.call.prompts[0].size());
  EXPECT_EQ(request.answer.settings.at("stop"), (json::array{"x"}));
  EXPECT_EQ(request.answer.settings.at("samplers"),
            (json::array{"penalties", "dry", "top_k", "temperature"}));
  EXPECT_TRUE(request.answer.stream && request.answer.return_tokens &&
              request.answer.return_progress && request.answer.timings_per_token);
}

TEST_F(LlamaRequestTest, RefusalsNameTheField) {
  EXPECT_EQ(Bad(R"({})").substr(0, 7), "prompt:");
  EXPECT_EQ(Bad(R"({"prompt": "a", "n_predict": "x"})").substr(0, 10), "n_predict:");
  EXPECT_EQ(Bad(R"({"prompt": "a", "mirostat": 1})").substr(0, 9), "mirostat:");
  EXPECT_EQ(Bad(R"({"prompt": "a", "lora": [{"id": 0}]})").substr(0, 5), "lora:");
  EXPECT_EQ(Bad(R"({"prompt": "a", "grammar": "root ::= ("})").substr(0, 8), "grammar:");
  EXPECT_EQ(Bad(R"({"prompt": "a", "grammar": "root ::= \"a\"", "json_schema": {}})").substr(0, 8),
            "grammar:");
  EXPECT_EQ(Bad(R"({"prompt": "a", "n_probs": 3, "post_sampling_probs": true})").substr(0, 20),
            "post_sampling_probs:");
  EXPECT_EQ(Bad(R"({"prompt": "a", "t_max_predict_ms": 5, "ignore_eos": true})").substr(0, 17),
            "t_max_predict_ms:");
  EXPECT_EQ(Bad(R"({"prompt": ["a", "b"], "t_max_predict_ms": 5})").substr(0, 17),
            "t_max_predict_ms:");
}

size_t Bits(std::span<const uint64_t> words) {
  size_t bits = 0;
  for (const uint64_t word : words) bits += static_cast<size_t>(std::popcount(word));
  return bits;
}

TEST_F(LlamaRequestTest, TheDeadlineLeavesOnlyEndTokensAfterALine) {
  const auto out_of_time = std::make_shared<std::atomic<bool>>(false);
  LlamaDeadline deadline(served_->model(), nullptr, std::chrono::milliseconds(0), out_of_time);
  EXPECT_EQ(Bits(deadline.Allowed()), TinyModel::kVocab);  // nothing was generated yet
  deadline.Accept(TinyModel::kFirstByte + 'a');
  EXPECT_EQ(Bits(deadline.Allowed()), TinyModel::kVocab);  // no new line yet
  EXPECT_FALSE(out_of_time->load());
  deadline.Accept(TinyModel::kFirstByte + '\n');
  const std::span<const uint64_t> ends = deadline.Allowed();
  EXPECT_EQ(Bits(ends), 1u);
  EXPECT_TRUE(ends[0] >> TinyModel::kEos & 1);
  EXPECT_TRUE(out_of_time->load());

  LlamaDeadline later(served_->model(), nullptr, std::chrono::hours(1), out_of_time);
  later.Accept(TinyModel::kFirstByte + '\n');
  EXPECT_EQ(Bits(later.Allowed()), TinyModel::kVocab);
}

TEST_F(LlamaRequestTest, InfillNeedsTheTokens) {
  const Result<LlamaRequest> request = ReadLlamaInfill(
      Parse(R"({"input_prefix": "a", "input_suffix": "b"})").as_object(), served_->model());
  EXPECT_EQ(request.status().code(), StatusCode::kUnsupported);
  EXPECT_FALSE(ReadInfill(Parse(R"({"prompt": "a"})").as_object()).ok());
  EXPECT_FALSE(ReadInfill(Parse(R"({"input_prefix": "a", "input_extra": [5]})").as_object()).ok());
  const Result<InfillText> text =
      ReadInfill(Parse(R"({"input_prefix": "a", "input_extra": [{"filename": "f", "text": "t"}]})")
                     .as_object());
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(text->files.at(0).second, "t");
}

// Letters are their own ids; the marks of one family are there.
class InfillTokenizer : public Tokenizer {
 public:
  std::vector<int32_t> Encode(std::string_view text, const EncodeOptions& options) const override {
    EXPECT_FALSE(options.add_special || options.parse_special);
    return std::vector<int32_t>(text.begin(), text.end());
  }
  std::vector<int32_t> EncodeParts(std::span<const Part>, bool) const override { return {}; }
  std::string Decode(std::span<const int32_t>, bool) const override { return ""; }
  std::string Piece(int32_t) const override { return ""; }
  size_t vocab_size() const override { return 400; }
  std::string_view text(int32_t) const override { return ""; }
  TokenType type(int32_t) const override { return TokenType::kNormal; }
  std::string_view model() const override { return "gpt2"; }
  std::string_view pre() const override { return ""; }
  std::optional<int32_t> bos() const override { return 300; }
  std::optional<int32_t> eos() const override { return 301; }
  bool adds_bos() const override { return true; }
  bool drops_leading_blank() const override { return false; }
  bool IsEnd(int32_t) const override { return false; }
  std::optional<int32_t> SpecialId(std::string_view text) const override {
    if (text == "<|fim_prefix|>") return 310;
    if (text == "<|fim_suffix|>") return 311;
    if (text == "<|fim_middle|>") return 312;
    if (text == "<|repo_name|>" && files) return 313;
    if (text == "<|file_sep|>" && files) return 314;
    return std::nullopt;
  }
  bool files = true;
};

TEST(LlamaInfillTest, PromptsInTheMarksOfTheVocabulary) {
  InfillTokenizer tokenizer;
  InfillText text;
  text.prefix = "p";
  text.suffix = "s";
  text.prompt = "m";
  const auto prompt = [&] { return InfillPrompt(text, tokenizer).value(); };
  EXPECT_EQ(prompt(), (std::vector<int32_t>{300, 310, 'p', 311, 's', 312, 'm'}));
  text.files = {{"f", "t"}};
  const std::vector<int32_t> with_files = prompt();
  EXPECT_EQ(with_files[1], 313);
  EXPECT_EQ(std::count(with_files.begin(), with_files.end(), 314), 2);
  tokenizer.files = false;
  EXPECT_EQ(prompt(), (std::vector<int32_t>{300, 't', 310, 'p', 311, 's', 312, 'm'}));
}

}  // namespace
}  // namespace sluice
