// What --help prints, of every command: no wider than 80 columns on a pipe, no words of CLI11's.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/cli/run_sluice.h"
#include "tests/cli/terminal.h"

namespace sluice {
namespace {

// As `sluice --help` lists them.
std::vector<std::string> Commands() {
  std::istringstream lines(RunSluice({"--help"}).out);
  std::vector<std::string> commands;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (inside && !line.starts_with("  ")) break;
    if (inside && line[2] != ' ') commands.push_back(line.substr(2, line.find(' ', 2) - 2));
    inside |= line == "Commands:";
  }
  return commands;
}

TEST(HelpTest, EveryCommandFits80Columns) {
  std::vector<std::vector<std::string>> all = {{"--help"}};
  for (const std::string& command : Commands()) all.push_back({command, "--help"});
  ASSERT_EQ(all.size(), 17u) << "a new command, or a list that was not understood";
  for (const std::vector<std::string>& arguments : all) {
    const ProgramResult help = RunSluice(arguments);
    EXPECT_EQ(help.exit_code, 0) << arguments[0];
    EXPECT_NE(help.out.find("Example"), std::string::npos) << arguments[0];
    EXPECT_NE(help.out.find("Usage: sluice"), std::string::npos) << arguments[0];
    for (const char* noise : {"UINT", "INT:", "FLOAT", "REQUIRED", " in [", "Excludes",
                              "Needs:", "Env:", "SIZE [", "\x1b"}) {
      EXPECT_EQ(help.out.find(noise), std::string::npos) << noise << " in " << help.out;
    }
    std::istringstream lines(help.out);
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(Widest(line), 80u) << arguments[0] << ": " << line;
      EXPECT_FALSE(line.ends_with(' ')) << arguments[0] << ": " << line;
    }
  }
}

// With every run of blanks and line ends as one blank.
std::string OneLine(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += word + " ";
  return line;
}

TEST(HelpTest, SaysWhatAFlagTakesAndItsDefault) {
  const std::string run = RunSluice({"run", "--help"}).out;
  EXPECT_NE(run.find("\n  -c, --ctx-size N "), std::string::npos) << run;
  EXPECT_NE(run.find("\n  -f, --file FILE "), std::string::npos) << run;
  EXPECT_NE(OneLine(run).find("(default 0.8)"), std::string::npos) << run;
  EXPECT_NE(run.find("Usage: sluice run [OPTIONS] [MODEL]\n"), std::string::npos) << run;
  const std::string tokenize = RunSluice({"tokenize", "--help"}).out;
  EXPECT_NE(tokenize.find("[OPTIONS] MODEL [TEXT]\n"), std::string::npos) << tokenize;
  EXPECT_NE(RunSluice({"perplexity", "--help"}).out.find("(required)"), std::string::npos);
  EXPECT_NE(OneLine(RunSluice({"top", "--help"}).out).find("(or $SLUICE_API_KEY)"),
            std::string::npos);
}

TEST(HelpTest, FollowsTheTerminal) {
  if (!Terminal::Works()) GTEST_SKIP() << "no tmux 3 here";
  const Terminal terminal(60, 200, std::string(SLUICE_BINARY) + " run --help");
  ASSERT_TRUE(terminal.Shows("left=0")) << terminal.Text();
  const std::string text = terminal.Text();
  // What tmux would have had to break itself would begin at the left.
  std::istringstream lines(text.substr(text.find("Usage:"), text.find("Example:")));
  for (std::string line; std::getline(lines, line) && line != "Example:";) {
    EXPECT_LE(Widest(line), 60u) << line;
    const bool begins =
        line.empty() || line[0] == ' ' || line.back() == ':' || line.starts_with("Usage:") ||
        line.find("MODEL defaults") == 0 ||
        line.find(';') != std::string::npos ||  // a list that fills more than a line
        line.find("closing line") != std::string::npos;
    EXPECT_TRUE(begins) << line;
  }
}

}  // namespace
}  // namespace sluice
