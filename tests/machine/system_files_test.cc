#include "src/machine/system_files.h"

#include <gtest/gtest.h>

#include "tests/machine/made_up_machine.h"

namespace sluice {
namespace {

TEST(SystemFiles, ListsOfCpus) {
  EXPECT_EQ(ParseList("0-3,8\n"), (std::vector<int>{0, 1, 2, 3, 8}));
  EXPECT_EQ(ParseList("7"), std::vector<int>{7});
  for (const char* text : {"", "\n", "a", "1-", "-1", "1,,2", "1-99999999", "3-x", "1 2"}) {
    EXPECT_TRUE(ParseList(text).empty()) << text;
  }
  EXPECT_EQ(ListText({0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(ListText({0, 1, 5, 7}), "0,1,5,7");
  EXPECT_EQ(ListText({}), "");
}

TEST(SystemFiles, ReadsBelowTheRoot) {
  const MadeUpMachine machine;
  const SystemFiles files(machine.root());
  EXPECT_EQ(*files.Number("/proc/sys/vm/swappiness"), 60);
  EXPECT_EQ(*files.Chosen("/sys/kernel/mm/transparent_hugepage/enabled"), "madvise");
  EXPECT_EQ(*files.Field("/proc/self/status", "Cpus_allowed_list:"), "0-7");
  EXPECT_EQ(*files.FieldNumber("/proc/meminfo", "MemTotal:"), 64000000);
  EXPECT_EQ(files.List("/sys/devices/system/cpu/online")->size(), 8u);
  machine.Write("folder/cpu10", "");
  for (const char* name : {"cpu2", "cpu9", "cpux", "cpu", "cpu3x", "other"}) {
    machine.Write(std::string("folder/") + name, "");
  }
  EXPECT_EQ(files.Numbered("/folder", "cpu"), (std::vector<std::string>{"cpu2", "cpu9", "cpu10"}));
  EXPECT_TRUE(files.Numbered("/nowhere", "cpu").empty());
}

TEST(SystemFiles, ErrorsNameTheFile) {
  const MadeUpMachine machine;
  const SystemFiles files(machine.root());
  machine.Write("empty", "");
  machine.Write("words", "one two\n\x01");
  EXPECT_EQ(files.Text("/nothing").status().code(), StatusCode::kNotFound);
  for (const Status& status :
       {files.Number("/words").status(), files.Chosen("/words").status(),
        files.List("/words").status(), files.Field("/words", "three").status()}) {
    EXPECT_NE(status.message().find("/words"), std::string::npos) << status.message();
    EXPECT_EQ(status.message().find('\x01'), std::string::npos);
  }
  EXPECT_FALSE(files.Number("/empty").ok());
  EXPECT_FALSE(files.Text("/proc").ok()) << "a folder";
}

}  // namespace
}  // namespace sluice
