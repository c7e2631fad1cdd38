// Embeddings in every dialect, from body to answer, over a tiny model and its engine.
#include "src/server/embedding.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "src/server/dialects.h"
#include "tests/server/routes.h"
#include "tests/server/tiny_served.h"

namespace sluice {
namespace {

namespace json = boost::json;

using Floats = std::vector<float>;

constexpr size_t kDim = 64, kContext = 128;

Floats FloatsOf(const json::value& array) {
  Floats values;
  for (const json::value& v : array.as_array()) values.push_back(v.to_number<float>());
  return values;
}

Floats FromBase64(std::string_view text) {
  static constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(kLetters.find(c));
    held += 6;
    if (held >= 8) bytes += static_cast<char>(bits >> (held -= 8) & 255);
  }
  Floats values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

double Length(const Floats& v) {
  double sum = 0;
  for (const float x : v) sum += static_cast<double>(x) * static_cast<double>(x);
  return std::sqrt(sum);
}

class EmbeddingRoutesTest : public testing::Test {
 protected:
  explicit EmbeddingRoutesTest(std::optional<Pooling> pooling = std::nullopt)
      : served_(kTinyTemplate, kContext) {
    HostOptions options;
    options.model = served_.options();
    options.model.pooling = pooling;
    options.model.service.engine.max_sequences = 2;
    Result<std::shared_ptr<ServedModel>> model = ServedModel::Load(served_.entry(), options.model);
    EXPECT_TRUE(model.ok()) << model.status().message();
    host_ = std::make_unique<ModelHost>(std::move(options), *model);
    context_.host = host_.get();
    for (auto make : {OpenAiRoutes, OllamaRoutes, LlamaRoutes}) {
      for (Route& route : make(context_)) routes_.push_back(std::move(route));
    }
  }
  std::shared_ptr<RecordedExchange> Post(const char* path, const std::string& body) {
    return CallRoute(routes_, "POST", path, body);
  }
  json::object Good(const char* path, const std::string& body) {
    const auto exchange = Post(path, body);
    EXPECT_EQ(exchange->status(), 200) << path << " " << body << ": " << exchange->chunks()[0];
    EXPECT_TRUE(exchange->json().is_object()) << exchange->chunks()[0];
    return exchange->json().is_object() ? exchange->json().as_object() : json::object();
  }
  Floats OpenAi(const std::string& fields) {
    return FloatsOf(Good("/v1/embeddings", "{" + fields + "}").at("data").at(0).at("embedding"));
  }
  // The status, and whether the message holds all of these.
  void ExpectRefusal(const char* path, const std::string& body, int status,
                     std::vector<std::string> words) {
    const auto exchange = Post(path, body);
    EXPECT_EQ(exchange->status(), status) << path << " " << body;
    for (const std::string& word : words) {
      EXPECT_NE(exchange->chunks()[0].find(word), std::string::npos)
          << path << " " << body << ": no " << word << " in " << exchange->chunks()[0];
    }
  }
  std::vector<int32_t> Ids(const std::string& text) { return EncodeInput(*served_.model(), text); }

