// Who shares the prefixes of whom: by the server's setting, the request's key and its salt.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "src/server/dialects.h"
#include "tests/server/routes.h"
#include "tests/server/tiny_served.h"

namespace sluice {
namespace {

class CacheScopeTest : public testing::Test {
 protected:
  // Each test has a cache of its own.
  void Serve(bool scope_by_key) {
    ServedModelOptions options = served_.options();
    options.scope_by_key = scope_by_key;
    options.service.engine.prefix_cache = true;
    options.service.runner.sequences = 8;  // room for what is kept
    Result<std::shared_ptr<ServedModel>> model = ServedModel::Load(served_.entry(), options);
    ASSERT_TRUE(model.ok()) << model.status().message();
    HostOptions host_options;
    host_options.model = options;
    host_ = std::make_unique<ModelHost>(std::move(host_options), *std::move(model));
    context_.host = host_.get();
    routes_ = OpenAiRoutes(context_);
    for (Route& route : LlamaRoutes(context_)) routes_.push_back(std::move(route));
  }

  int64_t Cached(int key, const std::string& salt = "") {
    const std::string body = R"({"prompt": ")" + std::string(100, 'q') + R"(", "max_tokens": 1)" +
                             (salt.empty() ? "}" : R"(, "cache_salt": ")" + salt + "\"}");
    const boost::json::value answer = Call("/v1/completions", key, body);
    return answer.at("usage").at("prompt_tokens_details").at("cached_tokens").to_number<int64_t>();
  }
  boost::json::value Call(const char* path, int key, const std::string& body) {
    const auto exchange = std::make_shared<RecordedExchange>(body);
    exchange->mutable_request().key = key;
    FindRoute(routes_, "POST", path)->handler(exchange);
    EXPECT_TRUE(exchange->WaitForEnd());
    EXPECT_EQ(exchange->status(), 200) << path;
    return exchange->json();
  }

  TinyServed served_{""};
  std::unique_ptr<ModelHost> host_;
  ServerContext context_;
  std::vector<Route> routes_;
};

TEST_F(CacheScopeTest, SharedByAllKeys) {
  Serve(false);
  EXPECT_EQ(Cached(0), 0);
  EXPECT_GT(Cached(0), 0);
  EXPECT_GT(Cached(1), 0);
  EXPECT_GT(Cached(-1), 0);
  const boost::json::value native =
      Call("/completion", 2, R"({"prompt": ")" + std::string(100, 'q') + R"(", "n_predict": 1})");
  EXPECT_GT(native.at("timings").at("cache_n").to_number<int64_t>(), 0);
}

TEST_F(CacheScopeTest, ASaltDividesWhatIsShared) {
  Serve(false);
  EXPECT_EQ(Cached(0, "one"), 0);
  EXPECT_EQ(Cached(0), 0);
  EXPECT_EQ(Cached(0, "two"), 0);
  EXPECT_GT(Cached(1, "one"), 0);
}

TEST_F(CacheScopeTest, AKeysOwn) {
  Serve(true);
  EXPECT_EQ(Cached(0), 0);
  EXPECT_EQ(Cached(1), 0);
  EXPECT_GT(Cached(0), 0);
  EXPECT_EQ(Cached(0, "salt"), 0);
  EXPECT_EQ(Cached(1, "salt"), 0);
  EXPECT_GT(Cached(1, "salt"), 0);
}

}  // namespace
}  // namespace sluice
