// Lists and descriptions of models in Ollama's form, of real (tiny) files.
#include "src/server/ollama_models.h"

#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>
#include <filesystem>
#include <fstream>

#include "src/file/gguf_json.h"
#include "tests/base/temp_folder.h"
#include "tests/model/tiny_model.h"

namespace sluice {
namespace {

namespace json = boost::json;
namespace fs = std::filesystem;

class OllamaModelsTest : public testing::Test {
 protected:
  // A file of a tiny model, in the model folder or, with a path, elsewhere.
  ModelEntry Write(const std::string& name, const std::string& path = "") {
    TinyModel tiny;
    tiny.SetString("tokenizer.chat_template", "{{ messages }}{% if tools %}{{ tools }}{% endif %}");
    ModelEntry entry;
    entry.name = name;
    entry.path = tiny.Write(path.empty() ? folder_.path(name + ".gguf") : path);
    entry.bytes = fs::file_size(entry.path);
    entry.modified_s = 1709164800;
    return entry;
  }
  void Touch(const std::string& path) { std::ofstream(path) << "x"; }

  TempFolder folder_;
};

TEST_F(OllamaModelsTest, SizesForPeople) {
  EXPECT_EQ(ParameterSize(8030261248), "8.0B");
  EXPECT_EQ(ParameterSize(268098176), "268.10M");
  EXPECT_EQ(ParameterSize(64000), "64K");
  EXPECT_EQ(ParameterSize(7), "7");
}

TEST_F(OllamaModelsTest, TagsHaveWhatClientsRead) {
  OllamaDetailsCache cache;
  const json::object tags = OllamaTags({Write("tiny")}, cache);
  const json::object& model = tags.at("models").as_array().at(0).as_object();
  EXPECT_EQ(model.at("name"), "tiny");
  EXPECT_EQ(model.at("model"), "tiny");
  EXPECT_EQ(model.at("modified_at"), "2024-02-29T00:00:00.000000000Z");
  EXPECT_GE(model.at("digest").as_string().size(), 12u);
  EXPECT_EQ(model.at("details").at("format"), "gguf");
  EXPECT_EQ(model.at("details").at("family"), "llama");
  EXPECT_EQ(model.at("details").at("families"), (json::array{"llama"}));
  EXPECT_EQ(model.at("details").at("quantization_level"), "Q8_0");
  EXPECT_EQ(OllamaTags({}, cache).at("models"), json::array());
}

TEST_F(OllamaModelsTest, AFileThatIsNoModelIsListedWithoutDetails) {
  ModelEntry entry{"bad", folder_.path("bad.gguf"), 1, 0};
  Touch(entry.path);
  OllamaDetailsCache cache;
  EXPECT_EQ(cache.Get(entry).at("family"), "");
  // Another version of the file is read again.
  ModelEntry better = Write("bad");
  EXPECT_EQ(cache.Get(better).at("family"), "llama");
}

TEST_F(OllamaModelsTest, ShowTellsLongListsOnlyIfAsked) {
  const ModelEntry entry = Write("tiny");
  const auto gguf = *Gguf::Open(entry.path);
  const json::object brief = OllamaShow(entry, *gguf, false, std::nullopt);
  const json::object& info = brief.at("model_info").as_object();
  EXPECT_EQ(info.at("general.architecture"), "llama");
  EXPECT_EQ(info.at("llama.block_count"), 2);
  EXPECT_TRUE(info.at("tokenizer.ggml.tokens").is_null());
  EXPECT_GT(info.at("general.parameter_count").as_uint64(), 1000u);
  EXPECT_FALSE(brief.contains("tensors"));
  EXPECT_EQ(brief.at("capabilities"), (json::array{"completion", "tools", "embedding"}));
  EXPECT_EQ(brief.at("template"), "{{ messages }}{% if tools %}{{ tools }}{% endif %}");
  EXPECT_FALSE(info.contains("tokenizer.chat_template"));

  const json::object verbose = OllamaShow(entry, *gguf, true, std::string("another"));
  EXPECT_EQ(verbose.at("model_info").at("tokenizer.ggml.tokens").as_array().size(), 320u);
  EXPECT_EQ(verbose.at("model_info").at("tokenizer.ggml.tokens").at(1), "<s>");
  EXPECT_EQ(verbose.at("tensors").as_array().size(), gguf->tensors().size());
  EXPECT_EQ(verbose.at("template"), "another");
}

// Neither answers nor errors tell where files lie.
TEST_F(OllamaModelsTest, PathsStayOurs) {
  const ModelEntry entry = Write("tiny");
  const auto gguf = *Gguf::Open(entry.path);
  const std::string show = json::serialize(OllamaShow(entry, *gguf, true, std::nullopt));
  EXPECT_EQ(show.find(folder_.path()), std::string::npos);
  const Status refused = DeleteModelFiles(entry, folder_.path("elsewhere"));
  EXPECT_EQ(refused.message().find(folder_.path()), std::string::npos);
}

TEST_F(OllamaModelsTest, NamesAsClientsWriteThem) {
  const std::vector<ModelEntry> entries = {{"gemma-3", "a", 1, 1}, {"Qwen3-Q8", "b", 1, 1}};
  ASSERT_NE(FindEntry(entries, "gemma-3:latest"), nullptr);
  EXPECT_EQ(FindEntry(entries, "gemma-3:latest")->path, "a");
  EXPECT_EQ(FindEntry(entries, "Qwen3:Q8"), &entries[1]);
  EXPECT_EQ(FindEntry(entries, "gemma"), nullptr);
  EXPECT_EQ(FindEntry(entries, ""), nullptr);
}

TEST_F(OllamaModelsTest, DeletesOneFileOfTheFolder) {
  const ModelEntry entry = Write("tiny");
  const ModelEntry other = Write("other");
  const Status status = DeleteModelFiles(entry, folder_.path());
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_FALSE(fs::exists(entry.path));
  EXPECT_TRUE(fs::exists(other.path));
}

TEST_F(OllamaModelsTest, DeletesAllPartsAndNoOthers) {
  for (const char* file : {"m-00001-of-00002.gguf", "m-00002-of-00002.gguf",
                           "m-00001-of-00003.gguf", "mm-00001-of-00002.gguf"}) {
    Touch(folder_.path(file));
  }
  const ModelEntry entry{"m", folder_.path("m-00001-of-00002.gguf"), 2, 0};
  EXPECT_TRUE(DeleteModelFiles(entry, folder_.path()).ok());
  EXPECT_FALSE(fs::exists(folder_.path("m-00001-of-00002.gguf")));
  EXPECT_FALSE(fs::exists(folder_.path("m-00002-of-00002.gguf")));
  EXPECT_TRUE(fs::exists(folder_.path("m-00001-of-00003.gguf")));
  EXPECT_TRUE(fs::exists(folder_.path("mm-00001-of-00002.gguf")));
}

TEST_F(OllamaModelsTest, NeverDeletesOutsideTheFolder) {
  const std::string models = folder_.path("models"), deeper = folder_.path("models/deeper");
  fs::create_directories(deeper);
  const std::string outside = folder_.path("outside.gguf");
  const std::string below = folder_.path("models/deeper/m.gguf");
  const std::string no_model = folder_.path("models/notes.txt");
  const std::string around = models + "/../outside.gguf";
  for (const std::string& path : {outside, below, no_model}) Touch(path);
  for (const std::string& path : {outside, below, no_model, around}) {
    const Status status = DeleteModelFiles({"m", path, 1, 0}, models);
    EXPECT_EQ(status.code(), StatusCode::kUnsupported) << path;
    EXPECT_TRUE(fs::exists(path)) << path;
  }
  EXPECT_FALSE(DeleteModelFiles({"m", outside, 1, 0}, "").ok());
}

TEST_F(OllamaModelsTest, ALinkGoesWhatItPointsToStays) {
  const std::string models = folder_.path("models"), target = folder_.path("target.gguf");
  fs::create_directories(models);
  Touch(target);
  fs::create_symlink(target, models + "/link.gguf");
  EXPECT_TRUE(DeleteModelFiles({"link", models + "/link.gguf", 1, 0}, models).ok());
  EXPECT_FALSE(fs::is_symlink(models + "/link.gguf"));
  EXPECT_TRUE(fs::exists(target));
}

TEST_F(OllamaModelsTest, MetadataOfEveryKind) {
  GgufWriter writer;
  writer.AddU64("u64", 18446744073709551615u);
  writer.AddI32("i32", -5);
  writer.AddF32("f32", 0.5f);
  writer.AddBool("bool", true);
  writer.AddString("text", "h\xC3\xA9");
  writer.AddI32s("list", std::vector<int32_t>{1, -2});
  const std::string path = folder_.path("kinds.gguf");
  ASSERT_TRUE(writer.Write(path).ok());
  const auto gguf = *Gguf::Open(path);
  const auto value = [&](const char* key) { return GgufScalarJson(*gguf->Find(key)); };
  EXPECT_EQ(value("u64"), 18446744073709551615u);
  EXPECT_EQ(value("i32"), -5);
  EXPECT_EQ(value("f32"), 0.5);
  EXPECT_EQ(value("bool"), true);
  EXPECT_EQ(value("text"), "h\xC3\xA9");
  EXPECT_EQ(GgufElementsJson(*gguf->Find("list"), 9), (json::array{1, -2}));
  EXPECT_EQ(GgufElementsJson(*gguf->Find("list"), 1), json::array{1});
}

}  // namespace
}  // namespace sluice
