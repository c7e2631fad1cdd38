// sluice template over files of its own and a tiny vocabulary.
#include "tests/cli/run_sluice.h"
#include "tests/text/tiny_vocab.h"

namespace sluice {
namespace {

struct TemplateCommand : ::testing::Test {
  ProgramResult Run(const std::string& source, const std::string& request) {
    const std::string path = folder.path("t.jinja");
    std::ofstream(path, std::ios::binary) << source;
    return RunSluice({"template", path}, {}, request);
  }
  TempFolder folder;
};

TEST_F(TemplateCommand, PrintsThePromptAndNothingElse) {
  const ProgramResult result =
      Run("{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }};{% endfor %}"
          "{{ tools is none }}{{ add_generation_prompt }}{{ x }}{{ eos_token is defined }}",
          R"({"messages": [{"role": "user", "content": "h\u00e9"}], "bos_token": "<s>",
              "eos_token": null, "add_generation_prompt": true, "extra": {"x": 1.0}})");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "<s>user: h\u00e9;TrueTrue1.0False");
}

TEST_F(TemplateCommand, TheClockIsTheRequests) {
  EXPECT_EQ(
      Run("{{ strftime_now('%d %b %Y %H:%M %A %j') }}", R"({"now": "2023-02-01 04:05:06"})").out,
      "01 Feb 2023 04:05 Wednesday 032");
  EXPECT_TRUE(Run("", R"({"now": "2023-02-30 04:05:06"})").IsOneLineError(2));
}

TEST_F(TemplateCommand, VarsAreTheVariables) {
  EXPECT_EQ(Run("{{ messages is defined }}{{ a.b }}", R"({"vars": {"a": {"b": [1, null]}}})").out,
            "False[1, None]");
}

TEST_F(TemplateCommand, RaisingIsExitCodeOneAndTheMessage) {
  const ProgramResult result = Run("x{{ raise_exception('Not so') }}", "{}");
  EXPECT_TRUE(result.IsOneLineError(1));
  EXPECT_EQ(result.err, "sluice template: Not so\n");
}

TEST_F(TemplateCommand, BadInputIsOneLine) {
  EXPECT_TRUE(Run("{{ x", "{}").IsOneLineError(1));
  EXPECT_TRUE(Run("{{ x.y }}", "{}").IsOneLineError(1));
  EXPECT_TRUE(Run("", "no json").IsOneLineError(2));
  EXPECT_TRUE(Run("", "[1]").IsOneLineError(2));
  EXPECT_TRUE(RunSluice({"template", folder.path("none.jinja")}, {}, "{}").IsOneLineError(1));
}

TEST_F(TemplateCommand, AModelsTemplatesAndTokens) {
  TinyVocab vocab("gpt2");
  vocab.AddByteChars();  // ids are the bytes
  vocab.AddMerge("h", "i");
  vocab.Add("<bos>", 0, kTypeControl);
  vocab.writer.AddString("tokenizer.ggml.pre", "gpt-2");
  vocab.writer.AddU32("tokenizer.ggml.bos_token_id", 257);
  vocab.writer.AddString("tokenizer.chat_template", "{{ bos_token }}plain");
  vocab.writer.AddString("tokenizer.chat_template.tool_use", "with {{ tools|length }} tools");
  vocab.Loaded();
  const std::string model = vocab.folder.path("tiny.gguf");
  EXPECT_EQ(RunSluice({"template", model}, {}, R"({"messages": []})").out, "<bos>plain");
  EXPECT_EQ(RunSluice({"template", model}, {}, R"({"tools": [{}, {}]})").out, "with 2 tools");
}

}  // namespace
}  // namespace sluice
