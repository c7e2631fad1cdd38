// The program as a user or a script meets it: eval, run and perplexity on a tiny
// model, the closing line, exit codes, errors of one line, help.
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <sstream>

#include "tests/base/temp_folder.h"
#include "tests/cli/run_sluice.h"
#include "tests/cli/terminal.h"
#include "tests/model/tiny_model.h"

namespace sluice {
namespace {

constexpr int kFailure = 1, kUsage = 2;

class CliTest : public testing::Test {
 protected:
  CliTest() : model_(TinyModel(TinyLlama("Q4_0")).Write(folder_.path("tiny.gguf"))) {}

  ProgramResult Sluice(std::vector<std::string> arguments, const std::string& input = "") {
    return RunSluice(std::move(arguments),
                     {{"SLUICE_CACHE", folder_.path("cache")}, {"SLUICE_MODELS", folder_.path()}},
                     input);
  }
  // Of a command that succeeds: one object on one line.
  boost::json::object Json(std::vector<std::string> arguments, const std::string& input = "") {
    arguments.push_back("--json");
    const ProgramResult r = Sluice(std::move(arguments), input);
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_EQ(r.out.find('\n'), r.out.size() - 1) << r.out;
    boost::system::error_code bad;
    const boost::json::value v = boost::json::parse(r.out, bad);
    EXPECT_TRUE(!bad && v.is_object()) << r.out;
    return v.is_object() ? v.as_object() : boost::json::object();
  }
  static std::vector<double> Numbers(const boost::json::value& v) {
    return boost::json::value_to<std::vector<double>>(v);
  }

  const TempFolder folder_;
  const std::string model_;
};

TEST_F(CliTest, EvalSaysWhatAnOracleNeeds) {
  const boost::json::object o =
      Json({"eval", model_, "--tokens", "5,100,260,270", "--greedy", "3"});
  EXPECT_EQ(Numbers(o.at("logits_last")).size(), TinyModel::kVocab);
  EXPECT_EQ(o.at("argmax").as_array().size(), 4u);
  const std::vector<double> logprobs = Numbers(o.at("logprobs"));
  ASSERT_EQ(logprobs.size(), 3u);
  double sum = 0;
  for (double lp : logprobs) {
    EXPECT_LT(lp, 0);
    sum -= lp;
  }
  EXPECT_NEAR(o.at("nll_sum").as_double(), sum, 1e-9 * sum);
  ASSERT_EQ(o.at("greedy").as_array().size(), 3u);
  EXPECT_EQ(o.at("greedy").as_array()[0], o.at("argmax").as_array()[3]);
}

TEST_F(CliTest, EvalReadsIdsFromAFileOrStdin) {
  const std::string ids = "5 100\n260,\t270\n";
  const std::string path = folder_.path("ids.txt");
  WriteFile(path, std::vector<uint8_t>(ids.begin(), ids.end()));
  const boost::json::object o = Json({"eval", model_, "--tokens", "5,100,260,270"});
  EXPECT_EQ(Json({"eval", "-m", model_, "-f", path}), o);
  EXPECT_EQ(Json({"eval", model_, "-f", "-"}, ids), o);
  EXPECT_EQ(Json({"eval", model_, "--tokens", "5,100,260,270", "-b", "1", "-t", "2", "--weights",
                  "repack"}),
            o);
  EXPECT_EQ(Json({"eval", "tiny", "--tokens", "5,100,260,270", "--weights", "panels"}), o);
}

TEST_F(CliTest, NoFlagTakesANan) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"run", model_, "-p", "a", "--temp", "nan"},
        {"top", "--interval", "NaN"},
        {"load", "http://127.0.0.1:1", "--duration", "nan"},
        {"serve", model_, "--max-stall-ms", "nan"}}) {
    const ProgramResult r = Sluice(arguments);
    EXPECT_EQ(r.exit_code, 2) << arguments[0];
    EXPECT_NE(r.err.find("expected a number"), std::string::npos) << r.err;
  }
}

TEST_F(CliTest, EvalForPeople) {
  const ProgramResult r = Sluice({"eval", model_, "--tokens", "5,100", "--greedy", "2"});
  EXPECT_EQ(r.exit_code, 0);
  for (const char* word : {"nll sum", "next", "greedy"}) {
    EXPECT_NE(r.out.find(word), std::string::npos) << r.out;
  }
}

