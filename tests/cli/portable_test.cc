// --portable: the same bytes on every CPU. Each SIMD target that is built in and that this CPU has
// runs the program on the same models; the constants compare machines (ARM64 too) and versions.
// Who changes the arithmetic on purpose changes them.
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "src/machine/simd_target.h"
#include "tests/base/temp_folder.h"
#include "tests/cli/run_sluice.h"
#include "tests/model/tiny_model.h"

namespace sluice {
namespace {

struct Case {
  const char* name;
  TinyShape shape;
  const char *hash, *bf16_hash;  // over the logits of every generated token
};

class PortableTest : public testing::TestWithParam<Case> {
 protected:
  PortableTest() : model_(TinyModel(GetParam().shape).Write(folder_.path("tiny.gguf"))) {}

  // The report of a run: prompt longer than one page, generated tokens across a window's end.
  boost::json::object Run(const std::string& target, std::vector<std::string> flags) {
    std::vector<std::string> arguments = {"run",    model_, "--json", "--weights", "gguf",
                                          "--temp", "0",    "-n",     "24",        "--ignore-eos",
                                          "-c",     "256",  "-p",     "-"};
    std::string prompt;
    for (int i = 0; i < 12; ++i) prompt += "a few words ";
    arguments.back() = prompt;
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    const ProgramResult r = RunSluice(arguments, {{"SLUICE_TARGET", target}});
    EXPECT_EQ(r.exit_code, 0) << target << ": " << r.err;
    boost::system::error_code bad;
    const boost::json::value v = boost::json::parse(r.out, bad);
    EXPECT_TRUE(!bad && v.is_object()) << r.out;
    return v.is_object() ? v.as_object() : boost::json::object();
  }

  static std::string Text(const boost::json::object& o, const char* key) {
    const boost::json::value* v = o.if_contains(key);
    return v && v->is_string() ? std::string(v->as_string()) : "";
  }

  const TempFolder folder_;
  const std::string model_;
};

TEST_P(PortableTest, SameBytesOnEveryTargetAndMachine) {
  for (const std::string& target : UsableSimdTargets()) {
    SCOPED_TRACE(target);
    const boost::json::object o = Run(target, {"--portable"});
    EXPECT_EQ(Text(o, "target"), target);
    EXPECT_EQ(Text(o, "kv_type"), "f16");
    EXPECT_EQ(Text(o, "logits_hash"), GetParam().hash);
    // bfloat16 pages, whose products would be the CPU's own.
    const std::vector<std::string> bf16 = {"--portable", "--kv-type", "bf16"};
    EXPECT_EQ(Text(Run(target, bf16), "logits_hash"), GetParam().bf16_hash);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, PortableTest,
    testing::Values(Case{"LlamaQ4_0", TinyLlama("Q4_0"), "81c2488bd142a9cf", "8e5eed71dd93f3bc"},
                    Case{"LlamaF32", TinyLlama("F32"), "07769eebd2be944a", "73d27c4ad9dab852"},
                    Case{"Gemma3Q4_0", TinyGemma3(), "b76eee71549d4dbd", "f0bc19d832b775f1"},
                    Case{"MixtureQ8_0", TinyMoe(), "c18399c6032ece0d", "f7641dbbaaa66271"}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sluice
