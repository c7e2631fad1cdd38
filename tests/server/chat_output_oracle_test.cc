// What the families' templates write of a call is what ChatOutput reads: the
// oracles of templates, from the user's words on.
#include <gtest/gtest.h>

#include <string>

#include "src/server/chat_output.h"
#include "src/server/chat_output_parser.h"
#include "tests/text/shared_oracles.h"

namespace sluice {
namespace {

namespace json = boost::json;

struct FirstCall {
  std::string name, arguments;
};

FirstCall Read(const ChatOutputOptions& options, std::string_view text, size_t size) {
  ChatOutput output(options);
  FirstCall first;
  const auto take = [&](const ChatDelta& delta) {
    for (const ToolCallDelta& call : delta.tool_calls) {
      if (call.index > 0) continue;
      first.name += call.name;
      first.arguments += call.arguments;
    }
  };
  for (size_t at = 0; at < text.size(); at += size) take(output.Push(text.substr(at, size)));
  take(output.Finish());
  return first;
}

class ChatOutputOracle : public testing::TestWithParam<std::string> {};

TEST_P(ChatOutputOracle, ReadsWhatTheTemplateWrites) {
  if (GetParam() == "absent") GTEST_SKIP() << "no shared oracles";
  const json::object oracle = ReadOracle("templates", GetParam());
  if (!oracle.contains("template")) GTEST_SKIP() << "no template";
  ChatOutputOptions options;
  options.template_source = std::string(std::string_view(oracle.at("template").as_string()));
  options.tools = true;
  const FamilyMarks family = FindFamily(options.template_source);
  // Harmony's history is not what its models write; bare JSON is a call only at an answer's start.
  if (family.harmony || family.calls.front().kind == CallMarks::Kind::kBareJson) {
    GTEST_SKIP() << "no marks around calls";
  }
  size_t read = 0;
  for (const json::value& one : oracle.at("cases").as_array()) {
    const json::object& test = one.as_object();
    if (!test.contains("expected")) continue;
    const std::string expected(std::string_view(test.at("expected").as_string()));
    std::string user;
    for (const json::value& message : test.at("messages").as_array()) {
      const json::object& m = message.as_object();
      if (m.at("role") == "user" && m.at("content").is_string()) user = m.at("content").as_string();
      if (!m.contains("tool_calls") || !m.at("tool_calls").is_array()) continue;
      const json::value& function = m.at("tool_calls").at(0).at("function");
      const std::string name(std::string_view(function.at("name").as_string()));
      const size_t asked = expected.find(user);
      if (asked == expected.npos) break;
      const std::string answer = expected.substr(asked + user.size());
      if (answer.find(name) == answer.npos) break;  // the template leaves calls out
      const json::value& arguments = function.at("arguments");
      if (!arguments.is_object()) break;  // some templates quote what is text already
      for (const size_t size : {size_t{1}, size_t{5}, answer.size()}) {
        const FirstCall call = Read(options, answer, size);
        EXPECT_EQ(call.name, name) << test.at("name") << ": " << answer;
        boost::system::error_code error;
        EXPECT_EQ(json::parse(call.arguments, error), arguments)
            << test.at("name") << ": " << call.arguments << "\n"
            << answer;
      }
      ++read;
      break;
    }
  }
  if (read == 0) GTEST_SKIP() << "its template writes no calls";
}

INSTANTIATE_TEST_SUITE_P(Templates, ChatOutputOracle, testing::ValuesIn(OracleNames("templates")),
                         [](const auto& info) { return TestName(info.param); });

}  // namespace
}  // namespace sluice