TEST_F(CliTest, EvalRefusesWhatIsNoId) {
  EXPECT_TRUE(Sluice({"eval", model_, "--tokens", "1,two"}).IsOneLineError(kUsage));
  EXPECT_TRUE(Sluice({"eval", model_, "--tokens", "-1"}).IsOneLineError(kUsage));
  EXPECT_TRUE(Sluice({"eval", model_, "--tokens", "99999999999"}).IsOneLineError(kUsage));
  EXPECT_TRUE(Sluice({"eval", model_, "--tokens", ""}).IsOneLineError(kUsage));
  const ProgramResult r = Sluice({"eval", model_, "--tokens", "5,320"});
  EXPECT_TRUE(r.IsOneLineError(kUsage)) << r.err;
  EXPECT_NE(r.err.find("320"), std::string::npos);
}

TEST_F(CliTest, RunStreamsTextAndEndsWithOneLine) {
  const ProgramResult r =
      Sluice({"run", model_, "-p", "abc de", "-n", "4", "--temp", "0", "--ignore-eos"});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_TRUE(r.out.ends_with("\n"));
  ASSERT_FALSE(r.err.empty());
  EXPECT_EQ(r.err.find('\n'), r.err.size() - 1) << r.err;
  for (const char* word : {"prefill", "tok/s", "decode 4 tok", "ms/tok", "GB/s", "% of", "RSS",
                           "load", "weights", "KV", "logits "}) {
    EXPECT_NE(r.err.find(word), std::string::npos) << "no " << word << " in " << r.err;
  }
  EXPECT_EQ(r.err.find('\x1b'), std::string::npos) << "colours on a pipe";
}

TEST_F(CliTest, ACeilingThatIsNotTheMemorysIsExplained) {
  // This model fits in any cache.
  const boost::json::object o = Json({"run", model_, "-p", "abc", "-n", "64", "--ignore-eos"});
  EXPECT_FALSE(o.at("ceiling_remark").as_string().empty());
}

TEST_F(CliTest, RunAsJson) {
  const boost::json::object o =
      Json({"run", model_, "-p", "abc de", "-n", "4", "--temp", "0", "--ignore-eos"});
  for (const char* key :
       {"prompt_tokens", "prefill_tok_s", "generated_tokens", "decode_tok_s", "bytes_per_token",
        "gb_s", "read_bandwidth_gb_s", "ceiling_pct", "peak_rss_bytes", "load_s", "target",
        "logits_hash", "text", "finish_reason", "weights_resident_ratio", "joules"}) {
    EXPECT_TRUE(o.contains(key)) << key;
  }
  EXPECT_EQ(o.at("generated_tokens"), 4);
  EXPECT_EQ(o.at("finish_reason"), "length");
  EXPECT_GT(boost::json::value_to<double>(o.at("bytes_per_token")), 1000);
  EXPECT_GT(boost::json::value_to<double>(o.at("read_bandwidth_gb_s")), 0);
  EXPECT_EQ(o.at("logits_hash").as_string().size(), 16u);
}

TEST_F(CliTest, RunAccountsForItsTime) {
  const boost::json::object o =
      Json({"run", model_, "-p", "abc de", "-n", "200", "--ignore-eos", "-t", "2"});
  const boost::json::object& ceiling = o.at("ceiling").as_object();
  double sum = 0;
  for (const auto& [cause, seconds] : ceiling.at("stalls_s").as_object()) {
    EXPECT_GE(seconds.to_number<double>(), 0) << cause;
    sum += seconds.to_number<double>();
  }
  const double wall_s = o.at("wall_s").to_number<double>();
  EXPECT_NEAR(sum, wall_s, 0.03 * wall_s + 5e-4);
  EXPECT_NE(ceiling.at("binds").as_string(), "");
  EXPECT_GT(ceiling.at("compute_ratio").to_number<double>(), 0);
}

