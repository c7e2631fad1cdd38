#include "src/load/summary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "src/load/compare.h"
#include "src/load/load_result.h"
#include "src/load/sweep.h"

namespace sluice::load {
namespace {

// An answer of `tokens` tokens, the first after `first_s`, then every `gap_s`.
LoadSample Answer(double due_s, double first_s, double gap_s, size_t tokens = 5) {
  LoadSample s;
  s.intended_s = due_s;
  s.sent_s = due_s + 0.01;
  for (size_t i = 0; i < tokens; ++i) {
    s.text_s.push_back(due_s + first_s + gap_s * static_cast<double>(i));
  }
  s.end_s = s.text_s.back();
  s.prompt_asked = s.prompt_tokens = 100;
  s.output_asked = s.output_tokens = tokens;
  s.counted = true;
  return s;
}

LoadSample Failure(double due_s, const std::string& kind) {
  LoadSample s;
  s.intended_s = s.sent_s = due_s;
  s.end_s = due_s + 1;
  s.error = kind;
  s.detail = "why";
  return s;
}

TEST(SloTest, TimesWithUnits) {
  const Result<Slo> slo = ParseSlo("ttft=2s,tpot:100,itl=50ms,e2e=1.5s");
  ASSERT_TRUE(slo.ok());
  EXPECT_EQ(slo->ttft_s, 2);
  EXPECT_EQ(slo->tpot_s, 0.1);
  EXPECT_EQ(slo->itl_s, 0.05);
  EXPECT_EQ(slo->e2e_s, 1.5);
  EXPECT_EQ(slo->Text(), "ttft=2s,tpot=0.1s,itl=0.05s,e2e=1.5s");
  for (const char* bad : {"", "ttft", "ttft=", "ttft=x", "ttft=-1s", "ttft=1h", "speed=1s",
                          "ttft=1s,", "ttft=nan", "ttft=inf"}) {
    EXPECT_FALSE(ParseSlo(bad).ok()) << bad;
  }
}

TEST(SummaryTest, EachFigureByHand) {
  std::vector<LoadSample> samples;
  samples.push_back(Answer(0, 0.1, 0.02));     // ends at 0.18
  samples.push_back(Answer(1, 0.3, 0.05));     // at 1.5
  samples.push_back(Answer(2, 0.2, 0.02, 1));  // one token: no TPOT, no gap; at 2.2
  samples.push_back(Failure(3, "http 500"));
  samples.push_back(Failure(4, "interrupted"));
  Slo slo;
  slo.ttft_s = 0.25;
  const LoadSummary s = Summarise(samples, slo);
  EXPECT_EQ(s.requests, 5u);
  EXPECT_EQ(s.ok, 3u);
  EXPECT_EQ(s.failed, 1u);
  EXPECT_EQ(s.unfinished, 1u);
  EXPECT_EQ(s.errors.at("http 500").first, "why");
  EXPECT_NEAR(s.ttft.p50, 0.2, 1e-9);
  EXPECT_NEAR(s.ttft_sent.p50, 0.19, 1e-9);
  EXPECT_NEAR(s.e2e.most, 0.5, 1e-9);
  EXPECT_EQ(s.tpot.count, 2u);
  EXPECT_NEAR(s.tpot.mean, 0.035, 1e-9);
  EXPECT_EQ(s.itl.count, 8u);
  EXPECT_NEAR(s.duration_s, 2.2, 1e-9);
  EXPECT_NEAR(s.achieved, 3 / 2.2, 1e-9);
  EXPECT_NEAR(s.output_tok_s, 11 / 2.2, 1e-9);
  EXPECT_NEAR(s.offered, 1, 1e-9);
  EXPECT_EQ(s.good, 2u);
  EXPECT_NEAR(s.goodput, 2 / 2.2, 1e-9);
  EXPECT_NEAR(s.attainment(), 0.5, 1e-9);  // of four: the failed one is not good either
  EXPECT_EQ(s.most_running, 1u);
  EXPECT_EQ(Summarise({}, slo).requests, 0u);
}

// 100 requests in 10 s at a server that answers one in `service_s`.
std::vector<LoadSample> Queue(double service_s) {
  std::vector<LoadSample> samples;
  double free_at = 0;
  for (int i = 0; i < 100; ++i) {
    const double due = 0.1 * i;
    free_at = std::max(free_at, due) + service_s;
    samples.push_back(Answer(due, free_at - due, 0, 1));
  }
  return samples;
}

TEST(SummaryTest, AQueueThatGrowsIsSeen) {
  EXPECT_NEAR(Summarise(Queue(0.09), {}).kept_up, 1, 0.03);
  EXPECT_NEAR(Summarise(Queue(0.2), {}).kept_up, 0.5, 0.05);
  // Long answers that overlap are no queue.
  std::vector<LoadSample> slow;
  for (int i = 0; i < 100; ++i) slow.push_back(Answer(0.1 * i, 4, 0, 1));
  EXPECT_NEAR(Summarise(slow, {}).kept_up, 1, 0.03);
}

TEST(SweepTest, WhatIsTooMuch) {
  EXPECT_EQ(TooMuch(Summarise(Queue(0.09), {}), {}, 0.9), "");
  EXPECT_NE(TooMuch(Summarise(Queue(0.2), {}), {}, 0.9).find("a queue grows"), std::string::npos);
  Slo slo;
  slo.ttft_s = 0.05;
  EXPECT_NE(TooMuch(Summarise(Queue(0.09), slo), slo, 0.9).find("SLO"), std::string::npos);
  std::vector<LoadSample> failing = Queue(0.09);
  for (int i = 0; i < 5; ++i) failing.push_back(Failure(1, "http 429"));
  EXPECT_NE(TooMuch(Summarise(failing, {}), {}, 0.9).find("http 429"), std::string::npos);
}

// The rates that are tried at a server that is fine up to `capacity`.
std::vector<double> Tried(Sweep* sweep, double capacity) {
  std::vector<double> rates;
  while (const std::optional<double> rate = sweep->Next()) {
    rates.push_back(*rate);
    sweep->Tell(*rate <= capacity);
  }
  return rates;
}

TEST(SweepTest, FindsTheKnee) {
  Sweep up(1, 2, 20);
  EXPECT_EQ(Tried(&up, 10).size(), 7u);  // 1 2 4 8 16, then two between 8 and 16
  EXPECT_GT(up.knee(), 8.9);
  EXPECT_LE(up.knee(), 10);
  EXPECT_GT(up.broken(), 10);
  EXPECT_LT(up.broken(), 12);
  Sweep down(100, 2, 20);
  Tried(&down, 10);
  EXPECT_GT(down.knee(), 8);
  EXPECT_LE(down.knee(), 10);
  Sweep endless(1, 2, 4);
  EXPECT_EQ(Tried(&endless, 1e9).size(), 4u);
  EXPECT_EQ(endless.knee(), 8);
  EXPECT_EQ(endless.broken(), 0);
  Sweep hopeless(8, 2, 4);
  Tried(&hopeless, 0);
  EXPECT_EQ(hopeless.knee(), 0);
  EXPECT_EQ(hopeless.broken(), 1);
}

LoadResult ResultOf(std::vector<LoadSample> samples) {
  LoadResult result;
  result.url = "http://x";
  result.model = "m";
  result.settings = {{"prompt-tokens", "100"}};
  result.slo.ttft_s = 0.25;
  LoadStep step;
  step.open = true;
  step.rate = 2;
  step.samples = std::move(samples);
  step.summary = Summarise(step.samples, result.slo);
  result.steps.push_back(std::move(step));
  return result;
}

TEST(LoadResultTest, SurvivesItsFile) {
  const LoadResult before =
      ResultOf({Answer(0, 0.1, 0.02), Answer(1, 0.3, 0.02), Failure(2, "http 429")});
  const Result<LoadResult> after =
      ParseResult("f", boost::json::serialize(ResultJson(before, true)));
  ASSERT_TRUE(after.ok()) << after.status().message();
  EXPECT_EQ(after->model, "m");
  EXPECT_EQ(after->settings, before.settings);
  EXPECT_EQ(after->slo.Text(), "ttft=0.25s");
  ASSERT_EQ(after->steps.size(), 1u);
  EXPECT_EQ(after->steps[0].Name(), "2 req/s");
  const LoadSummary &a = before.steps[0].summary, &b = after->steps[0].summary;
  EXPECT_EQ(a.ok, b.ok);
  EXPECT_EQ(a.good, b.good);
  EXPECT_EQ(a.errors.at("http 429").first, b.errors.at("http 429").first);
  EXPECT_NEAR(a.ttft.p50, b.ttft.p50, 1e-9);
  EXPECT_NEAR(a.itl.p999, b.itl.p999, 1e-9);
  EXPECT_NEAR(a.e2e_sent.most, b.e2e_sent.most, 1e-9);
  EXPECT_NEAR(a.output_tok_s, b.output_tok_s, 1e-6);
  const std::string csv = ResultCsv(before);
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 4);
  EXPECT_NE(csv.find("\"http 429\""), std::string::npos);
  for (const char* bad : {"", "{}", "[]", "{\"format\":\"sluice-load-1\"}",
                          "{\"format\":\"sluice-load-1\",\"steps\":[{}]}",
                          "{\"format\":\"sluice-load-1\",\"steps\":[{\"requests\":[1]}]}"}) {
    EXPECT_FALSE(ParseResult("f", bad).ok()) << bad;
  }
}

TEST(CompareTest, SaysWhatIsNoise) {
  std::vector<LoadSample> a, same, slower;
  for (int i = 0; i < 60; ++i) {
    const double jitter = 0.001 * ((i * 37) % 11);
    a.push_back(Answer(i, 0.2 + jitter, 0.02));
    same.push_back(Answer(i, 0.2 + 0.001 * ((i * 41) % 11), 0.02));
    slower.push_back(Answer(i, 0.25 + jitter, 0.02));
  }
  const auto ttft = [](const Comparison& c) { return c.steps.at(0).figures.at(0); };
  const Comparison noise = Compare(ResultOf(a), ResultOf(same));
  EXPECT_EQ(ttft(noise).name, "TTFT p50");
  EXPECT_FALSE(ttft(noise).estimate.differs());
  EXPECT_TRUE(noise.doubts.empty());
  const Comparison real = Compare(ResultOf(a), ResultOf(slower));
  EXPECT_TRUE(ttft(real).estimate.differs());
  EXPECT_NEAR(ttft(real).estimate.ratio(), 0.255 / 0.205, 0.01);
  LoadResult other = ResultOf(same);
  other.model = "n";
  other.settings["prompt-tokens"] = "200";
  other.steps[0].rate = 3;
  other.steps[0].summary.cached_tokens = 6000 / 10;
  EXPECT_EQ(Compare(ResultOf(a), other).doubts.size(), 4u);
}

}  // namespace
}  // namespace sluice::load