  TinyServed served_;
  std::unique_ptr<ModelHost> host_;
  ServerContext context_;
  std::vector<Route> routes_;
};

TEST_F(EmbeddingRoutesTest, OpenAi) {
  const json::object whole =
      Good("/v1/embeddings", R"({"model": "tiny", "input": ["abc", "de fg", "abc"]})");
  EXPECT_EQ(whole.at("object"), "list");
  EXPECT_EQ(whole.at("model"), "tiny");
  const size_t tokens = 2 * Ids("abc").size() + Ids("de fg").size();
  EXPECT_EQ(whole.at("usage"), (json::object{{"prompt_tokens", tokens}, {"total_tokens", tokens}}));
  const json::array data = whole.at("data").as_array();
  ASSERT_EQ(data.size(), 3u);
  std::vector<Floats> vectors;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(data[i].at("object"), "embedding");
    EXPECT_EQ(data[i].at("index").to_number<size_t>(), i);
    vectors.push_back(FloatsOf(data[i].at("embedding")));
    EXPECT_EQ(vectors[i].size(), kDim);
    EXPECT_NEAR(Length(vectors[i]), 1, 1e-6);
  }
  EXPECT_EQ(vectors[0], vectors[2]);
  EXPECT_NE(vectors[0], vectors[1]);
  // One text, its ids, lists of both.
  const std::string ids = json::serialize(json::value_from(Ids("abc")));
  for (const std::string& input : {std::string(R"("abc")"), ids, "[" + ids + "]"}) {
    EXPECT_EQ(OpenAi("\"input\": " + input), vectors[0]) << input;
  }
  EXPECT_EQ(OpenAi("\"input\": [" + ids + R"(, "de fg"])"), vectors[0]);
}

TEST_F(EmbeddingRoutesTest, Base64HoldsTheSameFloats) {
  const Floats plain = OpenAi(R"("input": "abc")");
  const json::object coded =
      Good("/v1/embeddings", R"({"input": "abc", "encoding_format": "base64"})");
  EXPECT_EQ(FromBase64(coded.at("data").at(0).at("embedding").as_string()), plain);
  EXPECT_EQ(FromBase64("AACAPw=="), Floats{1});  // the reader itself
  EXPECT_EQ(Base64(Floats{1}), "AACAPw==");
  EXPECT_EQ(Base64(Floats{1, 1, 1}), "AACAPwAAgD8AAIA/");
  EXPECT_EQ(JsonArray(Floats{1, -0.5f, 0.1f}), "[1.0,-0.5,0.1]");
}

TEST_F(EmbeddingRoutesTest, DimensionsAreTheFirstScaledAnew) {
  const Floats whole = OpenAi(R"("input": "abc")");
  const Floats part = OpenAi(R"("input": "abc", "dimensions": 8)");
  ASSERT_EQ(part.size(), 8u);
  EXPECT_NEAR(Length(part), 1, 1e-6);
  for (size_t i = 1; i < 8; ++i) EXPECT_NEAR(part[i] / part[0], whole[i] / whole[0], 1e-4);
  EXPECT_EQ(OpenAi(R"("input": "abc", "dimensions": 64)"), whole);
  ExpectRefusal("/v1/embeddings", R"({"input": "abc", "dimensions": 65})", 400,
                {"dimensions", "1 to 64", "65"});
  ExpectRefusal("/v1/embeddings", R"({"input": "abc", "dimensions": 0})", 400, {"dimensions"});
}

// More inputs than sequences, beside each other in one call: each gets its own.
TEST_F(EmbeddingRoutesTest, ManyInputsOfOneCall) {
  json::array texts;
  std::vector<Floats> alone;
  for (int i = 0; i < 11; ++i) {
    texts.push_back(json::string(std::string(static_cast<size_t>(1 + 7 * i), "abcdefgh"[i % 8])));
    alone.push_back(OpenAi("\"input\": " + json::serialize(texts.back())));
  }
  const json::object whole = Good("/v1/embeddings", "{\"input\": " + json::serialize(texts) + "}");
  for (size_t i = 0; i < alone.size(); ++i) {
    EXPECT_EQ(FloatsOf(whole.at("data").at(i).at("embedding")), alone[i]) << i;
  }
}

TEST_F(EmbeddingRoutesTest, OpenAiErrors) {
  const char* const path = "/v1/embeddings";
  for (const char* input : {"5", "{}", "true", R"("")", R"(["a", ""])", "[]", "[[]]", "[[], [1]]",
                            "[1, \"a\"]", "[320]", "[-1]", "[1.5]", "[[1, 2], 3]"}) {
    ExpectRefusal(path, std::string(R"({"input": )") + input + "}", 400,
                  {"input", "invalid_request_error", R"("param":"input")"});
  }
  ExpectRefusal(path, "{}", 400, {"input", "missing"});
  ExpectRefusal(path, R"({"input": null})", 400, {"missing"});
  ExpectRefusal(path, R"({"input": "a", "encoding_format": "int8"})", 400,
                {"encoding_format", "base64"});
  ExpectRefusal(path, R"({"input": "a", "model": "nope"})", 404, {"nope"});
  const std::string longest(500, 'q');
  ExpectRefusal(path, R"({"input": ["a", ")" + longest + "\"]}", 400,
                {"context_length_exceeded", "input 1", std::to_string(Ids(longest).size()), "128"});
}

