// `ceiling` in the timings: who asks for it gets it, in both dialects that have
// timings, and it adds up; the log line's form.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <memory>
#include <string>

#include "src/server/dialects.h"
#include "src/server/timings.h"
#include "tests/server/routes.h"
#include "tests/server/tiny_served.h"

namespace sluice {
namespace {

namespace json = boost::json;

double Number(const json::value& v) { return v.to_number<double>(); }

class CeilingTest : public testing::Test {
 protected:
  CeilingTest() {
    Result<std::shared_ptr<ServedModel>> model =
        ServedModel::Load(served_.entry(), served_.options());
    EXPECT_TRUE(model.ok()) << model.status().message();
    HostOptions options;
    options.model = served_.options();
    host_ = std::make_unique<ModelHost>(std::move(options), *std::move(model));
    context_.host = host_.get();
    routes_ = OpenAiRoutes(context_);
    for (Route& route : LlamaRoutes(context_)) routes_.push_back(std::move(route));
  }

  json::object Timings(const char* path, const std::string& more, HttpHeaders headers = {}) {
    const auto exchange =
        std::make_shared<RecordedExchange>(R"({"prompt": "abc", "max_tokens": 4)" + more + "}");
    exchange->mutable_request().headers = std::move(headers);
    FindRoute(routes_, "POST", path)->handler(exchange);
    EXPECT_TRUE(exchange->WaitForEnd());
    EXPECT_EQ(exchange->status(), 200) << path;
    return exchange->json().at("timings").as_object();
  }

  TinyServed served_{""};
  std::unique_ptr<ModelHost> host_;
  ServerContext context_;
  std::vector<Route> routes_;
};

TEST_F(CeilingTest, OnlyForThoseWhoAsk) {
  for (const char* path : {"/v1/completions", "/completion"}) {
    EXPECT_FALSE(Timings(path, "").contains("ceiling")) << path;
    EXPECT_FALSE(Timings(path, "", {{"X-Sluice-Ceiling", "0"}}).contains("ceiling")) << path;
    EXPECT_TRUE(Timings(path, R"(, "ceiling": true)").contains("ceiling")) << path;
    const json::object timings = Timings(path, "", {{"x-sluice-ceiling", "1"}});
    ASSERT_TRUE(timings.contains("ceiling")) << path;
    const json::object& ceiling = timings.at("ceiling").as_object();
    double sum = 0;
    const json::object& stalls = ceiling.at("stalls_s").as_object();
    EXPECT_EQ(stalls.size(), kCauses);
    for (const auto& [name, seconds] : stalls) sum += Number(seconds);
    EXPECT_NEAR(sum, Number(ceiling.at("wall_s")), 1e-9);
    const double phases =
        1e-3 * (Number(timings.at("prompt_ms")) + Number(timings.at("predicted_ms")));
    EXPECT_GE(sum, 0.97 * phases);
    EXPECT_TRUE(ceiling.at("prefill").as_object().contains("binds"));
  }
}

TEST(CeilingLog, NamesTheCausesOfMoreThanAPercent) {
  RequestWork work;
  work.decode.seconds = 2;
  work.decode.weight_bytes = 1e9;
  work.queue_s = 1;
  work.sampling_s = 0.001;
  work.ceilings.decode.read_gb_s = 1;
  EXPECT_EQ(CeilingLog(work),
            " bandwidth_ratio=0.50 compute_ratio=0.00 stalls=weight_stream:67%,queue:33%");
  EXPECT_EQ(CeilingLog({}), " bandwidth_ratio=0.00 compute_ratio=0.00 stalls=-");
}

}  // namespace
}  // namespace sluice
