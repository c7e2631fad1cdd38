// The attribution by cases worked by hand, and what holds for all: the causes
// add up to the time.
#include "src/engine/stats.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "src/base/random.h"

namespace sluice {
namespace {

constexpr double kMs = 1e-3;

TEST(Losses, WaitsInBarriersAreSharedByTheWorkers) {
  const PassTotals p =
      Losses({.wall_s = 0.1, .seats = 2, .workers = 2, .cpus = 2, .waited_s = 0.01});
  EXPECT_DOUBLE_EQ(p.barrier_s, 5 * kMs);
  EXPECT_EQ(p.lost_s(), p.barrier_s);
}

TEST(Losses, AQuotaStopsAllWorkersAtOnce) {
  const PassTotals p = Losses(
      {.wall_s = 0.1, .seats = 2, .workers = 2, .cpus = 2, .lost_s = 0.1, .throttled_s = 0.1});
  EXPECT_DOUBLE_EQ(p.throttled_s, 50 * kMs);
  EXPECT_EQ(p.lost_s(), p.throttled_s);
}

// One of two has no CPU for 40 ms. The other does 20 ms of its work and sleeps for 20.
TEST(Losses, TheSleepOfThoseWhoWaitForAStoppedWorkerIsNoBarriers) {
  const PassTotals p = Losses({.wall_s = 0.08,
                               .seats = 2,
                               .workers = 2,
                               .cpus = 2,
                               .waited_s = 0.025,
                               .slept_s = 0.02,
                               .lost_s = 0.04,
                               .preempted_s = 0.04});
  EXPECT_DOUBLE_EQ(p.preempted_s, 30 * kMs);
  EXPECT_DOUBLE_EQ(p.barrier_s, 2.5 * kMs);
}

// 10 ms of one worker hold up three others for 10 ms each and no longer.
TEST(Losses, OneFaultExplainsNoMoreSleepThanItLasted) {
  const PassTotals p = Losses({.wall_s = 0.1,
                               .seats = 4,
                               .workers = 4,
                               .cpus = 4,
                               .waited_s = 0.06,
                               .slept_s = 0.06,
                               .lost_s = 0.01,
                               .page_faults_s = 0.01});
  EXPECT_DOUBLE_EQ(p.page_faults_s, 10 * kMs);
  EXPECT_DOUBLE_EQ(p.barrier_s, 7.5 * kMs);
}

TEST(Losses, ASeatLeftToOtherProgramsIsTheirs) {
  const PassTotals p = Losses({.wall_s = 0.04, .seats = 2, .workers = 1, .cpus = 2});
  EXPECT_DOUBLE_EQ(p.preempted_s, 20 * kMs);
}

TEST(Losses, ASeatThatTheQuotaDoesNotPayForIsTheQuotas) {
  TeamTime t{.wall_s = 0.04, .seats = 2, .workers = 1, .cpus = 2, .quota = 0.5};
  EXPECT_DOUBLE_EQ(Losses(t).throttled_s, 20 * kMs);
  EXPECT_EQ(Losses(t).preempted_s, 0);
  t.quota = 1.5;  // half of the seat
  EXPECT_DOUBLE_EQ(Losses(t).throttled_s, 10 * kMs);
  EXPECT_DOUBLE_EQ(Losses(t).preempted_s, 10 * kMs);
  t.workers = 2;
  EXPECT_EQ(Losses(t).lost_s(), 0);
  // Stopped for half of the time as well: all of it.
  t = {.wall_s = 0.1,
       .seats = 2,
       .workers = 1,
       .cpus = 2,
       .quota = 0.5,
       .lost_s = 0.05,
       .throttled_s = 0.05};
  EXPECT_DOUBLE_EQ(Losses(t).throttled_s, 75 * kMs);
}

TEST(Losses, TakingTurnsIsNoLossButWhatItLeavesIdleIs) {
  TeamTime t{.wall_s = 0.01,
             .seats = 4,
             .workers = 4,
             .cpus = 2,
             .waited_s = 0.01,
             .slept_s = 0.01,
             .lost_s = 0.01,
             .preempted_s = 0.01};
  EXPECT_EQ(Losses(t).lost_s(), 0);
  t.waited_s = t.slept_s = 0.014;  // 4 ms of two CPUs
  EXPECT_NEAR(Losses(t).lost_s(), 2 * kMs, 1e-12);
}

TEST(Losses, AreNeverMoreThanTheWallTime) {
  const PassTotals p = Losses({.wall_s = 0.1,
                               .seats = 2,
                               .workers = 2,
                               .cpus = 2,
                               .waited_s = 0.15,
                               .slept_s = 0.15,
                               .lost_s = 0.19,
                               .preempted_s = 0.19});
  EXPECT_NEAR(p.lost_s(), 0.1, 1e-12);
}

// A pass of 10 ms, 2 of which were barriers; 1 GB/s: weights take 6 ms, keys and values 2.
PassTotals Decode() {
  PassTotals w;
  w.seconds = 10 * kMs;
  w.barrier_s = 2 * kMs;
  w.passes = w.rows = w.logit_passes = w.logit_rows = 1;
  w.weight_bytes = 6e6;
  w.kv_bytes = 2e6;
  w.attention_macs = 1e6;
  return w;
}
const PhaseCeilings kCeilings{.read_gb_s = 1,
                              .first_row_s = 2 * kMs,
                              .row_s = 1 * kMs,
                              .first_logits_s = 1 * kMs,
                              .logits_s = 0.5 * kMs,
                              .attention_gmac_s = 1};

TEST(Attribute, WhatStreamsLongerThanItMultipliesIsTheStreams) {
  const StallTimes t = Attribute(Decode(), kCeilings);
  EXPECT_NEAR(t[Cause::kWeightStream], 6 * kMs, 1e-12);
  EXPECT_NEAR(t[Cause::kKvStream], 2 * kMs, 1e-12);
  EXPECT_NEAR(t[Cause::kBarrier], 2 * kMs, 1e-12);
  EXPECT_EQ(t[Cause::kCompute], 0);
  const CeilingShares shares = SharesOf(Decode(), kCeilings);
  EXPECT_NEAR(shares.bandwidth, 0.8, 1e-12);
  EXPECT_NEAR(shares.compute, 0.4, 1e-12);
  EXPECT_STREQ(shares.binds(), "bandwidth");
}

// 9 rows: matrices 2 + 8 ms and logits 1, so 11 ms against 6 of reading; attention 1 against 2.
TEST(Attribute, ManyRowsMultiplyLongerThanTheyRead) {
  PassTotals w = Decode();
  w.rows = 9;
  w.seconds = 28 * kMs;  // 26 of work, twice the 13 of the roofs
  w.slow_clock_s = 0.25 * w.seconds;
  const StallTimes t = Attribute(w, kCeilings);
  EXPECT_NEAR(t[Cause::kKvStream], 4 * kMs, 1e-12);
  EXPECT_NEAR(t[Cause::kCompute] + t[Cause::kClock], 22 * kMs, 1e-12);
  EXPECT_NEAR(t[Cause::kClock], 5.5 * kMs, 1e-12);  // a quarter of the multiplying
  EXPECT_EQ(t[Cause::kWeightStream], 0);
  EXPECT_STREQ(SharesOf(w, kCeilings).binds(), "compute");
}

// A worker that has no CPU while the others read as fast as the memory gives costs nothing.
TEST(Attribute, NoMoreWasLostThanAQuietMachineWouldHaveSaved) {
  PassTotals w = Decode();
  w.preempted_s = 3 * kMs;  // with the barriers 5 of 10
  PhaseCeilings c = kCeilings;
  c.quiet_read_gb_s = 2;  // 8 MB in 4 ms
  StallTimes t = Attribute(w, c);
  EXPECT_NEAR(t[Cause::kPreempted], 3 * kMs, 1e-12);
  EXPECT_NEAR(t[Cause::kWeightStream], 3.75 * kMs, 1e-12);
  c.quiet_read_gb_s = 1;  // in 8: no more than 2 were lost
  t = Attribute(w, c);
  EXPECT_NEAR(t[Cause::kPreempted], 1.2 * kMs, 1e-12);
  EXPECT_NEAR(t[Cause::kBarrier], 0.8 * kMs, 1e-12);
  EXPECT_NEAR(t[Cause::kWeightStream], 6 * kMs, 1e-12);
  c.quiet_read_gb_s = 0.5;
  t = Attribute(w, c);
  EXPECT_EQ(t[Cause::kPreempted] + t[Cause::kBarrier], 0);
  EXPECT_NEAR(t.sum(), w.seconds, 1e-12);
}

TEST(Attribute, BytesDivideTheTimeAsLongAsNoCeilingIsKnown) {
  const StallTimes t = Attribute(Decode(), {});
  EXPECT_NEAR(t[Cause::kWeightStream], 6 * kMs, 1e-12);
  EXPECT_NEAR(t[Cause::kKvStream], 2 * kMs, 1e-12);
  EXPECT_STREQ(SharesOf(Decode(), {}).binds(), "");
}

TEST(Attribute, NothingIsLeftOver) {
  for (uint64_t i = 0; i < 200; ++i) {
    uint64_t step = 0;
    const auto any = [&] { return static_cast<double>(RandomBits(5, i, step++) % 1000); };
    PassTotals w;
    w.barrier_s = any();
    w.page_faults_s = any();
    w.throttled_s = any();
    w.preempted_s = any();
    w.seconds = w.lost_s() + any();
    w.slow_clock_s = any();
    w.passes = 1 + any();
    w.rows = w.passes + any();
    w.weight_bytes = any() * 1e9;
    w.kv_bytes = any() * 1e9;
    w.attention_macs = any() * 1e9;
    const PhaseCeilings c{.read_gb_s = any(),
                          .quiet_read_gb_s = any(),
                          .first_row_s = any(),
                          .row_s = any(),
                          .attention_gmac_s = any()};
    const StallTimes t = Attribute(w, c);
    EXPECT_NEAR(t.sum(), w.seconds, 1e-9 * w.seconds) << i;
    for (const double s : t.seconds) EXPECT_GE(s, 0) << i;
  }
}

TEST(RequestWork, AddsUpEverythingItMet) {
  RequestWork work;
  work.prefill = work.decode = Decode();
  work.queue_s = 3;
  work.sampling_s = 0.5;
  work.other_s = 0.25;
  work.ceilings = {kCeilings, kCeilings};
  EXPECT_NEAR(work.Stalls().sum(), 3.75 + 20 * kMs, 1e-12);
  RequestWork sum;
  sum += work;
  sum += work;
  EXPECT_NEAR(sum.Stalls().sum(), 2 * work.Stalls().sum(), 1e-12);
  EXPECT_EQ(sum.Stalls()[Cause::kQueue], 6);
}

TEST(CauseName, EachHasItsOwn) {
  std::set<std::string> names;
  for (size_t i = 0; i < kCauses; ++i) names.insert(CauseName(static_cast<Cause>(i)));
  EXPECT_EQ(names.size(), kCauses);
  EXPECT_STREQ(CauseName(Cause::kOther), "other");
}

}  // namespace
}  // namespace sluice