TEST_F(CliTest, RunExplainsInPlainWords) {
  const ProgramResult r =
      Sluice({"run", model_, "-p", "abc de", "-n", "50", "--ignore-eos", "--explain"});
  EXPECT_EQ(r.exit_code, 0);
  for (const char* words : {"Decode reached ", "binds.", " s went:\n", " %  #", "Weights: 100 % of",
                            "page faults from disk per token"}) {
    EXPECT_NE(r.err.find(words), std::string::npos) << words << " in " << r.err;
  }
  EXPECT_EQ(r.err.find('\x1b'), std::string::npos) << "colours on a pipe";
  std::istringstream lines(r.err);
  std::string line;
  std::getline(lines, line);  // the closing line
  while (std::getline(lines, line)) EXPECT_LE(line.size(), 80u) << line;
}

TEST_F(CliTest, RunTakesThePromptFromAFlagAFileOrStdin) {
  const std::string prompt = "abc de";
  const std::string path = folder_.path("prompt.txt");
  WriteFile(path, std::vector<uint8_t>(prompt.begin(), prompt.end()));
  const std::vector<std::string> flags = {"-n", "1", "--temp", "0"};
  const auto hash = [&](std::vector<std::string> arguments, const std::string& input) {
    arguments.insert(arguments.begin(), {"run", model_});
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return Json(arguments, input).at("logits_hash");
  };
  const auto expected = hash({"-p", prompt}, "");
  EXPECT_EQ(hash({"-f", path}, ""), expected);
  EXPECT_EQ(hash({}, prompt), expected);
  EXPECT_EQ(hash({}, prompt + "\n"), expected);  // as echo writes it
  EXPECT_NE(hash({}, prompt + "\n\n"), expected);
  EXPECT_NE(hash({"-p", "abd de"}, ""), expected);
}

TEST_F(CliTest, RunIsTheSameWithTheSameSeedAndOtherThreads) {
  const auto run = [&](const char* seed, const char* threads, const char* chunk) {
    return Json({"run", model_, "-p", "hello there", "-n", "20", "-s", seed, "-t", threads, "-b",
                 chunk, "--ignore-eos"});
  };
  const boost::json::object a = run("1", "1", "512"), b = run("1", "2", "3");
  EXPECT_EQ(a.at("text"), b.at("text"));
  EXPECT_EQ(a.at("logits_hash"), b.at("logits_hash"));
  EXPECT_NE(run("2", "1", "512").at("text"), a.at("text"));
}

TEST_F(CliTest, RunKnowsLlamaCppsFlags) {
  const ProgramResult r = Sluice({"run", "-m", model_, "-p", "a", "-n", "1", "-c", "64", "-t", "1",
                                  "-tb", "1", "-b", "16", "-ngl", "99", "-ctk", "f16"});
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_NE(r.err.find("ignored"), std::string::npos) << r.err;
}

TEST_F(CliTest, FlagsOfLlamaCppThatMeanNothingHereAreSaid) {
  const std::vector<std::string> usual = {"run", "-p", "abc", "-n", "2", "--temp", "0", "-t", "1"};
  const auto run = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = usual;
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return Sluice(arguments);
  };
  const std::string expected = run({model_}).out;
  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"-fa", model_},
                                             {"-fa", "on", model_},
                                             {"--flash-attn", "off", model_},
                                             {"--flash-attn=auto", model_},
                                             {"-no-cnv", model_},
                                             {"--no-conversation", model_},
                                             {"--no-warmup", model_},
                                             {"--no-mmap", model_}}) {
    const ProgramResult r = run(flags);
    EXPECT_EQ(r.exit_code, 0) << flags[0] << r.err;
    EXPECT_EQ(r.out, expected) << flags[0];
    EXPECT_NE(r.err.find("ignored"), std::string::npos) << flags[0] << r.err;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 2) << r.err;
  }
}