TEST_F(EmbeddingRoutesTest, Ollama) {
  const Floats abc = OpenAi(R"("input": "abc")");
  const json::object whole = Good("/api/embed", R"({"model": "tiny", "input": ["abc", "b"]})");
  EXPECT_EQ(whole.at("model"), "tiny");
  ASSERT_EQ(whole.at("embeddings").as_array().size(), 2u);
  EXPECT_EQ(FloatsOf(whole.at("embeddings").at(0)), abc);
  EXPECT_EQ(whole.at("prompt_eval_count").to_number<size_t>(), Ids("abc").size() + Ids("b").size());
  EXPECT_GT(whole.at("total_duration").to_number<int64_t>(), 0);
  EXPECT_GE(whole.at("load_duration").to_number<int64_t>(), 0);
  const json::object one = Good("/api/embed", R"({"input": "abc", "dimensions": 8})");
  EXPECT_EQ(FloatsOf(one.at("embeddings").at(0)), OpenAi(R"("input": "abc", "dimensions": 8)"));
  // Nothing asked for: the model is loaded.
  for (const char* body : {"{}", R"({"input": ""})", R"({"input": []})"}) {
    EXPECT_EQ(Good("/api/embed", body).at("embeddings"), json::array()) << body;
  }
  // The older one has a single vector, as long as the model made it.
  const json::object old = Good("/api/embeddings", R"({"model": "tiny", "prompt": "abc"})");
  EXPECT_EQ(old.size(), 1u);
  Floats unit = FloatsOf(old.at("embedding"));
  EXPECT_GT(std::abs(Length(unit) - 1), 0.01);
  Normalize(2, unit);
  for (size_t i = 0; i < kDim; ++i) EXPECT_NEAR(unit[i], abc[i], 1e-6);
  EXPECT_EQ(Good("/api/embeddings", R"({"prompt": ""})").at("embedding"), json::array());
}

TEST_F(EmbeddingRoutesTest, OllamaCutsUnlessToldNotTo) {
  const std::string longest(500, 'q');
  const std::vector<int32_t> ids = Ids(longest);
  const json::array kept(ids.begin(), ids.begin() + kContext);
  const json::object cut = Good("/api/embed", R"({"input": ")" + longest + "\"}");
  EXPECT_EQ(cut.at("prompt_eval_count"), kContext);
  EXPECT_EQ(FloatsOf(cut.at("embeddings").at(0)), OpenAi("\"input\": " + json::serialize(kept)));
  const std::string whole = R"("input": ["a", ")" + longest + R"("], "truncate": )";
  EXPECT_EQ(Post("/api/embed", "{" + whole + "true}")->status(), 200);
  ExpectRefusal("/api/embed", "{" + whole + "false}", 400,
                {"input[1]", std::to_string(ids.size()), "128"});
  const json::object smaller =
      Good("/api/embed", R"({"input": "abcdef", "options": {"num_ctx": 4}})");
  EXPECT_EQ(smaller.at("prompt_eval_count"), 4);
  ExpectRefusal("/api/embed",
                R"({"input": "abcdef", "truncate": false, "options": {"num_ctx": 4}})", 400,
                {"context holds 4"});
}

TEST_F(EmbeddingRoutesTest, OllamaErrors) {
  ExpectRefusal("/api/embed", R"({"input": 5})", 400, {"input"});
  ExpectRefusal("/api/embed", R"({"input": ["a", 5]})", 400, {"input"});
  ExpectRefusal("/api/embed", R"({"input": "a", "dimensions": 65})", 400, {"dimensions", "64"});
  ExpectRefusal("/api/embed", R"({"input": "a", "truncate": "no"})", 400, {"truncate"});
  ExpectRefusal("/api/embed", R"({"input": "a", "options": {"num_ctx": "x"}})", 400, {"num_ctx"});
  ExpectRefusal("/api/embed", R"({"model": "nope", "input": "a"})", 404, {"nope"});
  ExpectRefusal("/api/embeddings", R"({"prompt": ["a"]})", 400, {"prompt"});
  ExpectRefusal("/api/embeddings", R"({"model": "nope", "prompt": "a"})", 404, {"nope"});
}

