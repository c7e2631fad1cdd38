// sluice plan and sluice machine on small models.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <filesystem>
#include <fstream>

#include "tests/base/temp_folder.h"
#include "tests/cli/run_sluice.h"
#include "tests/cli/terminal.h"
#include "tests/model/tiny_model.h"

namespace sluice {
namespace {

namespace json = boost::json;

class PlanCliTest : public testing::Test {
 protected:
  PlanCliTest() {
    std::filesystem::create_directories(folder_.path("models"));
    TinyShape shape = TinyLlama();
    shape.dim = 256;
    shape.ffn_dim = 512;
    model_ = TinyModel(shape).Write(folder_.path("models/tiny.gguf"));
  }
  ProgramResult Run(std::vector<std::string> arguments) {
    return RunSluice(std::move(arguments), {{"SLUICE_MODELS", folder_.path("models")},
                                            {"SLUICE_CACHE", folder_.path("cache")}});
  }
  // Of a device: nothing is measured.
  ProgramResult On(const std::string& device, std::vector<std::string> more = {}) {
    std::vector<std::string> arguments = {"plan", "tiny", "--on", device};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(std::move(arguments));
  }

  const TempFolder folder_;
  std::string model_;
};

TEST_F(PlanCliTest, OfADevice) {
  const ProgramResult result = On("pi5", {"--json", "--concurrency", "2"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json::object o = json::parse(result.out).as_object();
  EXPECT_FALSE(o.at("measured").as_bool());
  EXPECT_EQ(o.at("read_gb_s").to_number<double>(), 17);
  const json::object& p = o.at("prediction").as_object();
  EXPECT_LT(p.at("decode_tok_s").to_number<double>(),
            p.at("decode_ceiling_tok_s").to_number<double>());
  EXPECT_GT(p.at("ttft_s").to_number<double>(), 0);
  const json::object& m = o.at("memory").as_object();
  EXPECT_EQ(m.at("kv_bytes_per_token").to_number<int>(), 2 * 2 * 2 * 32 * 2);
  EXPECT_EQ(m.at("room_bytes").to_number<double>(), 16e9);
  EXPECT_GT(o.at("contexts").as_array().size(), 0u);
  EXPECT_GT(o.at("formats").as_array().size(), 3u);
  EXPECT_FALSE(std::filesystem::exists(folder_.path("cache/panels")));  // no weight was touched
  const ProgramResult text = On("pi5");
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("TTFT"), std::string::npos);
  EXPECT_EQ(text.out.find('\x1b'), std::string::npos);
}

TEST_F(PlanCliTest, TextFits80Columns) {
  for (const ProgramResult& result :
       {On("pi5"), On("all", {"--threads", "1"}),
        On("pi5", {"--advise", "1000000 tok/s for 4 users"}), Run({"machine", "--threads", "1"})}) {
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_LE(Widest(result.out), 80u) << result.out;
  }
}

TEST_F(PlanCliTest, OwnDevicesAndPictures) {
  std::ofstream(folder_.path("d.json"))
      << R"({"devices": [{"name": "box", "bandwidth_gb_s": 200}]})";
  const std::string svg = folder_.path("p.svg");
  const ProgramResult result =
      On("box", {"--devices", folder_.path("d.json"), "--svg", svg, "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(json::parse(result.out).at("memory").at("room_bytes").is_null());
  const std::vector<uint8_t> bytes = ReadFile(svg);
  const std::string text(bytes.begin(), bytes.end());
  EXPECT_TRUE(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_EQ(text.find("inf"), std::string::npos);
  // In the cache folder it is found without a flag.
  std::filesystem::create_directories(folder_.path("cache"));
  std::filesystem::copy(folder_.path("d.json"), folder_.path("cache/devices.json"));
  EXPECT_EQ(On("box").exit_code, 0);
}

TEST_F(PlanCliTest, Advises) {
  const ProgramResult result = On("pi5", {"--advise", "1000000 tok/s for 4 users", "--json"});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const json::array advice = json::parse(result.out).as_array();
  EXPECT_EQ(advice.at(0).at("what").as_string(), "now");
  EXPECT_FALSE(advice.at(0).at("meets").as_bool());
  const ProgramResult text = On("pi5", {"--advise", "TTFT under 100 s at 32 prompts"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("met as it is"), std::string::npos);
}

TEST_F(PlanCliTest, OneLineErrors) {
  EXPECT_TRUE(Run({"plan", "none"}).IsOneLineError(1));
  EXPECT_TRUE(On("no-such-machine").IsOneLineError(2));
  EXPECT_TRUE(On("pi5", {"--advise", "be fast"}).IsOneLineError(2));
  const ProgramResult no_goal = On("pi5", {"--advise", ""});
  EXPECT_TRUE(no_goal.IsOneLineError(2)) << no_goal.err;
  EXPECT_TRUE(On("").IsOneLineError(2));
  EXPECT_TRUE(On("pi5", {"--kv-type", "q3"}).IsOneLineError(2));
  EXPECT_TRUE(
      On("pi5", {"--ctx-size", "100", "--prompt", "99", "--output", "2"}).IsOneLineError(2));
  EXPECT_TRUE(On("pi5", {"--prompt", "0"}).IsOneLineError(2));
  EXPECT_TRUE(On("pi5", {"--check"}).IsOneLineError(2));
  EXPECT_TRUE(Run({"plan", "tiny", "--pairs", "3"}).IsOneLineError(2));
  EXPECT_TRUE(On("pi5", {"--devices", folder_.path("none.json")}).IsOneLineError(1));
  EXPECT_TRUE(On("pi5", {"--svg", folder_.path("no/such/p.svg")}).IsOneLineError(1));
}

TEST_F(PlanCliTest, MeasuresKeepsAndChecks) {
  const ProgramResult machine = Run({"machine", "--threads", "1", "--json"});
  ASSERT_EQ(machine.exit_code, 0) << machine.err;
  const json::object o = json::parse(machine.out).as_object();
  const json::object& rates = o.at("rates").as_object();
  EXPECT_GT(rates.at("read").at("now").to_number<double>(), 0);
  EXPECT_GT(rates.at("stream.Q4_0").at("p95").to_number<double>(), 0);
  EXPECT_EQ(rates.at("read").at("samples").to_number<int>(), 1);
  // Kept: shown again, not measured again.
  const ProgramResult again = Run({"machine", "--threads", "1", "--json"});
  EXPECT_EQ(json::parse(again.out).at("rates").at("read").at("samples").to_number<int>(), 1);
  const ProgramResult text = Run({"machine", "--threads", "1"});
  EXPECT_NE(text.out.find("memory"), std::string::npos);
  EXPECT_EQ(text.out.find('\x1b'), std::string::npos);

  const ProgramResult plan = Run({"plan", "tiny", "--threads", "1", "--json"});
  ASSERT_EQ(plan.exit_code, 0) << plan.err;
  EXPECT_TRUE(json::parse(plan.out).at("measured").as_bool());
  const ProgramResult check =
      Run({"plan", "tiny", "--threads", "1", "--check", "--pairs", "2", "--prompt", "40",
           "--output", "8", "--concurrency", "2", "--json"});
  ASSERT_EQ(check.exit_code, 0) << check.err;
  const json::object c = json::parse(check.out).as_object();
  EXPECT_EQ(c.at("pairs").to_number<int>(), 2);
  EXPECT_GT(c.at("ttft_s").to_number<double>(), 0);
  EXPECT_GT(c.at("token_s").to_number<double>(), 0);
  EXPECT_GT(c.at("predicted_token_s").to_number<double>(), 0);
}

}  // namespace
}  // namespace sluice
