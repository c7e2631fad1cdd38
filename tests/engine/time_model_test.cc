// The model of time: what passes move and multiply, by hand; times from speeds.
#include "src/engine/time_model.h"

#include <gtest/gtest.h>

#include <cmath>

#include "src/engine/machine_speed.h"
#include "tests/base/temp_folder.h"
#include "tests/model/tiny_model.h"

namespace sluice {
namespace {

// A made-up dense model: one layer kind, Q8_0 in rows (34 bytes for 32 weights).
Weight Matrix(size_t rows, size_t k, size_t experts = 1, const char* format = "Q8_0") {
  Weight w;
  w.format = FindFormat(format);
  w.rows = rows;
  w.k = k;
  w.experts = experts;
  return w;
}

Config SmallConfig() {
  Config c;
  c.layers = 2;
  c.dim = 64;
  c.ffn_dim = 128;
  c.vocab = 320;
  c.heads = 4;
  c.kv_heads = 2;
  c.key_dim = c.value_dim = 32;
  c.context = 1024;
  return c;
}

Weights SmallWeights(const Config& c) {
  Weights w;
  w.embedding = Matrix(c.vocab, c.dim);
  w.output = Matrix(c.vocab, c.dim);
  for (size_t i = 0; i < c.layers; ++i) {
    LayerWeights layer;
    layer.q = Matrix(128, 64);
    layer.k = Matrix(64, 64);
    layer.v = Matrix(64, 64);
    layer.o = Matrix(64, 128);
    layer.gate = Matrix(128, 64);
    layer.up = Matrix(128, 64);
    layer.down = Matrix(64, 128);
    w.layers.push_back(layer);
  }
  return w;
}

constexpr double kLayerMacs = 128 * 64 + 2 * 64 * 64 + 64 * 128 + 3 * 128 * 64;
constexpr double kLogitMacs = 320 * 64;
constexpr double kByteAWeight = 34.0 / 32;

TEST(TimeModel, CountsATokenByHand) {
  const Config c = SmallConfig();
  const ModelWork model(c, SmallWeights(c));
  const PassWork token = model.Decode(1, 100, KvType::kF16);
  EXPECT_DOUBLE_EQ(token.matrix_macs[0], 2 * kLayerMacs + kLogitMacs);
  EXPECT_DOUBLE_EQ(token.matrix_bytes[0], kByteAWeight * (2 * kLayerMacs + kLogitMacs));
  // 101 positions, 2 layers, 2 kv heads, keys and values of 32 halves.
  EXPECT_DOUBLE_EQ(token.kv_bytes, 101 * 2 * 2 * 2 * 32 * 2);
  EXPECT_DOUBLE_EQ(token.written_bytes, 2 * 2 * 2 * 32 * 2);
  EXPECT_DOUBLE_EQ(token.attention_macs, 101 * 2 * 4 * 64);
  EXPECT_DOUBLE_EQ(token.row_attention_macs, token.attention_macs);
  EXPECT_DOUBLE_EQ(token.bytes, token.matrix_bytes[0] + token.kv_bytes);
  EXPECT_DOUBLE_EQ(model.WeightBytes(), token.matrix_bytes[0]);

  // Four streams: weights once, keys and values four times.
  const PassWork four = model.Decode(4, 100, KvType::kF16);
  EXPECT_DOUBLE_EQ(four.matrix_bytes[0], token.matrix_bytes[0]);
  EXPECT_DOUBLE_EQ(four.matrix_macs[0], 4 * token.matrix_macs[0]);
  EXPECT_DOUBLE_EQ(four.kv_bytes, 4 * token.kv_bytes);
}

TEST(TimeModel, CountsAPromptByHand) {
  const Config c = SmallConfig();
  const ModelWork model(c, SmallWeights(c));
  const RowRange range{4, 3};  // rows at 4, 5, 6 see 5, 6, 7 positions
  PassWork work;
  model.Add({&range, 1}, 0, KvType::kF32, &work);
  EXPECT_DOUBLE_EQ(work.matrix_macs[0], 3 * 2 * kLayerMacs);  // no logits
  EXPECT_DOUBLE_EQ(work.attention_macs, (5 + 6 + 7) * 2 * 4 * 64);
  EXPECT_DOUBLE_EQ(work.row_attention_macs, 0);
  EXPECT_DOUBLE_EQ(work.kv_bytes, 7 * 2 * 2 * 2 * 32 * 4);
}

TEST(TimeModel, SlidingLayersAreCapped) {
  Config c = SmallConfig();
  c.window = 16;
  c.windowed = {1, 0};
  const ModelWork model(c, SmallWeights(c));
  const PassWork token = model.Decode(1, 99, KvType::kF16);
  const double position = 2 * 2 * 32 * 2;  // one layer
  EXPECT_DOUBLE_EQ(token.kv_bytes, position * (100 + 16));
  EXPECT_DOUBLE_EQ(token.attention_macs, (100 + 16) * 4 * 64);
  // Rows at 14 .. 17 of the window's layer see 15, 16, 16, 16.
  const RowRange range{14, 4};
  PassWork work;
  model.Add({&range, 1}, 0, KvType::kF16, &work);
  EXPECT_DOUBLE_EQ(work.attention_macs, (15 + 16 + 17 + 18 + 15 + 16 + 16 + 16) * 4 * 64);
}

TEST(TimeModel, ReadsTheExpertsThatRowsChoose) {
  Config c = SmallConfig();
  c.moe = {.experts = 8, .used = 2, .ffn_dim = 128};
  Weights w = SmallWeights(c);
  for (LayerWeights& layer : w.layers) {
    layer.gate = layer.up = layer.down = Weight();
    layer.router = Matrix(8, 64, 1, "F32");
    layer.expert_gate = layer.expert_up = Matrix(128, 64, 8);
    layer.expert_down = Matrix(64, 128, 8);
  }
  const ModelWork model(c, w);
  const double expert = kByteAWeight * 3 * 128 * 64, experts = 2 * 8 * expert;  // of 2 layers
  const auto bytes = [&](size_t rows) {
    const RowRange range{0, rows};
    PassWork work;
    model.Add({&range, 1}, 0, KvType::kF16, &work);
    return work.bytes - work.kv_bytes;
  };
  const double attention = 2 * kByteAWeight * (2 * 128 * 64 + 2 * 64 * 64);
  const double router = 2 * 8 * 64 * 4;
  EXPECT_NEAR(bytes(1), attention + router + experts * 2 / 8, 1e-6);
  // Two rows choose 2 of 8 each: nine sixteenths are left out by both.
  EXPECT_NEAR(bytes(2), attention + router + experts * (1 - 0.75 * 0.75), 1e-6);
  EXPECT_NEAR(bytes(100), attention + router + experts, 1e-3);
  EXPECT_NEAR(model.WeightBytes() - bytes(100), kByteAWeight * kLogitMacs, 1e-3);
  // Multiply-adds: two experts a row, the router.
  const PassWork token = model.Decode(1, 0, KvType::kF16);
  double macs = 0;
  for (const double m : token.matrix_macs) macs += m;
  EXPECT_DOUBLE_EQ(macs, 2 * (2 * 128 * 64 + 2 * 64 * 64 + 2 * 3 * 128 * 64 + 8 * 64) + kLogitMacs);
  // Another format is for all but routers.
  const ModelWork f16 = model.In(*FindFormat("F16"));
  ASSERT_EQ(f16.kernels().size(), 2u);
  EXPECT_NEAR(f16.WeightBytes() - router, 2 / kByteAWeight * (model.WeightBytes() - router), 1e-6);
}

TEST(TimeModel, KeysAndValuesOfAnEightBillionModel) {
  Config c;
  c.layers = 32;
  c.heads = 32;
  c.kv_heads = 8;
  c.key_dim = c.value_dim = 128;
  EXPECT_EQ(KvBytesRead(c, KvType::kF16, 1), 128u << 10);
  EXPECT_EQ(KvBytesRead(c, KvType::kBF16, 1), 128u << 10);
}

TEST(TimeModel, AFileIsCountedAsItsLoadedModelIs) {
  const TempFolder folder;
  for (const TinyShape& shape : {TinyLlama(), TinyGemma3(), TinyMoe()}) {
    const std::string path = TinyModel(shape).Write(folder.path("m.gguf"));
    const Result<ModelWork> rows = ModelWork::Of(path, false);
    ASSERT_TRUE(rows.ok()) << rows.status().message();
    const auto team = ThreadTeam::Create(1);
    auto model = Model::Load(*Gguf::Open(path), LoadMode::kRepack, Activations::kInt8, **team);
    ASSERT_TRUE(model.ok());
    const Result<ModelWork> panels = ModelWork::Of(path, true);
    const ModelWork loaded((*model)->config(), (*model)->weights());
    EXPECT_DOUBLE_EQ(panels->WeightBytes(), loaded.WeightBytes());
    EXPECT_DOUBLE_EQ(panels->Decode(3, 40, KvType::kF16).bytes,
                     loaded.Decode(3, 40, KvType::kF16).bytes);
    EXPECT_EQ(loaded.WeightBytesPerToken(), (*model)->WeightBytesPerToken());
    EXPECT_EQ(panels->WeightBytesPerToken(), (*model)->WeightBytesPerToken());
  }
  EXPECT_EQ(ModelWork::Of(folder.path("none.gguf")).status().code(), StatusCode::kNotFound);
}

// ---- Time ---------------------------------------------------------------------------------------

TEST(MachineSpeed, CeilingsOfASixteenGigabyteModel) {
  const Config c = SmallConfig();
  const ModelWork model(c, SmallWeights(c));
  PassWork token;  // bytes alone
  token.bytes = 16e9;
  const auto tok_s = [&](const char* device) {
    const Result<Device> found = FindDevice(PublishedDevices(), device);
    EXPECT_TRUE(found.ok());
    return std::lround(1 / RoofSeconds(token, SpeedOf(model, *found)));
  };
  EXPECT_EQ(tok_s("ddr5-dual"), 6);
  EXPECT_EQ(tok_s("a10g"), 38);
  EXPECT_EQ(tok_s("l40s"), 54);
  EXPECT_EQ(tok_s("rtx4090"), 63);
  EXPECT_EQ(tok_s("a100-80g"), 127);
  EXPECT_EQ(tok_s("h100-sxm"), 209);
}

TEST(KernelSpeed, BetweenTwoCountsByTheirLogarithm) {
  const KernelSpeed k{10, 100, {{1, 20}, {4, 60}, {16, 100}}};
  EXPECT_DOUBLE_EQ(k.GmacsAt(1), 20);
  EXPECT_DOUBLE_EQ(k.GmacsAt(2), 40);
  EXPECT_DOUBLE_EQ(k.GmacsAt(4), 60);
  EXPECT_DOUBLE_EQ(k.GmacsAt(8), 80);
  EXPECT_DOUBLE_EQ(k.GmacsAt(500), 100);
  EXPECT_DOUBLE_EQ(KernelSpeed().GmacsAt(8), 0);
}

MachineSpeed Speed() {
  MachineSpeed s;
  s.read_gb_s = 10;
  s.kernels = {{8, 200, {{1, 20}, {256, 200}}, 20}};
  s.attention_gmac_s = 50;
  s.row_attention_gmac_s = 25;
  s.barrier_us = 1;
  s.row_ns = 1;
  s.gate_ns = 2;
  s.threads = 2;
  return s;
}

// Rates of few rows are those of decode's threads, of many those of prefill's.
TEST(CeilingsFrom, CountsTheThreadsOfEachPhase) {
  const Config c = SmallConfig();
  const ModelWork model(c, SmallWeights(c));
  const ModelWork::Kernel& k = model.kernels()[0];
  PassCeilings roofs = CeilingsFrom(model, Speed(), 2, 4);
  EXPECT_DOUBLE_EQ(roofs.decode.first_row_s, 1e-9 * k.macs / 20);
  EXPECT_DOUBLE_EQ(roofs.decode.row_s, 1e-9 * k.macs / 100);
  EXPECT_DOUBLE_EQ(roofs.decode.logits_s, 1e-9 * k.output_macs / 100);
  EXPECT_DOUBLE_EQ(roofs.prefill.first_row_s, 1e-9 * k.macs / 40);
  EXPECT_DOUBLE_EQ(roofs.prefill.first_logits_s, 1e-9 * k.output_macs / 40);
  EXPECT_DOUBLE_EQ(roofs.prefill.row_s, 1e-9 * k.macs / 200);
  EXPECT_EQ(roofs.decode.attention_gmac_s, 25);
  EXPECT_EQ(roofs.prefill.attention_gmac_s, 50);
  MachineSpeed unknown = Speed();
  unknown.kernels = {{}};
  roofs = CeilingsFrom(model, unknown, 2, 2);
  EXPECT_EQ(roofs.decode.row_s, 0);
  EXPECT_EQ(roofs.prefill.first_logits_s, 0);
}

TEST(PredictPass, TakesTheLongerOfReadingAndMultiplying) {
  const Config c = SmallConfig();
  const ModelWork model(c, SmallWeights(c));
  const MachineSpeed speed = Speed();
  PassWork work;
  work.matrix_bytes = {8e9};  // 1 s of streaming, 0.8 s at the roof
  work.matrix_macs = {2e9};   // 0.1 s with one row
  work.bytes = 8e9;
  EXPECT_NEAR(PredictPass(model, work, 1, speed).weights_s, 1, 1e-9);
  EXPECT_NEAR(RoofSeconds(work, speed), 0.8, 1e-9);
  EXPECT_FALSE(ComputeBinds(work, speed));
  work.matrix_macs = {400e9};  // 2 s with 256 rows
  work.matrix_bytes = {400e9 * kByteAWeight / 256};
  EXPECT_NEAR(PredictPass(model, work, 256, speed).weights_s, 2, 1e-9);
  EXPECT_NEAR(RoofSeconds(work, speed), 2, 1e-9);
  EXPECT_TRUE(ComputeBinds(work, speed));
  // The same products with an expert's share of the rows: 16 for each weight that is read.
  work.matrix_bytes = {400e9 * kByteAWeight / 16};
  EXPECT_NEAR(PredictPass(model, work, 256, speed).weights_s, 400 / 110.0, 1e-6);
}

// Caches hold a part of a token's weights: `read_bytes`, at twice the memory's rate.
MachineSpeed WithCaches(double read_bytes) {
  MachineSpeed speed = Speed();
  speed.memory_gb_s = 10;
  speed.read_gb_s = 20;
  speed.read_bytes = read_bytes;
  return speed;
}

// A pass that reads 8 GB.
PassWork LongRead() {
  PassWork work;
  work.bytes = 8e9;
  work.matrix_bytes = {8e9};  // from memory: 1 s of streaming, 0.8 s to read
  work.matrix_macs = {2e9};
  return work;
}

// What caches hold of few bytes is saved of the time from memory; nothing beats the ceiling.
TEST(PredictPass, CachesHoldAPartOfAFewBytes) {
  const Config c = SmallConfig();
  const ModelWork model(c, SmallWeights(c));
  MachineSpeed speed = WithCaches(8e9);
  const PassWork work = LongRead();
  EXPECT_NEAR(RoofSeconds(work, speed), 0.4, 1e-9);
  EXPECT_NEAR(PredictPass(model, work, 1, speed).weights_s, 0.6, 1e-9);
  speed.kernels[0].stream_gb_s = 40;  // measured in a better moment than the ceiling
  EXPECT_NEAR(PredictPass(model, work, 1, speed).weights_s, 0.4, 1e-9);
}

// ... and only of a token's weights: the experts and keys of many come from memory.
TEST(PredictPass, CachesHoldNoMoreThanATokensWeights) {
  const Config c = SmallConfig();
  const ModelWork model(c, SmallWeights(c));
  MachineSpeed speed = WithCaches(4e9);
  speed.kernels[0].stream_gb_s = 40;
  PassWork work = LongRead();
  EXPECT_NEAR(RoofSeconds(work, speed), 0.2 + 0.4, 1e-9);
  EXPECT_NEAR(PredictPass(model, work, 1, speed).weights_s, 0.2 + 0.4, 1e-9);
  work.row_attention_macs = work.attention_macs = 1;
  work.kv_bytes = 10e9;
  EXPECT_NEAR(PredictPass(model, work, 1, speed).attention_s, 1, 1e-9);
}

// The ceiling is what whoever runs the model measures: reading as many bytes.
TEST(SpeedHere, ReadsAsManyBytesAsTheModel) {
  const Config c = SmallConfig();
  const ModelWork model(c, SmallWeights(c));
  Ceilings ceilings;
  ceilings.Add(kReadRate, 10, 1);
  EXPECT_EQ(SpeedHere(model, KvType::kF16, ceilings, CeilingOf::kNow, 1).read_gb_s, 10);
  ceilings.Add(ReadRate(model.WeightBytesPerToken()), 40, 1);
  const MachineSpeed speed = SpeedHere(model, KvType::kF16, ceilings, CeilingOf::kNow, 1);
  EXPECT_EQ(speed.read_gb_s, 40);
  EXPECT_EQ(speed.memory_gb_s, 10);
  EXPECT_EQ(CeilingsOf(model, KvType::kF16).reads,
            std::vector<uint64_t>{model.WeightBytesPerToken()});
}

TEST(PredictPass, AddsAttentionRowsAndBarriers) {
  const Config c = SmallConfig();
  const ModelWork model(c, SmallWeights(c));
  PassWork work;
  work.attention_macs = 75e9;
  work.row_attention_macs = 25e9;  // 1 s, and 50e9 of prompts 1 s
  work.kv_bytes = work.bytes = 1e9;
  const PassTime time = PredictPass(model, work, 1, Speed());
  EXPECT_NEAR(time.attention_s, 2, 1e-9);
  EXPECT_NEAR(time.barriers_s, 1e-6 * (2 * 5 + 2), 1e-12);
  // Values of a row: 2 layers x (2 x 64 + 128 + 64), no norms, by every thread, 2 x 128 shared, 2
  // ns each.
  EXPECT_NEAR(time.rows_s, 1e-9 * 2 * (320 + 2 * 128 / 2), 1e-15);
  EXPECT_NEAR(PredictPass(model, work, 4, Speed()).rows_s, 1e-9 * 4 * 2 * (320 + 2 * 128) / 2,
              1e-15);
  work.kv_bytes = work.bytes = 30e9;  // reading them takes longer than multiplying
  EXPECT_NEAR(PredictPass(model, work, 1, Speed()).attention_s, 4, 1e-9);
}

}  // namespace
}  // namespace sluice