TEST_F(EmbeddingRoutesTest, LlamaServer) {
  const Floats abc = OpenAi(R"("input": "abc")");
  for (const char* path : {"/embedding", "/embeddings", "/v1/embeddings"}) {
    const json::value reply = Post(path, R"({"content": ["abc", "b"]})")->json();
    ASSERT_TRUE(reply.is_array()) << path;
    ASSERT_EQ(reply.as_array().size(), 2u);
    EXPECT_EQ(reply.at(1).at("index"), 1);
    ASSERT_EQ(reply.at(0).at("embedding").as_array().size(), 1u);
    EXPECT_EQ(FloatsOf(reply.at(0).at("embedding").at(0)), abc) << path;
  }
  const json::value raw = Post("/embedding", R"({"input": "abc", "embd_normalize": -1})")->json();
  Floats unit = FloatsOf(raw.at(0).at("embedding").at(0));
  EXPECT_GT(std::abs(Length(unit) - 1), 0.01);
  Normalize(2, unit);
  for (size_t i = 0; i < kDim; ++i) EXPECT_NEAR(unit[i], abc[i], 1e-6);
  ExpectRefusal("/embedding", "{}", 400, {"content", "missing"});
  ExpectRefusal("/embedding", R"({"content": []})", 400, {"content"});
  ExpectRefusal("/embedding", R"({"content": "a", "embd_normalize": "x"})", 400,
                {"embd_normalize"});
  ExpectRefusal("/embedding", R"({"content": ")" + std::string(500, 'q') + "\"}", 400,
                {"exceed_context_size_error", R"("n_ctx":128)", "n_prompt_tokens"});
}

TEST_F(EmbeddingRoutesTest, AClientThatGoesAwayEndsIt) {
  const auto exchange = std::make_shared<RecordedExchange>(R"({"input": ["a", "b", "c", "d"]})");
  FindRoute(routes_, "POST", "/v1/embeddings")->handler(exchange);
  exchange->Disconnect();
  ASSERT_TRUE(exchange->WaitForEnd());
  EXPECT_EQ(exchange->ended(), 1);
  EXPECT_EQ(OpenAi(R"("input": "abc")").size(), kDim);
}

class MeanRoutesTest : public EmbeddingRoutesTest {
 protected:
  MeanRoutesTest() : EmbeddingRoutesTest(Pooling::kMean) {}
};
class NoPoolingRoutesTest : public EmbeddingRoutesTest {
 protected:
  NoPoolingRoutesTest() : EmbeddingRoutesTest(Pooling::kNone) {}
};
class RankRoutesTest : public EmbeddingRoutesTest {
 protected:
  RankRoutesTest() : EmbeddingRoutesTest(Pooling::kRank) {}
};

TEST_F(NoPoolingRoutesTest, AVectorForEachToken) {
  const json::value reply = Post("/embeddings", R"({"content": "abc"})")->json();
  EXPECT_EQ(reply.at(0).at("embedding").as_array().size(), Ids("abc").size());
  EXPECT_EQ(FloatsOf(reply.at(0).at("embedding").at(1)).size(), kDim);
  ExpectRefusal("/v1/embeddings", R"({"input": "abc"})", 400, {"pooling none", "--pooling last"});
  ExpectRefusal("/api/embed", R"({"input": "abc"})", 400, {"pooling none", "--pooling last"});
}

TEST_F(MeanRoutesTest, IsOfAllTokens) {
  const Floats mean = OpenAi(R"("input": "abc")");
  EXPECT_NEAR(Length(mean), 1, 1e-6);
  // Without the flag the same file gives the last token's.
  HostOptions options;
  options.model = served_.options();
  ModelHost host(options, served_.model());
  ServerContext context;
  context.host = &host;
  const auto last =
      CallRoute(OpenAiRoutes(context), "POST", "/v1/embeddings", R"({"input": "abc"})");
  EXPECT_NE(FloatsOf(last->json().at("data").at(0).at("embedding")), mean);
  EXPECT_EQ(FloatsOf(last->json().at("data").at(0).at("embedding")).size(), kDim);
}

TEST_F(RankRoutesTest, IsNotOffered) {
  ExpectRefusal("/v1/embeddings", R"({"input": "abc"})", 400, {"rank", "--pooling last"});
  ExpectRefusal("/api/embed", R"({"input": "abc"})", 501, {"rank"});
  ExpectRefusal("/embedding", R"({"content": "abc"})", 501, {"rank"});
}

}  // namespace
}  // namespace sluice