TEST_F(CliTest, KeysAndValuesHaveOneType) {
  const auto type = [&](const std::vector<std::string>& flags) {
    std::vector<std::string> arguments = {"run", model_, "-p", "abc", "-n", "1"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return std::string(Json(arguments).at("kv_type").as_string());
  };
  EXPECT_EQ(type({"-ctk", "q8_0", "-ctv", "q8_0"}), "q8");
  EXPECT_EQ(type({"--cache-type-k", "q8", "--cache-type-v", "q8_0"}), "q8");
  EXPECT_EQ(type({"-ctv", "f32"}), "f32");
  EXPECT_EQ(type({"-ctk", "f32"}), "f32");
  EXPECT_TRUE(
      Sluice({"run", model_, "-p", "a", "-ctk", "f16", "-ctv", "f32"}).IsOneLineError(kUsage));
}

TEST_F(CliTest, OneModelOnly) {
  const ProgramResult r = Sluice({"run", model_, "-m", model_, "-p", "a"});
  EXPECT_TRUE(r.IsOneLineError(kUsage)) << r.err;
  EXPECT_NE(r.err.find("--model"), std::string::npos) << r.err;
  EXPECT_TRUE(Sluice({"run", "-m", model_, "-m", model_, "-p", "a"}).IsOneLineError(kUsage));
}

TEST_F(CliTest, AnEmptyPromptIsSaid) {
  const ProgramResult empty = Sluice({"run", model_, "-p", "", "-n", "1"});
  EXPECT_NE(empty.err.find("BOS"), std::string::npos) << empty.err;
  EXPECT_NE(Sluice({"run", model_, "-n", "1"}, "").err.find("BOS"), std::string::npos);
  EXPECT_EQ(Sluice({"run", model_, "-p", "a", "-n", "1"}).err.find("BOS"), std::string::npos);
}

TEST_F(CliTest, ChatNeedsAModelBeforeAnythingElse) {
  const ProgramResult r = Sluice({"chat"});
  EXPECT_TRUE(r.IsOneLineError(kUsage)) << r.err;
  EXPECT_NE(r.err.find("chat template"), std::string::npos) << r.err;
}

TEST_F(CliTest, RunEndsAtTheContext) {
  const boost::json::object o =
      Json({"run", model_, "-p", "a", "-c", "16", "--ignore-eos", "--temp", "0"});
  EXPECT_EQ(o.at("finish_reason"), "length");
  const boost::json::object shifted = Json({"run", model_, "-p", "a", "-c", "16", "--ignore-eos",
                                            "--temp", "0", "--context-shift", "-n", "50"});
  EXPECT_EQ(shifted.at("generated_tokens"), 50);
}

TEST_F(CliTest, PerplexityOfAText) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "a few words again ";
  const boost::json::object o = Json({"perplexity", model_, "-f", "-", "-c", "64"}, text);
  const double value = boost::json::value_to<double>(o.at("perplexity"));
  EXPECT_GT(value, 1);
  const double scored = boost::json::value_to<double>(o.at("scored_tokens"));
  EXPECT_NEAR(std::log(value), boost::json::value_to<double>(o.at("nll_sum")) / scored, 1e-9);
  EXPECT_EQ(o.at("ctx_size"), 64);
  const boost::json::object kl = Json({"perplexity", model_, "-f", "-", "-c", "64", "--kl"}, text);
  EXPECT_GT(boost::json::value_to<double>(kl.at("kl")), 0);
  EXPECT_LT(boost::json::value_to<double>(kl.at("kl")), 0.1);
  EXPECT_EQ(kl.at("scored_tokens"), o.at("scored_tokens"));
  const boost::json::object none = Json({"perplexity", model_, "-f", "-", "-c", "64", "--kl",
                                         "--activations", "f32", "--kv-type", "f32"},
                                        text);
  EXPECT_EQ(boost::json::value_to<double>(none.at("kl")), 0);
  EXPECT_EQ(boost::json::value_to<double>(none.at("same_top")), 1);
  const ProgramResult shorter = Sluice({"perplexity", model_, "-f", "-"}, "two words");
  EXPECT_TRUE(shorter.IsOneLineError(kUsage)) << shorter.err;
}

