// The table of published machines, and a user's own file.
#include "src/machine/devices.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/base/temp_folder.h"

namespace sluice {
namespace {

TEST(Devices, AreFoundByName) {
  const std::span<const Device> all = PublishedDevices();
  for (const Device& d : all) {
    EXPECT_GT(d.bandwidth_gb_s, 0) << d.name;
    EXPECT_FALSE(d.description.empty());
    EXPECT_EQ(FindDevice(all, d.name)->name, d.name);
  }
  EXPECT_DOUBLE_EQ(FindDevice(all, "H100-SXM")->bandwidth_gb_s, 3350);
  EXPECT_EQ(FindDevice(all, "h100")->name, "h100-sxm");  // the only one that begins so
  const Result<Device> several = FindDevice(all, "server");
  ASSERT_FALSE(several.ok());
  EXPECT_NE(several.status().message().find("server-12ch"), std::string::npos);
  EXPECT_FALSE(FindDevice(all, "").ok());
}

TEST(Devices, AFileAddsAndReplaces) {
  const TempFolder folder;
  const std::string path = folder.path("d.json");
  std::ofstream(path) << R"({"devices": [{"name": "Box", "bandwidth_gb_s": 123.5, "tops": 4,
      "memory_gb": 64, "description": "under the desk"}, {"name": "m4", "bandwidth_gb_s": 1}]})";
  const Result<std::vector<Device>> all = AllDevices(path);
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_EQ(all->size(), PublishedDevices().size() + 1);
  const Device box = *FindDevice(*all, "box");
  EXPECT_DOUBLE_EQ(box.bandwidth_gb_s, 123.5);
  EXPECT_DOUBLE_EQ(box.tops, 4);
  EXPECT_DOUBLE_EQ(box.memory_gb, 64);
  EXPECT_EQ(box.description, "under the desk");
  EXPECT_DOUBLE_EQ(FindDevice(*all, "m4")->bandwidth_gb_s, 1);
}

TEST(Devices, ErrorsNameFileEntryAndField) {
  const TempFolder folder;
  const std::string path = folder.path("d.json");
  const auto error = [&](const std::string& text) {
    std::ofstream(path) << text;
    const Result<std::vector<Device>> read = AllDevices(path);
    EXPECT_FALSE(read.ok()) << text;
    if (read.ok()) return std::string();
    EXPECT_EQ(read.status().code(), StatusCode::kCorrupt);
    EXPECT_TRUE(read.status().message().starts_with(path));
    EXPECT_EQ(read.status().message().find('\n'), std::string::npos);
    return read.status().message();
  };
  const auto has = [](const std::string& text, const char* part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(error("not json"), "{\"devices\""));
  EXPECT_TRUE(has(error("[]"), "{\"devices\""));
  EXPECT_TRUE(has(error("{\"devices\": {}}"), "{\"devices\""));
  EXPECT_TRUE(has(error("{\"devices\": [3]}"), "device 1"));
  EXPECT_TRUE(has(error("{\"devices\": [{\"bandwidth_gb_s\": 3}]}"), "name"));
  EXPECT_TRUE(has(error("{\"devices\": [{\"name\": \"a\"}]}"), "bandwidth_gb_s"));
  EXPECT_TRUE(has(error("{\"devices\": [{\"name\": \"a\", \"bandwidth_gb_s\": \"1\"}]}"),
                  "bandwidth_gb_s"));
  EXPECT_TRUE(has(error("{\"devices\": [{\"name\": \"a\", \"bandwidth_gb_s\": -1}]}"), "above 0"));
  EXPECT_TRUE(
      has(error("{\"devices\": [{\"name\": \"a\", \"bandwidth_gb_s\": 1}, {\"name\": \"b\", "
                "\"bandwidth_gb_s\": 1, \"tops\": true}]}"),
          "device 2"));
  EXPECT_TRUE(
      has(error("{\"devices\": [{\"name\": \"a\", \"bandwith\": 1}]}"), "no field bandwith"));
  EXPECT_EQ(AllDevices(folder.path("none")).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace sluice
