// What is kept of the ceilings, and that they can be measured.
#include "src/machine/ceilings.h"

#include <gtest/gtest.h>

#include <fstream>
#include <limits>

#include "src/machine/profile_file.h"
#include "tests/base/temp_folder.h"

namespace sluice {
namespace {

TEST(Ceilings, NowIsTheNewestAndGoodNearlyTheBest) {
  Ceilings c;
  EXPECT_FALSE(c.Now(kReadRate).has_value());
  EXPECT_FALSE(c.Good(kReadRate).has_value());
  c.Add(kReadRate, 30, 1);
  c.Add(kReadRate, 20, 2);
  EXPECT_DOUBLE_EQ(*c.Now(kReadRate), 20);
  EXPECT_DOUBLE_EQ(*c.Good(kReadRate), 30);
  for (int i = 1; i <= 40; ++i) {
    c.Add("x", i, i);
    c.Add(kBarrierTime, i, i);
  }
  EXPECT_DOUBLE_EQ(*c.Good("x"), 38);          // one in twenty is better
  EXPECT_DOUBLE_EQ(*c.Good(kBarrierTime), 3);  // of times the short ones are good
  // What no measurement can be is not kept.
  for (const double bad : {0.0, -1.0, std::numeric_limits<double>::infinity()}) c.Add("x", bad, 41);
  EXPECT_DOUBLE_EQ(*c.Now("x"), 40);
  // The oldest go.
  for (int i = 0; i < 100; ++i) c.Add("x", 7, 50);
  EXPECT_EQ(c.rates.at("x").values.size(), Ceilings::kHistory);
  EXPECT_DOUBLE_EQ(*c.Good("x"), 7);
}

TEST(Ceilings, NamesOfRates) {
  const KernelId panels{FindFormat("Q4_K"), true}, rows{FindFormat("Q4_K"), false};
  EXPECT_EQ(StreamRate(panels), "stream.Q4_K");
  EXPECT_EQ(StreamRate(rows), "stream.Q4_K.rows");
  EXPECT_EQ(MultiplyRate(panels, 256), "multiply.Q4_K.256");
  EXPECT_EQ(MultiplyRate(rows, 1), "multiply.Q4_K.rows.1");
  EXPECT_EQ(ProductRate(panels, 8), "product.Q4_K.8");
  const AttentionId id{{64, 32, KvType::kQ8}, 4};
  EXPECT_EQ(AttentionRate(id, true), "attention.q8.64x32");
  EXPECT_EQ(AttentionRate(id, false), "row_attention.q8.64x32.4");
  EXPECT_EQ(StreamRate({FindFormat("Q4_K"), true, true}), "stream.Q4_K.exact");
  EXPECT_EQ(MultiplyRate({FindFormat("BF16"), false, false, true}, 4),
            "multiply.BF16.rows.portable.4");
  EXPECT_EQ(ReadRate(0), kReadRate);
  EXPECT_EQ(ReadRate(5'000'000'000), kReadRate);
  EXPECT_EQ(ReadRate(123'456'789), "read.120MB");
  EXPECT_EQ(ReadRate(25'600'000), "read.26MB");
  EXPECT_EQ(ReadRate(1000), "read.17MB");  // 16 MiB
  EXPECT_EQ(NodeRate(1), "read.node1");
  EXPECT_EQ(CacheRate(2), "read.L2");
}

TEST(Ceilings, RoundTripBesideTheProfiles) {
  const TempFolder folder;
  const std::string path = folder.path("machine.json");
  MachineProfile profile;
  profile.key = "profile";
  ASSERT_TRUE(WriteProfile(path, profile).ok());
  Ceilings c;
  c.key = "a machine";
  c.Add(kReadRate, 12.3456, 1000);
  c.Add(kReadRate, 45.6, 2000);
  c.Add("stream.Q4_0", 0.001234, 2000);
  ASSERT_TRUE(WriteCeilings(path, c).ok());
  Ceilings other = c;
  other.key = "another";
  ASSERT_TRUE(WriteCeilings(path, other).ok());
  ASSERT_TRUE(WriteProfile(path, profile).ok());  // keeps the ceilings

  const Result<Ceilings> read = ReadCeilings(path, "a machine");
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_EQ(read->key, "a machine");
  EXPECT_EQ(read->rates.size(), 2u);
  EXPECT_NEAR(read->rates.at(kReadRate).values[0], 12.35, 1e-9);  // four digits
  EXPECT_NEAR(*read->Now(kReadRate), 45.6, 1e-9);
  EXPECT_NEAR(*read->Now("stream.Q4_0"), 0.001234, 1e-12);
  EXPECT_EQ(read->rates.at(kReadRate).at, 2000);
  EXPECT_TRUE(ReadProfile(path, "profile").ok());
  EXPECT_EQ(ReadCeilings(path, "none").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(ReadCeilings(folder.path("absent"), "none").status().code(), StatusCode::kNotFound);
}

TEST(Ceilings, FilesThatLie) {
  const TempFolder folder;
  const std::string path = folder.path("machine.json");
  for (const char* rates :
       {"7", "[]", "{\"x\": 1}", "{\"x\": {\"values\": [1]}}", "{\"x\": {\"at\": 1}}",
        "{\"x\": {\"at\": 1, \"values\": 2}}", "{\"x\": {\"at\": 1, \"values\": [0]}}",
        "{\"x\": {\"at\": 1, \"values\": [\"a\"]}}", "{\"x\": {\"at\": 1.5, \"values\": [1]}}"}) {
    std::ofstream(path) << "{\"profiles\": [], \"ceilings\": [{\"key\": \"k\", \"rates\": " << rates
                        << "}]}";
    const Result<Ceilings> read = ReadCeilings(path, "k");
    ASSERT_FALSE(read.ok()) << rates;
    EXPECT_EQ(read.status().code(), StatusCode::kCorrupt);
    EXPECT_TRUE(read.status().message().starts_with(path));
  }
  // A section that is no list holds nothing, and is replaced.
  std::ofstream(path) << "{\"profiles\": [], \"ceilings\": 3}";
  EXPECT_EQ(ReadCeilings(path, "k").status().code(), StatusCode::kNotFound);
  Ceilings c;
  c.key = "k";
  c.Add("x", 1, 1);
  ASSERT_TRUE(WriteCeilings(path, c).ok());
  EXPECT_TRUE(ReadCeilings(path, "k").ok());
}

TEST(Ceilings, OnlyWhatIsLackingIsMeasured) {
  Ceilings c;
  CeilingList list;
  list.caches = true;
  list.kernels = {{FindFormat("Q4_0"), true}, {FindFormat("Q8_0"), true}};
  list.attention = {{{32, 32, KvType::kF16}, 2}};
  CeilingList lacking = Lacking(list, c);
  EXPECT_TRUE(lacking.memory && lacking.caches);
  EXPECT_EQ(lacking.kernels.size(), 2u);
  EXPECT_EQ(lacking.attention.size(), 1u);
  for (const char* name : {kReadRate, kBarrierTime, kRowTime, kGateTime, "read.L2",
                           "product.Q4_0.2", "multiply.Q4_0.1"}) {
    c.Add(name, 1, 1);
  }
  lacking = Lacking(list, c);
  EXPECT_FALSE(lacking.memory || lacking.caches);
  ASSERT_EQ(lacking.kernels.size(), 1u);
  EXPECT_STREQ(lacking.kernels[0].format->name, "Q8_0");
  // What was measured before is lacking too where only newer will do.
  EXPECT_TRUE(Lacking(list, c, 2).memory);
  EXPECT_EQ(Lacking(list, c, 2).kernels.size(), 2u);
  c.Add("multiply.Q8_0.1", 1, 1);
  EXPECT_EQ(Lacking(list, c).kernels.size(), 1u);
  list.streams = false;
  EXPECT_TRUE(Lacking(list, c).kernels.empty());
  // Reads of as many bytes as memory's probe are memory's.
  list.reads = {1, 20'000'000, 5'000'000'000};
  EXPECT_EQ(Lacking(list, c).reads, (std::vector<uint64_t>{1, 20'000'000}));
  c.Add(ReadRate(1), 1, 1);
  EXPECT_EQ(Lacking(list, c).reads, std::vector<uint64_t>{20'000'000});
}

TEST(Ceilings, AreMeasured) {
  Result<std::unique_ptr<ThreadTeam>> team = ThreadTeam::Create(1);
  ASSERT_TRUE(team.ok());
  CeilingList list;
  list.caches = true;
  list.kernels = {{FindFormat("Q4_0"), true}, {FindFormat("Q2_K"), false}};
  list.attention = {{{32, 32, KvType::kF16}, 2}};
  list.reads = {1, 2, 5'000'000'000};
  Ceilings c;
  const Status measured = MeasureCeilings(**team, 1, 1, list, &c);
  ASSERT_TRUE(measured.ok()) << measured.message();
  const CeilingList lacking = Lacking(list, c);
  EXPECT_FALSE(lacking.memory);
  EXPECT_TRUE(lacking.kernels.empty() && lacking.attention.empty() && lacking.reads.empty());
  EXPECT_EQ(c.rates.at(ReadRate(1)).values.size(), 1u);  // 1 and 2 bytes are one rate
  EXPECT_EQ(c.rates.at(kReadRate).values.size(), 1u);
  for (const auto& [name, history] : c.rates) EXPECT_GT(history.values.at(0), 0) << name;
  // A stream cannot be read faster than the first cache gives.
  if (c.Now(CacheRate(1))) {
    EXPECT_LT(*c.Now("stream.Q4_0"), *c.Now(CacheRate(1)));
  }
  CeilingList arithmetic;
  arithmetic.memory = arithmetic.streams = false;
  arithmetic.kernels = {{FindFormat("Q4_0"), true, true}};
  Ceilings rates;
  ASSERT_TRUE(MeasureCeilings(**team, 1, 1, arithmetic, &rates).ok());
  EXPECT_TRUE(rates.Now("multiply.Q4_0.exact.256").has_value());
  EXPECT_FALSE(rates.Now("stream.Q4_0.exact").has_value());
  EXPECT_FALSE(rates.Now(kReadRate).has_value());
  CeilingList nothing;
  nothing.memory = false;
  EXPECT_TRUE(MeasureCeilings(**team, 1, 1, nothing, &c).ok());
}

}  // namespace
}  // namespace sluice
