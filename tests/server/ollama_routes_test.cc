// Ollama's endpoints from body to answer, over a tiny model and its engine.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <thread>

#include "src/server/dialects.h"
#include "tests/server/routes.h"
#include "tests/server/tiny_served.h"

namespace sluice {
namespace {

namespace json = boost::json;

class OllamaRoutesTest : public testing::Test {
 protected:
  OllamaRoutesTest() : served_(kTinyTemplate) {
    HostOptions options;
    options.model = served_.options();
    options.max_models = 2;
    options.aliases = {"small", "other-name"};
    options.list = [this] { return listed_; };
    host_ = std::make_unique<ModelHost>(std::move(options), served_.model());
    context_.host = host_.get();
    context_.version = "1.2.3";
    context_.models_folder = served_.folder();
    context_.pull_command = {"/bin/sh", "-c", "echo pulled $0 >&2"};
    routes_ = OllamaRoutes(context_);
  }
  std::shared_ptr<RecordedExchange> Post(const char* path, const std::string& body) {
    return CallRoute(routes_, "POST", path, body);
  }
  json::value Get(const char* path) { return CallRoute(routes_, "GET", path)->json(); }

  TinyServed served_;
  std::vector<ModelEntry> listed_;
  std::unique_ptr<ModelHost> host_;
  ServerContext context_;
  std::vector<Route> routes_;
};

constexpr char kGreedy[] = R"("options": {"temperature": 0, "num_predict": 6, "ignore_eos": true})";

TEST_F(OllamaRoutesTest, GenerateStreamsAndTheWholeIsTheSame) {
  const std::string body = std::string(R"({"model": "small", "prompt": "hi", )") + kGreedy;
  const auto stream = Post("/api/generate", body + "}");
  EXPECT_EQ(stream->status(), 200);
  const std::vector<json::object> lines = stream->lines("", "\n");
  ASSERT_GE(lines.size(), 2u);
  std::string text;
  for (const json::object& line : lines) {
    EXPECT_EQ(line.at("model"), "small");
    text += std::string(line.at("response").as_string());
    if (line.contains("thinking")) text += std::string(line.at("thinking").as_string());
  }
  EXPECT_EQ(lines.back().at("done_reason"), "length");
  EXPECT_EQ(lines.back().at("eval_count"), 6);
  EXPECT_GT(lines.back().at("total_duration").to_number<int64_t>(), 0);
  const auto plain = Post("/api/generate", body + R"(, "stream": false})");
  const json::object whole = plain->json().as_object();
  EXPECT_EQ(whole.at("response"), json::string(text));
  EXPECT_EQ(whole.at("context"), lines.back().at("context"));
  EXPECT_EQ(whole.at("prompt_eval_count"), lines.back().at("prompt_eval_count"));
}

TEST_F(OllamaRoutesTest, ChatAnswersAndNumbersItsParts) {
  const auto exchange =
      Post("/api/chat", std::string(R"({"model": "tiny:latest", "stream": false, "logprobs": true,
           "top_logprobs": 2, "messages": [{"role": "user", "content": ""}], )") +
                            kGreedy + "}");
  const json::object reply = exchange->json().as_object();
  EXPECT_EQ(reply.at("model"), "tiny:latest");
  EXPECT_EQ(reply.at("message").at("role"), "assistant");
  EXPECT_EQ(reply.at("logprobs").as_array().size(), 6u);
  EXPECT_EQ(reply.at("logprobs").at(0).at("top_logprobs").as_array().size(), 2u);
}

TEST_F(OllamaRoutesTest, ErrorsAreOneText) {
  const auto missing = Post("/api/chat", R"({"model": "nope", "messages": [{"role": "user"}]})");
  EXPECT_EQ(missing->status(), 404);
  EXPECT_EQ(missing->json(), (json::object{{"error", "model 'nope' not found"}}));
  EXPECT_EQ(Post("/api/generate", "{")->status(), 400);
  EXPECT_EQ(
      Post("/api/generate", R"({"model": "small", "prompt": "a", "keep_alive": "x"})")->status(),
      400);
  const auto too_long =
      Post("/api/generate", R"({"model": "small", "prompt": ")" + std::string(500, 'q') + "\"}");
  EXPECT_EQ(too_long->status(), 400);
  EXPECT_TRUE(too_long->json().at("error").is_string());
}

TEST_F(OllamaRoutesTest, EmptyRequestsLoadAndUnload) {
  const json::object loaded =
      Post("/api/generate", R"({"model": "small", "keep_alive": "1h"})")->json().as_object();
  EXPECT_EQ(loaded.at("done_reason"), "load");
  EXPECT_EQ(loaded.at("response"), "");
  EXPECT_EQ(Get("/api/ps").at("models").as_array().size(), 1u);
  const json::object unloaded =
      Post("/api/chat", R"({"model": "small", "messages": [], "keep_alive": 0})")
          ->json()
          .as_object();
  EXPECT_EQ(unloaded.at("done_reason"), "unload");
  EXPECT_EQ(Get("/api/ps").at("models").as_array().size(), 0u);
  EXPECT_EQ(Post("/api/generate", R"({"model": "nope", "keep_alive": 0})")->status(), 404);
  // And back again.
  EXPECT_EQ(Post("/api/generate", R"({"model": "small"})")->json().at("done_reason"), "load");
}

TEST_F(OllamaRoutesTest, ListsNamesThatCanBeAskedFor) {
  ModelEntry another = served_.entry();
  another.name = "another";
  another.path += ".missing";
  listed_ = {another};
  const json::array models = Get("/api/tags").at("models").as_array();
  ASSERT_EQ(models.size(), 3u);
  EXPECT_EQ(models[0].at("name"), "small");
  EXPECT_EQ(models[1].at("name"), "other-name");
  EXPECT_EQ(models[2].at("name"), "another");
  const json::array loaded = Get("/api/ps").at("models").as_array();
  ASSERT_EQ(loaded.size(), 1u);
  EXPECT_EQ(loaded[0].at("name"), "small");
  EXPECT_EQ(loaded[0].at("size_vram"), 0);
  EXPECT_EQ(loaded[0].at("context_length"), 128);
  for (const char* name : {"small", "tiny", "other-name:latest"}) {
    EXPECT_EQ(Post("/api/show", std::string(R"({"model": ")") + name + "\"}")->status(), 200)
        << name;
  }
  EXPECT_EQ(Post("/api/show", R"({"model": "nope"})")->status(), 404);
  EXPECT_EQ(Post("/api/show", R"({})")->status(), 400);
  const auto unreadable = Post("/api/show", R"({"model": "another"})");
  EXPECT_GE(unreadable->status(), 400);
  EXPECT_EQ(unreadable->chunks()[0].find(served_.folder()), std::string::npos);
}

TEST_F(OllamaRoutesTest, DeletesTheFileAndNothingWithoutAName) {
  EXPECT_EQ(CallRoute(routes_, "DELETE", "/api/delete", "{}")->status(), 400);
  EXPECT_EQ(CallRoute(routes_, "DELETE", "/api/delete", R"({"model": "nope"})")->status(), 404);
  ASSERT_TRUE(std::filesystem::exists(served_.entry().path));
  EXPECT_EQ(CallRoute(routes_, "DELETE", "/api/delete", R"({"model": "small"})")->status(), 200);
  EXPECT_FALSE(std::filesystem::exists(served_.entry().path));
  EXPECT_EQ(Get("/api/ps").at("models").as_array().size(), 0u);
}

TEST_F(OllamaRoutesTest, PullsByName) {
  const auto exchange = Post("/api/pull", R"({"model": "hf.co/a/b"})");
  const std::vector<json::object> lines = exchange->lines("", "\n");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[1].at("status"), "pulled hf:a/b");
  EXPECT_EQ(Post("/api/pull", R"({"model": "--help"})")->status(), 400);
}

TEST_F(OllamaRoutesTest, TheRest) {
  EXPECT_EQ(Get("/api/version").at("sluice"), "1.2.3");
  EXPECT_TRUE(Get("/api/version").at("version").is_string());
  const auto root = CallRoute(routes_, "GET", "/");
  EXPECT_EQ(root->chunks()[0], "Ollama is running");
  for (const char* path : {"/api/copy", "/api/create", "/api/push"}) {
    EXPECT_EQ(Post(path, "{}")->status(), 501) << path;
  }
  for (const char* path : {"/api/pull", "/api/delete"}) {
    const char* method = path == std::string("/api/pull") ? "POST" : "DELETE";
    EXPECT_EQ(FindRoute(routes_, method, path)->access, Access::kManage) << path;
  }
  for (const Route& route : routes_) EXPECT_EQ(route.errors, ErrorShape::kOllama) << route.path;
}

}  // namespace
}  // namespace sluice
