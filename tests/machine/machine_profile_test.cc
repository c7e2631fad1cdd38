#include "src/machine/machine_profile.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "tests/base/temp_folder.h"

namespace sluice {
namespace {

Topology Machine(int fast, int slow) {
  Topology machine;
  machine.cpu_name = "Test CPU";
  for (int i = 0; i < fast + slow; ++i) machine.cores.push_back({0, i < fast ? 0 : 1, {i}});
  machine.cpus = fast + slow;
  machine.core_kinds = slow > 0 ? 2 : 1;
  return machine;
}

MachineProfile Measured() {
  MachineProfile p;
  p.key = "a key, with \"quotes\"";
  p.rates = {{1, 12.5, 100}, {2, 24, 200}, {4, 30.1, 390}, {8, 30.5, 700.25}};
  p.kind_rates = {1, 0.5};
  p.barrier_us = 0.75;
  ChooseThreads(p);
  return p;
}

void Write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
std::string Read(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(MachineProfile, ChoosesTheFewestThreadsNearTheBest) {
  MachineProfile p = Measured();
  EXPECT_EQ(p.decode_threads, 4);      // 30.1 is 98.7 % of 30.5
  EXPECT_EQ(p.prefill_threads, 8);     // arithmetic still grows
  p.rates = {{1, 10, 10}, {2, 9, 5}};  // more threads are slower
  ChooseThreads(p);
  EXPECT_EQ(p.decode_threads, 1);
  EXPECT_EQ(p.prefill_threads, 1);
}

TEST(MachineProfile, KeyTellsMachinesApart) {
  const Topology base = Machine(4, 0);
  Topology name = base, cpus = Machine(3, 0), quota = base, less = base;
  name.cpu_name = "Another";
  quota.cpu_quota = 2.5;
  less.cpu_quota = 1.5;
  const std::string key = ProfileKey(base);
  EXPECT_EQ(key, ProfileKey(Machine(4, 0)));
  for (const Topology* other : {&name, &cpus, &quota, &less}) EXPECT_NE(key, ProfileKey(*other));
  EXPECT_NE(ProfileKey(quota), ProfileKey(less));
}

TEST(MachineProfile, OnlyMeasuresWhatCanMatter) {
  EXPECT_FALSE(WorthCalibrating(Machine(1, 0)));
  EXPECT_FALSE(WorthCalibrating(Machine(2, 0)));
  EXPECT_TRUE(WorthCalibrating(Machine(3, 0)));
  EXPECT_TRUE(WorthCalibrating(Machine(1, 1)));
  Topology quota = Machine(8, 8);
  quota.cpu_quota = 1.5;
  EXPECT_FALSE(WorthCalibrating(quota));
  EXPECT_EQ(DefaultProfile(quota).decode_threads, 1);
  EXPECT_EQ(DefaultProfile(Machine(4, 4)).prefill_threads, 8);
}

TEST(MachineProfile, RatesOfWorkersFollowTheirCores) {
  const MachineProfile p = Measured();
  EXPECT_EQ(WorkerRates(Machine(2, 2), p, 4), (std::vector<double>{1, 1, 0.5, 0.5}));
  EXPECT_TRUE(WorkerRates(Machine(2, 2), p, 3).empty());  // not one core each
  EXPECT_TRUE(WorkerRates(Machine(4, 0), DefaultProfile(Machine(4, 0)), 4).empty());
}

TEST(MachineProfile, RoundTrip) {
  const TempFolder folder;
  const std::string path = folder.path("new/machine.json");
  MachineProfile p = Measured();
  ASSERT_TRUE(WriteProfile(path, p).ok());
  MachineProfile other = p;
  other.key = "other";
  other.decode_threads = 3;
  ASSERT_TRUE(WriteProfile(path, other).ok());

  const Result<MachineProfile> read = ReadProfile(path, p.key);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->key, p.key);
  EXPECT_EQ(read->decode_threads, 4);
  EXPECT_EQ(read->prefill_threads, 8);
  EXPECT_EQ(read->barrier_us, 0.75);
  EXPECT_EQ(read->kind_rates, p.kind_rates);
  ASSERT_EQ(read->rates.size(), 4u);
  EXPECT_EQ(read->rates[3].threads, 8);
  EXPECT_EQ(read->rates[2].read_gb_s, 30.1);
  EXPECT_EQ(read->rates[3].gmac_s, 700.25);
  EXPECT_EQ(ReadProfile(path, "other")->decode_threads, 3);

  // The same key again replaces; a key that is not there is not found.
  other.decode_threads = 2;
  ASSERT_TRUE(WriteProfile(path, other).ok());
  EXPECT_EQ(ReadProfile(path, "other")->decode_threads, 2);
  EXPECT_TRUE(ReadProfile(path, p.key).ok());
  EXPECT_EQ(ReadProfile(path, "none").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(ReadProfile(folder.path("absent"), "none").status().code(), StatusCode::kNotFound);
}

TEST(MachineProfile, TheOldestGo) {
  const TempFolder folder;
  const std::string path = folder.path("machine.json");
  MachineProfile p = Measured();
  for (int i = 0; i < 40; ++i) {
    p.key = std::to_string(i);
    ASSERT_TRUE(WriteProfile(path, p).ok());
  }
  EXPECT_FALSE(ReadProfile(path, "0").ok());
  EXPECT_TRUE(ReadProfile(path, "39").ok());
  EXPECT_LT(Read(path).size(), 10000u);
}

TEST(MachineProfile, CorruptFilesAreRefusedAndReplaced) {
  const TempFolder folder;
  const std::string path = folder.path("machine.json");
  const MachineProfile p = Measured();
  ASSERT_TRUE(WriteProfile(path, p).ok());
  const std::string good = Read(path);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("{\"profiles\":7}"),
        good.substr(0, good.size() / 2), with("\"decode_threads\":4", "\"decode_threads\":0"),
        with("\"decode_threads\":4", "\"decode_threads\":4096"),
        with("\"decode_threads\":4", "\"decode_threads\":\"x\""),
        with("\"prefill_threads\":8", "\"prefill_threads\":2.5"),
        with("\"kind_rates\":[", "\"kind_rates\":[-1,"), with("\"threads\":2", "\"threads\":-2"),
        with("\"rates\":[{", "\"rates\":[5,{")}) {
    Write(path, text);
    EXPECT_EQ(ReadProfile(path, p.key).status().code(), StatusCode::kCorrupt) << text;
    ASSERT_TRUE(WriteProfile(path, p).ok());
    EXPECT_TRUE(ReadProfile(path, p.key).ok());
  }
  Write(path, std::string(100000, '['));  // must not exhaust the stack
  EXPECT_FALSE(ReadProfile(path, p.key).ok());
}

TEST(MachineProfile, UnwritableFolderIsAnErrorOfWritingOnly) {
  EXPECT_FALSE(WriteProfile("/proc/none/machine.json", Measured()).ok());
  setenv("SLUICE_CACHE", "/proc/none", 1);
  const MachineProfile p = ProfileOfThisMachine();
  unsetenv("SLUICE_CACHE");
  EXPECT_GE(p.decode_threads, 1);
  EXPECT_LE(p.prefill_threads, ThisMachine().DefaultThreads());
}

TEST(MachineProfile, UsesTheKeptProfileOfThisMachine) {
  const TempFolder folder;
  setenv("SLUICE_CACHE", folder.path("cache").c_str(), 1);
  MachineProfile p = DefaultProfile(ThisMachine());
  p.decode_threads = 77;
  ASSERT_TRUE(WriteProfile(folder.path("cache/machine.json"), p).ok());
  EXPECT_EQ(ProfileOfThisMachine().decode_threads, 77);
  // That of another key is not this machine's.
  p.key += " and more";
  ASSERT_EQ(std::remove(folder.path("cache/machine.json").c_str()), 0);
  ASSERT_TRUE(WriteProfile(folder.path("cache/machine.json"), p).ok());
  EXPECT_LE(ProfileOfThisMachine().decode_threads, ThisMachine().DefaultThreads());
  unsetenv("SLUICE_CACHE");
}

// Fails only on a machine that is busy with other things, which it must say.
TEST(MachineProfile, Calibrates) {
  const Result<MachineProfile> p = Calibrate();
  if (!p.ok()) {
    EXPECT_NE(p.status().message().find("other programs"), std::string::npos);
    return;
  }
  EXPECT_EQ(p->key, ProfileKey(ThisMachine()));
  ASSERT_FALSE(p->rates.empty());
  EXPECT_EQ(p->rates.front().threads, 1);
  EXPECT_EQ(p->rates.back().threads, ThisMachine().DefaultThreads());
  for (const ThreadRates& r : p->rates) {
    EXPECT_GT(r.read_gb_s, 0);
    EXPECT_GT(r.gmac_s, 0);
  }
  EXPECT_GE(p->decode_threads, 1);
  EXPECT_LE(p->prefill_threads, ThisMachine().DefaultThreads());
}

}  // namespace
}  // namespace sluice
