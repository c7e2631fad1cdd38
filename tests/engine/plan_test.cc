// Memory and the simulated schedule of `sluice plan`.
#include "src/engine/plan.h"

#include <gtest/gtest.h>

#include "tests/base/temp_folder.h"
#include "tests/engine/runner.h"
#include "tests/model/tiny_model.h"

namespace sluice {
namespace {

class PlanTest : public testing::Test {
 protected:
  PlanTest() : model_(*ModelWork::Of(TinyModel(TinyLlama()).Write(folder_.path("m.gguf")), false)) {
    speed_.read_gb_s = 1;
    speed_.kernels.assign(model_.kernels().size(), {1, 10, {{1, 10}}});
    speed_.attention_gmac_s = speed_.row_attention_gmac_s = 10;
  }
  Prediction Of(const Workload& w) const { return Predict(model_, speed_, w); }

  const TempFolder folder_;
  const ModelWork model_;
  MachineSpeed speed_;
};

TEST_F(PlanTest, OneRequestIsItsPromptAndItsSteps) {
  const Workload w{.prompt = 64, .output = 33, .chunk = 32};
  const Prediction p = Of(w);
  EXPECT_DOUBLE_EQ(p.queue_s, 0);
  EXPECT_DOUBLE_EQ(p.ttft_s, p.prefill_s);
  double prefill_s = 0;
  for (const size_t first : {0, 32}) {
    const RowRange range{first, 32};
    PassWork work;
    model_.Add({&range, 1}, first == 32, w.kv_type, &work);
    prefill_s += PredictPass(model_, work, 32, speed_).total();
  }
  EXPECT_NEAR(p.prefill_s, prefill_s, 1e-12);
  EXPECT_NEAR(p.total_s, p.ttft_s + 32 * p.token_s, 1e-9);
  // The step in the middle is about the mean of all.
  EXPECT_NEAR(p.token_s, p.step_s, 0.02 * p.step_s);
  EXPECT_NEAR(p.decode_tok_s, 1 / p.step_s, 1e-6);
  EXPECT_LE(p.decode_tok_s, p.decode_roof_tok_s);
}

TEST_F(PlanTest, OthersQueueBehindTheFirst) {
  const Workload one{.prompt = 64, .output = 8, .chunk = 64};
  Workload four = one;
  four.concurrency = 4;
  const Prediction a = Of(one), b = Of(four);
  EXPECT_GT(b.queue_s, a.prefill_s);  // the second waits for one prompt, the last for three
  EXPECT_GT(b.last_ttft_s, 3.5 * a.ttft_s);
  EXPECT_NEAR(b.ttft_s, b.queue_s + b.prefill_s, 1e-12);
  EXPECT_GT(b.token_s, a.token_s);
  // One at a time: the last waits for whole answers, but a stream's tokens come as if alone.
  four.max_sequences = 1;
  const Prediction serial = Of(four);
  EXPECT_NEAR(serial.token_s, a.token_s, 1e-9);
  EXPECT_NEAR(serial.last_ttft_s, 3 * a.total_s + a.ttft_s, 1e-9);
}

TEST_F(PlanTest, ABudgetKeepsStreamsGoing) {
  Workload w{.prompt = 256, .output = 64, .concurrency = 2, .chunk = 256};
  const Prediction whole = Of(w);
  w.max_stall_s = whole.prefill_s / 16;
  const Prediction pieces = Of(w);
  EXPECT_GT(pieces.last_ttft_s, whole.last_ttft_s);  // in pieces, and the weights are read for each
}

TEST_F(PlanTest, MemoryByHand) {
  Workload w{.prompt = 100, .output = 28, .concurrency = 3, .kv_type = KvType::kF16};
  const Result<MemoryPlan> m = PlanMemory(model_, w, 1, 1e9);
  ASSERT_TRUE(m.ok()) << m.status().message();
  EXPECT_DOUBLE_EQ(m->kv_token_bytes, 2 * 2 * 2 * 32 * 2);  // layers, heads, k and v, halves
  EXPECT_DOUBLE_EQ(m->kv_sequence_bytes, 128 * m->kv_token_bytes);  // two pages of 64
  EXPECT_DOUBLE_EQ(m->weights_bytes, model_.WeightBytes());
  const double rest = m->weights_bytes + m->workspace_bytes + m->program_bytes;
  EXPECT_DOUBLE_EQ(m->resident_bytes, rest + 3 * m->kv_sequence_bytes);
  EXPECT_EQ(m->sequences_fit, static_cast<size_t>((1e9 - rest) / m->kv_sequence_bytes));
  EXPECT_TRUE(m->fits());
  const Result<MemoryPlan> small = PlanMemory(model_, w, 1, rest + 2.5 * m->kv_sequence_bytes);
  EXPECT_EQ(small->sequences_fit, 2u);
  EXPECT_FALSE(small->fits());
  EXPECT_EQ(PlanMemory(model_, w, 1, 1000)->sequences_fit, 0u);
  w.context = size_t{1} << 31;
  EXPECT_EQ(PlanMemory(model_, w, 1, 1e9).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(PlanTest, AWindowCapsASequence) {
  const std::string path = TinyModel(TinyGemma3()).Write(folder_.path("g.gguf"));
  const ModelWork gemma = *ModelWork::Of(path);
  const Workload w{.prompt = 4000, .output = 96, .chunk = 64};
  const MemoryPlan m = *PlanMemory(gemma, w, 1, 1e12);
  // 6 of 7 layers hold the window and a chunk: (16 + 64) / 64 rounded up, and one.
  EXPECT_DOUBLE_EQ(m.kv_sequence_bytes, (64 + 6 * 3) * 64 * m.kv_token_bytes / 7);
}

}  // namespace
}  // namespace sluice
