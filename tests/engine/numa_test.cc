// Weights on several memory nodes: the same bytes, each worker's rows on its own
// node. On machines with one node only the first half is seen; numa_qemu.sh in
// tests/machine runs this in a virtual machine with two.
#include "src/machine/numa.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "src/machine/topology.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/runner.h"
#include "tests/model/tiny_model.h"

namespace sluice {
namespace {

class NumaTest : public testing::Test {
 protected:
  NumaTest() {
    setenv("SLUICE_CACHE", folder_.path("cache").c_str(), 1);
    TinyShape shape = TinyLlama("Q4_0");
    shape.dim = 512;
    shape.ffn_dim = 4096;
    TinyModel model(shape);
    path_ = model.Write(folder_.path("m.gguf"));
  }
  ~NumaTest() override { unsetenv("SLUICE_CACHE"); }

  std::unique_ptr<ModelRunner> Runner(NumaMode numa, LoadMode weights) {
    RunnerOptions o = TestOptions(kTokens.size(), KvType::kF16);
    o.threads = 0;  // one per core, pinned
    o.weights = weights;
    o.placement.numa = numa;
    return MakeRunner(path_, o);
  }

  const std::vector<int32_t> kTokens = {1, 40, 77, 130, 5, 260, 9, 31};
  const TempFolder folder_;
  std::string path_;
};

TEST_F(NumaTest, BytesDoNotDependOnWhereTheyLie) {
  const auto off = Runner(NumaMode::kOff, LoadMode::kPanels);
  ASSERT_TRUE(off);
  const std::vector<uint64_t> expected = LogitHashes(*off, kTokens);
  for (LoadMode weights : {LoadMode::kPanels, LoadMode::kRepack}) {
    for (NumaMode numa : {NumaMode::kAuto, NumaMode::kInterleave}) {
      const auto runner = Runner(numa, weights);
      ASSERT_TRUE(runner);
      EXPECT_EQ(LogitHashes(*runner, kTokens), expected)
          << LoadModeName(weights) << " " << static_cast<int>(numa);
    }
  }
}

TEST_F(NumaTest, RowsLieOnTheNodeOfTheirWorker) {
  const size_t nodes = static_cast<size_t>(ThisMachine().numa_nodes);
  if (nodes == 1) GTEST_SKIP() << "skipped: one memory node";
  for (LoadMode mode : {LoadMode::kPanels, LoadMode::kRepack}) {
    const auto runner = Runner(NumaMode::kAuto, mode);
    ASSERT_TRUE(runner);
    const Weight& up = runner->model().weights().layers[1].up;
    ASSERT_TRUE(up.panels);
    runner->team().Run([&](Worker& worker) {
      const auto [begin, end] = worker.Share(up.bytes(), up.bytes() / (up.rows / 16));
      const std::vector<uint64_t> found = BytesPerNode(up.data + begin, end - begin);
      const size_t mine = static_cast<size_t>(NodeOfThisThread());
      ASSERT_GT(found.size(), mine);
      EXPECT_GE(found[mine], (end - begin) * 9 / 10)
          << "worker " << worker.index() << ", " << LoadModeName(mode);
    });
  }
}

TEST_F(NumaTest, InterleavedPagesAreOnAllNodesAlike) {
  const size_t nodes = static_cast<size_t>(ThisMachine().numa_nodes);
  if (nodes == 1) GTEST_SKIP() << "skipped: one memory node";
  const auto runner = Runner(NumaMode::kInterleave, LoadMode::kPanels);
  ASSERT_TRUE(runner);
  const Weight& up = runner->model().weights().layers[1].up;
  const std::vector<uint64_t> found = BytesPerNode(up.data, up.bytes());
  ASSERT_EQ(found.size(), nodes);
  for (uint64_t bytes : found) EXPECT_NEAR(bytes, up.bytes() / nodes, up.bytes() / nodes / 10);
}

}  // namespace
}  // namespace sluice
