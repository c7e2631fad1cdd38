// sluice doctor on made-up machines and on this one.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <cstdlib>

#include "tests/cli/run_sluice.h"
#include "tests/file/small_gguf.h"
#include "tests/machine/made_up_machine.h"

namespace sluice {
namespace {

class DoctorTest : public testing::Test {
 protected:
  ProgramResult Run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "doctor");
    return RunSluice(std::move(arguments), {{"SLUICE_MODELS", folder_.path("models")},
                                            {"SLUICE_CACHE", folder_.path("cache")}});
  }
  ProgramResult RunThere(std::vector<std::string> arguments) {
    arguments.push_back("--root");
    arguments.push_back(machine_.root());
    return Run(std::move(arguments));
  }

  const TempFolder folder_;
  const MadeUpMachine machine_;
};

TEST_F(DoctorTest, ExitCodesAndTheClosingLine) {
  ProgramResult result = RunThere({});
  EXPECT_EQ(result.exit_code, 0) << result.out << result.err;
  EXPECT_TRUE(result.out.ends_with("\n0 problems, 0 warnings, 0 notes\n")) << result.out;
  EXPECT_EQ(result.out.find('\033'), std::string::npos) << "plain on a pipe";

  machine_.Write("proc/self/status", "Cpus_allowed_list:\t0-2\n");
  result = RunThere({});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(result.out.ends_with("\n0 problems, 0 warnings, 1 note\n")) << result.out;

  machine_.Policies("scaling_governor", "powersave");
  result = RunThere({});
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_TRUE(result.out.ends_with("\n0 problems, 1 warning, 1 note\n")) << result.out;
  EXPECT_NE(result.out.find("warning  governor        powersave on 8 of 8 clock domains\n"),
            std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find("fix: sudo cpupower frequency-set -g performance\n"),
            std::string::npos);
  EXPECT_LT(result.out.find("governor"), result.out.find("affinity")) << "the worst first";

  // A model that cannot be run is a problem.
  std::filesystem::create_directories(folder_.path("models"));
  const SmallGguf small;
  ASSERT_TRUE(small.writer.Write(folder_.path("models/m.gguf")).ok());
  result = RunThere({"m"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.out.find("problem  model           cannot be run: "), std::string::npos)
      << result.out;
  EXPECT_TRUE(result.out.ends_with("\n1 problem, 1 warning, 1 note\n")) << result.out;
}

TEST_F(DoctorTest, Json) {
  machine_.Policies("scaling_governor", "powersave");
  const ProgramResult result = RunThere({"--json"});
  EXPECT_EQ(result.exit_code, 3) << result.err;
  const boost::json::object o = boost::json::parse(result.out).as_object();
  EXPECT_EQ(o.at("problems").to_number<int>(), 0);
  EXPECT_EQ(o.at("warnings").to_number<int>(), 1);
  const boost::json::array& findings = o.at("findings").as_array();
  ASSERT_GT(findings.size(), 20u);
  const boost::json::object& f = findings[0].as_object();
  EXPECT_EQ(f.at("check").as_string(), "governor");
  EXPECT_EQ(f.at("severity").as_string(), "warning");
  EXPECT_EQ(f.at("cost").at("value").to_number<double>(), 75);
  EXPECT_EQ(f.at("cost").at("unit").as_string(), "% of prefill speed");
  EXPECT_EQ(f.at("cost").at("basis").as_string(), "modelled");
  EXPECT_EQ(f.at("fix").as_array().size(), 2u);
  EXPECT_EQ(findings.back().at("severity").as_string(), "ok");
}

TEST_F(DoctorTest, HostileFilesStayOnTheirLine) {
  machine_.Policies("scaling_governor", "x\x1b[31m\n\xff");
  const ProgramResult text = RunThere({"--all"});
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_EQ(text.out.find('\x1b'), std::string::npos);
  EXPECT_NE(text.out.find("ok       governor        x\\x1B[31m\\x0A\\xFF\n"), std::string::npos)
      << text.out;
  EXPECT_NO_THROW(boost::json::parse(RunThere({"--json"}).out));
}

TEST_F(DoctorTest, Usage) {
  EXPECT_TRUE(Run({"--no-such-flag"}).IsOneLineError(2));
  EXPECT_TRUE(Run({"--root", "/does/not/exist"}).IsOneLineError(2));
  EXPECT_TRUE(Run({"--root", folder_.path()}).IsOneLineError(1)) << "no /proc in it";
  EXPECT_TRUE(Run({"no-such-model"}).IsOneLineError(1));
}

TEST_F(DoctorTest, ThisMachine) {
  const ProgramResult result = Run({"--json"});
  EXPECT_TRUE(result.exit_code == 0 || result.exit_code == 1 || result.exit_code == 3)
      << result.exit_code << result.err;
  const boost::json::object o = boost::json::parse(result.out).as_object();
  EXPECT_GT(o.at("measured").at("clock_ghz").to_number<double>(), 0.1);
  EXPECT_FALSE(o.at("target").as_string().empty());
}

}  // namespace
}  // namespace sluice