TEST_F(CliTest, ErrorsAreOneLineAndTellUsageFromFailure) {
  const ProgramResult missing = Sluice({"run", folder_.path("none.gguf"), "-p", "x"});
  EXPECT_TRUE(missing.IsOneLineError(kFailure)) << missing.err;
  EXPECT_NE(missing.err.find("none.gguf"), std::string::npos);

  WriteFile(folder_.path("text.gguf"), std::vector<uint8_t>(100, 'x'));
  const ProgramResult foreign = Sluice({"eval", folder_.path("text.gguf"), "--tokens", "1"});
  EXPECT_TRUE(foreign.IsOneLineError(kFailure)) << foreign.err;
  EXPECT_NE(foreign.err.find("text.gguf"), std::string::npos);

  TinyModel unknown;
  unknown.set_architecture("mamba9000");
  const ProgramResult arch =
      Sluice({"run", unknown.Write(folder_.path("unknown.gguf")), "-p", "x"});
  EXPECT_TRUE(arch.IsOneLineError(kFailure)) << arch.err;
  EXPECT_NE(arch.err.find("mamba9000"), std::string::npos);

  for (const std::vector<std::string>& flags :
       std::vector<std::vector<std::string>>{{"--weights", "gpu"},
                                             {"--kv-type", "int3"},
                                             {"--numa", "both"},
                                             {"--huge-pages", "maybe"},
                                             {"--activations", "int4"},
                                             {"--top-p", "7"},
                                             {"-n", "0"},
                                             {"--logit-bias", "x"},
                                             {"--samplers", "magic"},
                                             {"--grammar", "root ::= x"},
                                             {"--grammar", "root ::= \"a\"", "-j", "{}"},
                                             {"--json-schema", "{"},
                                             {"-j", "{\"not\":{}}"},
                                             {"--relaxed", "--portable"},
                                             {"-c", "4"}}) {
    std::vector<std::string> arguments = {"run", model_, "-p", "a few words more"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const ProgramResult r = Sluice(arguments);
    EXPECT_TRUE(r.IsOneLineError(kUsage)) << flags[0] << ": " << r.exit_code << " " << r.err;
  }
}

TEST_F(CliTest, AloneItShowsItsHelp) {
  const ProgramResult r = Sluice({});
  EXPECT_EQ(r.exit_code, 0);
  EXPECT_NE(r.out.find("Example"), std::string::npos);
}

TEST_F(CliTest, AWordThatIsNoCommandIsNamed) {
  for (const std::vector<std::string>& words :
       std::vector<std::vector<std::string>>{{"frob"}, {"help", "frob"}, {"frob", "--help"}}) {
    const ProgramResult r = Sluice(words);
    EXPECT_TRUE(r.exit_code == kUsage && r.out.empty()) << r.out << r.err;
    EXPECT_NE(r.err.find("no command frob"), std::string::npos) << r.err;
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
  }
  EXPECT_EQ(Sluice({""}).exit_code, kUsage);
}

TEST_F(CliTest, OutputThatIsLostIsSaidWhateverElseWasFound) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"--help"},
                                             {"--version"},
                                             {"run", "--help"},
                                             {"doctor", "--quick"},
                                             {"inspect", model_},
                                             {"doctor", "--quick", "--json"},
                                             {"plan", model_, "--on", "pi5"},
                                             {"models"},
                                             {"run", model_, "-p", "a", "-n", "1"},
                                             {"machine", "-t", "1"}}) {
    const ProgramResult r =
        RunSluice(arguments, {{"SLUICE_CACHE", folder_.path("cache")}}, "", "/dev/full");
    EXPECT_EQ(r.exit_code, kFailure) << arguments[0];
    EXPECT_NE(r.err.find("cannot write all of the result\n"), std::string::npos)
        << arguments[0] << ": " << r.err;
  }
}

TEST_F(CliTest, JsonNumbersAreWrittenAsPeopleDo) {
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"run", model_, "-p", "a", "-n", "3", "--json"},
           {"bench", model_, "-p", "8", "-n", "4", "-r", "2", "-o", "jsonl"},
           {"plan", model_, "--on", "pi5", "--json"},
           {"doctor", "--quick", "--json"},
           {"eval", model_, "--tokens", "1,2", "--json"}}) {
    const ProgramResult r = Sluice(arguments);
    std::string text = r.out;  // without what stands in quotes
    for (size_t at = text.find('"'); at != std::string::npos; at = text.find('"', at)) {
      text.erase(at, text.find('"', at + 1) + 1 - at);
    }
    EXPECT_NE(text.find('.'), std::string::npos) << arguments[0] << r.err;
    EXPECT_EQ(text.find('E'), std::string::npos) << arguments[0] << ": " << text;
  }
}

