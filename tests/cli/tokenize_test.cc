// sluice tokenize over a vocabulary of bytes and two merges.
#include <boost/json.hpp>

#include "tests/cli/run_sluice.h"
#include "tests/text/tiny_vocab.h"

namespace sluice {
namespace {

struct TokenizeCommand : ::testing::Test {
  TokenizeCommand() : vocab("gpt2") {
    vocab.AddByteChars();  // ids are the bytes
    vocab.AddMerge("h", "i");
    vocab.Add("<end>", 0, kTypeControl);
    vocab.writer.AddString("tokenizer.ggml.pre", "gpt-2");
    vocab.Loaded();
    path = vocab.folder.path("tiny.gguf");
  }
  TinyVocab vocab;
  std::string path;
};

TEST_F(TokenizeCommand, ReadsExactlyTheBytesOfStdin) {
  const ProgramResult result = RunSluice({"tokenize", path, "--ids"}, {}, std::string("hi\0\n", 4));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, "256 0 10\n");
}

TEST_F(TokenizeCommand, TheArgumentIsTheText) {
  const ProgramResult result = RunSluice({"tokenize", path, "hi", "--ids"}, {}, "ignored");
  EXPECT_EQ(result.out, "256\n");
}

TEST_F(TokenizeCommand, SpecialTokensOnlyWhenAsked) {
  const std::string text = "<end>";
  EXPECT_EQ(RunSluice({"tokenize", path, "--ids"}, {}, text).out, "60 101 110 100 62\n");
  EXPECT_EQ(RunSluice({"tokenize", path, "--ids", "--parse-special"}, {}, text).out, "257\n");
}

TEST_F(TokenizeCommand, JsonHoldsIdsAndText) {
  const ProgramResult result = RunSluice({"tokenize", path, "--json"}, {}, "hi\"\xC3");
  const boost::json::object object = boost::json::parse(result.out).as_object();
  EXPECT_EQ(boost::json::serialize(object.at("ids")), "[256,34,239,191,189]");
  EXPECT_EQ(object.at("text").as_string(), "hi\"\xEF\xBF\xBD");
}

TEST_F(TokenizeCommand, DecodesWhatItIsGiven) {
  EXPECT_EQ(RunSluice({"tokenize", path, "--decode"}, {}, "256, 257\n[33]").out, "hi<end>!");
  EXPECT_EQ(RunSluice({"tokenize", path, "--decode", "--skip-special"}, {}, "256 257 33").out,
            "hi!");
  // A llama is the bytes F0 9F A6 99: nothing leaves before it is whole.
  const ProgramResult stream =
      RunSluice({"tokenize", path, "--decode", "--stream", "--json"}, {}, "240 159 166 153 226");
  EXPECT_EQ(stream.out,
            "{\"ids\":[240],\"text\":\"\"}\n{\"ids\":[159],\"text\":\"\"}\n"
            "{\"ids\":[166],\"text\":\"\"}\n{\"ids\":[153],\"text\":\"\xF0\x9F\xA6\x99\"}\n"
            "{\"ids\":[226],\"text\":\"\"}\n{\"ids\":[],\"text\":\"\xEF\xBF\xBD\"}\n");
}

TEST_F(TokenizeCommand, ErrorsAreOneLine) {
  EXPECT_TRUE(RunSluice({"tokenize", path, "--decode"}, {}, "1 258").IsOneLineError(2));
  EXPECT_TRUE(RunSluice({"tokenize", path, "--decode"}, {}, "-1").IsOneLineError(2));
  EXPECT_TRUE(RunSluice({"tokenize", path, "--decode"}, {}, "hello").IsOneLineError(2));
  EXPECT_TRUE(RunSluice({"tokenize", path + "x", "hi"}).IsOneLineError(1));
  EXPECT_EQ(RunSluice({"tokenize", path, "hi", "--stream"}).exit_code, 2);  // without --decode
}

}  // namespace
}  // namespace sluice