TEST_F(CliTest, ClosingLinesFitATerminal) {
  if (!Terminal::Works()) GTEST_SKIP() << "no tmux 3 here";
  const Terminal terminal(80, 50,
                          std::string(SLUICE_BINARY) + " run " + model_ +
                              " -p \"abc de\" -n 9 --weights gguf --explain");
  ASSERT_TRUE(terminal.Shows("left=0")) << terminal.Text();
  const std::string text = terminal.Unbroken();
  std::istringstream lines(text.substr(text.find("prefill ")));
  for (std::string line; std::getline(lines, line) && !line.starts_with("left=");) {
    EXPECT_LE(Widest(line), 80u) << text;
  }
  EXPECT_NE(text.find(" GB/s"), std::string::npos) << text;
  EXPECT_NE(text.find("logits "), std::string::npos) << text;
}

TEST_F(CliTest, HelpListsTheTypesOfKeysAndValues) {
  for (const char* command : {"run", "bench"}) {
    EXPECT_NE(Sluice({command, "--help"}).out.find("q8_0"), std::string::npos) << command;
  }
}

TEST_F(CliTest, HelpIsACommandToo) {
  EXPECT_EQ(Sluice({"help"}).out, Sluice({"--help"}).out);
  EXPECT_EQ(Sluice({"help", "run"}).out, Sluice({"run", "--help"}).out);
  EXPECT_EQ(Sluice({"help", "run"}).exit_code, 0);
}

TEST_F(CliTest, FlagsThatDoNotExistAreUsage) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"fly"},
                                             {"run", "-hf", "owner/model"},
                                             {"run", "--no-such-flag"},
                                             {"run", model_, "-t", "many"},
                                             {"run", model_, "-b", "0"},
                                             {"eval", model_, "--tokens", "1", "-f", "x"},
                                             {"perplexity", model_}}) {
    const ProgramResult r = Sluice(arguments);
    EXPECT_EQ(r.exit_code, kUsage);
    EXPECT_EQ(std::count(r.err.begin(), r.err.end(), '\n'), 1) << r.err;
    EXPECT_TRUE(r.out.empty()) << r.out;
  }
}

TEST_F(CliTest, EveryCommandHasHelpWithAnExample) {
  const ProgramResult all = Sluice({"--help"});
  EXPECT_EQ(all.exit_code, 0);
  for (const char* command :
       {"run", "chat", "eval", "perplexity", "tokenize", "template", "inspect", "models", "pull"}) {
    EXPECT_NE(all.out.find(command), std::string::npos) << command;
    const ProgramResult r = Sluice({command, "--help"});
    EXPECT_EQ(r.exit_code, 0) << command;
    EXPECT_NE(r.out.find("Example"), std::string::npos) << command;
    EXPECT_NE(r.out.find(std::string("sluice ") + command), std::string::npos) << command;
  }
  const ProgramResult version = Sluice({"--version"});
  EXPECT_EQ(version.exit_code, 0);
  EXPECT_FALSE(version.out.empty());
}

TEST_F(CliTest, PanelsAreWrittenOnceAndTheCacheMayBeReadOnly) {
  const std::vector<std::string> arguments = {"run", model_,   "-p", "abc",      "-n",
                                              "1",   "--temp", "0",  "--weights"};
  auto with = [&](const char* mode) {
    std::vector<std::string> a = arguments;
    a.push_back(mode);
    return Json(a);
  };
  const boost::json::object panels = with("panels");
  EXPECT_EQ(panels.at("weights"), "panels");
  EXPECT_FALSE(std::filesystem::is_empty(folder_.path("cache")));
  EXPECT_EQ(with("auto").at("logits_hash"), panels.at("logits_hash"));
  EXPECT_EQ(with("gguf").at("logits_hash"), panels.at("logits_hash"));

  // A cache folder that cannot be made: auto falls back and says so, panels fails.
  std::vector<std::string> a = arguments;
  a.push_back("auto");
  WriteFile(folder_.path("file"), {});
  const Environment bad = {{"SLUICE_CACHE", folder_.path("file/cache")}};
  const ProgramResult fallback = RunSluice(a, bad);
  EXPECT_EQ(fallback.exit_code, 0) << fallback.err;
  EXPECT_NE(fallback.err.find("repacked in memory"), std::string::npos) << fallback.err;
}

// The sidecar in the cache folder of the test.
std::string PanelFileIn(const std::string& folder) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".panels") return entry.path();
  }
  return "";
}

TEST_F(CliTest, DamagedPanelsAreWrittenAgain) {
  const std::vector<std::string> arguments = {"run", model_,   "-p", "abc",       "-n",
                                              "1",   "--temp", "0",  "--weights", "panels"};
  const boost::json::object before = Json(arguments);
  const std::string path = PanelFileIn(folder_.path("cache/panels"));
  const std::vector<uint8_t> whole = ReadFile(path);
  ASSERT_FALSE(whole.empty());
  std::vector<uint8_t> bad = whole;
  bad[bad.size() - 9] ^= 0x20;
  WriteFile(path, bad);
  EXPECT_EQ(Json(arguments).at("logits_hash"), before.at("logits_hash"));
  EXPECT_TRUE(ReadFile(path) == whole);
}

// Named pipes where remembered values should be; a reader or writer of one would wait for ever.
TEST_F(CliTest, PipesInTheCacheHoldNothingUp) {
  const std::vector<std::string> run = {"run", model_, "-p", "abc", "-n", "1", "--temp", "0"};
  ASSERT_EQ(Sluice(run).exit_code, 0);
  std::vector<std::string> names = {folder_.path("cache/machine.json"),
                                    folder_.path("cache/panels/huge_pages"),
                                    folder_.path("cache/panels/other_memory")};
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path("cache/panels"))) {
    if (entry.path().extension() == ".panels") names.push_back(entry.path().string() + ".verified");
  }
  ASSERT_EQ(names.size(), 4u);
  for (const std::string& name : names) {
    std::filesystem::remove(name);
    ASSERT_EQ(mkfifo(name.c_str(), 0600), 0) << name;
  }
  EXPECT_EQ(Sluice(run).exit_code, 0);
}

TEST_F(CliTest, AFullDiskFallsBackAndSaysSo) {
  const std::string disk = folder_.path("disk");
  std::filesystem::create_directory(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=8k") != 0) {
    GTEST_SKIP() << "skipped: mounting a small disk needs root";
  }
  const ProgramResult r = RunSluice({"run", model_, "-p", "abc", "-n", "1", "--temp", "0"},
                                    {{"SLUICE_CACHE", disk + "/cache"}});
  umount(disk.c_str());
  EXPECT_EQ(r.exit_code, 0) << r.err;
  EXPECT_NE(r.err.find("No space left on device; weights are repacked in memory"),
            std::string::npos)
      << r.err;
  EXPECT_NE(r.err.find("weights repack"), std::string::npos) << r.err;
}

TEST_F(CliTest, MemoryFlagsChangeNoByte) {
  const std::vector<std::string> arguments = {"run", model_, "-p", "abc", "-n", "1", "--temp", "0"};
  const boost::json::object plain = Json(arguments);
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--huge-pages", "on"},
                                                {"--huge-pages", "off"},
                                                {"--mlock"},
                                                {"--numa", "interleave"}}) {
    std::vector<std::string> a = arguments;
    a.insert(a.end(), flags.begin(), flags.end());
    EXPECT_EQ(Json(a).at("logits_hash"), plain.at("logits_hash")) << flags[0];
  }
  for (const char* flag : {"--huge-pages", "--numa"}) {
    EXPECT_TRUE(Sluice({"run", model_, "-p", "a", flag, "maybe"}).IsOneLineError(2)) << flag;
  }
}

TEST_F(CliTest, RelaxedSaysWhatItTook) {
  const std::string words(200, 'a');
  // Without float weights, and with.
  const std::string floats = TinyModel(TinyLlama("F16")).Write(folder_.path("f16.gguf"));
  for (const std::string& model : {model_, floats}) {
    const ProgramResult r = Sluice({"run", model, "-p", words, "-n", "1", "--relaxed"});
    EXPECT_EQ(r.exit_code, 0) << r.err;
    EXPECT_NE(r.err.find("sluice run: --relaxed: "), std::string::npos) << r.err;
  }
}

}  // namespace
}  // namespace sluice
