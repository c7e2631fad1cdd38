// Tiny models of every architecture against reference logits. Files with F32
// weights must be exact; quantised files are judged twice, with float
// activations (the model) and with int8 ones (what `run` computes), by the
// rules that the oracles' own README gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tests/engine/runner.h"
#include "tests/text/shared_oracles.h"

namespace sluice {
namespace {

constexpr size_t kGreedy = 32;

// What one engine or reference says about one prompt.
struct Answer {
  std::vector<float> last;              // logits after the last token
  std::vector<std::vector<float>> all;  // after each token; ours only
  std::vector<int32_t> argmax, greedy;
  std::vector<double> margin;
  double nll_sum = 0;
};

Answer Reference(const boost::json::object& prompt, const std::string& suffix) {
  const auto read = [&](const char* name, auto* out) {
    *out = boost::json::value_to<std::decay_t<decltype(*out)>>(prompt.at(name + suffix));
  };
  Answer a;
  read("logits_last", &a.last);
  read("argmax_each_position", &a.argmax);
  read("margin_each_position", &a.margin);
  read("greedy_32", &a.greedy);
  read("nll_sum", &a.nll_sum);
  return a;
}

Answer Ours(ModelRunner& runner, std::span<const int32_t> tokens) {
  Answer a;
  Evaluator evaluator(runner);
  const Status s = evaluator.Append(tokens, 0, [&](size_t i, std::span<const float> logits) {
    a.argmax.push_back(static_cast<int32_t>(ArgMax(logits.data(), logits.size())));
    a.all.emplace_back(logits.begin(), logits.end());
    if (i + 1 == tokens.size()) {
      a.last.assign(logits.begin(), logits.end());
    } else {
      a.nll_sum += LogSumExp(logits.data(), logits.size()) -
                   static_cast<double>(logits[static_cast<size_t>(tokens[i + 1])]);
    }
  });
  EXPECT_TRUE(s.ok()) << s.message();
  return a;
}

double LargestDifference(const Answer& a, const Answer& b) {
  double most = 0;
  for (size_t i = 0; i < b.last.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(a.last[i]) - b.last[i]));
  }
  return most;
}

double LargestLogit(const Answer& a) {
  double most = 0;
  for (float l : a.last) most = std::max(most, std::abs(static_cast<double>(l)));
  return most;
}

using Floats = std::vector<float>;

double RmsDifference(const Floats& a, const Floats& b) {
  double sum = 0;
  for (size_t i = 0; i < b.size(); ++i) sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return std::sqrt(sum / static_cast<double>(b.size()));
}

double Deviation(const Floats& logits) {
  double mean = 0;
  for (float l : logits) mean += static_cast<double>(l);
  mean /= static_cast<double>(logits.size());
  return RmsDifference(logits, Floats(logits.size(), static_cast<float>(mean)));
}

// Of a.all to b.all, each in deviations of b's.
double MedianRms(const Answer& a, const Answer& b) {
  std::vector<double> rms;
  for (size_t i = 0; i < b.all.size(); ++i) {
    rms.push_back(RmsDifference(a.all[i], b.all[i]) / Deviation(b.all[i]));
  }
  std::sort(rms.begin(), rms.end());
  return rms[rms.size() / 2];
}

// Greedy tokens against the reference's first n. They may part where our own logits of the two
// tokens are nearer than `tie`, which is then printed.
void CheckGreedy(ModelRunner& runner, std::span<const int32_t> prompt, const Answer& reference,
                 size_t n, double tie) {
  bool parted = false;
  GreedyTokens(runner, prompt, n, [&](size_t step, std::span<const float> logits) {
    const size_t mine = ArgMax(logits.data(), logits.size());
    const size_t theirs = static_cast<size_t>(reference.greedy[step]);
    if (parted || mine == theirs) return;
    parted = true;
    const double margin = static_cast<double>(logits[mine]) - static_cast<double>(logits[theirs]);
    EXPECT_LT(margin, tie) << "greedy token " << step << ": " << mine << ", expected " << theirs;
    std::printf("%zu tokens: parted at greedy token %zu, near tie %.2e < %.2e\n", prompt.size(),
                step, margin, tie);
  });
}

class OracleTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "absent") GTEST_SKIP() << "no shared oracles";
    oracle_ = ReadOracle("arch", GetParam());
  }
  void Load(Activations activations) {
    const auto& prompts = oracle_.at("prompts").as_array();
    RunnerOptions o = TestOptions(prompts.back().at("tokens").as_array().size() + kGreedy);
    o.activations = activations;
    runner_ =
        MakeRunner((SharedOracles("arch") / oracle_.at("gguf").as_string().c_str()).string(), o);
  }
  template <class F>
  void ForPrompts(const F& fn) {
    for (const boost::json::value& prompt : oracle_.at("prompts").as_array()) {
      const auto tokens = boost::json::value_to<std::vector<int32_t>>(prompt.at("tokens"));
      SCOPED_TRACE(std::to_string(tokens.size()) + " tokens");
      fn(tokens, prompt.as_object());
    }
  }

  boost::json::object oracle_;
  std::unique_ptr<ModelRunner> runner_;
};

class FloatOracleTest : public OracleTest {};
class QuantisedOracleTest : public OracleTest {};

void ExpectFloatRules(const Answer& ours, const Answer& reference, double nll_tolerance) {
  EXPECT_LE(LargestDifference(ours, reference), 1e-3 * LargestLogit(reference));
  EXPECT_NEAR(ours.nll_sum, reference.nll_sum, std::max(nll_tolerance * reference.nll_sum, 1e-3));
  for (size_t i = 0; i < reference.argmax.size(); ++i) {
    if (reference.margin[i] >= 0.01) {
      EXPECT_EQ(ours.argmax[i], reference.argmax[i]) << "position " << i;
    }
  }
}

TEST_P(FloatOracleTest, IsExact) {
  Load(Activations::kInt8);  // F32 weights multiply floats
  ASSERT_TRUE(runner_);
  ForPrompts([&](const std::vector<int32_t>& tokens, const boost::json::object& prompt) {
    const Answer reference = Reference(prompt, "");
    ExpectFloatRules(Ours(*runner_, tokens), reference, 5e-4);
    EXPECT_EQ(GreedyTokens(*runner_, tokens, kGreedy), reference.greedy);
  });
}

TEST_P(QuantisedOracleTest, IsExactWithFloatActivations) {
  Load(Activations::kF32);
  ASSERT_TRUE(runner_);
  ForPrompts([&](const std::vector<int32_t>& tokens, const boost::json::object& prompt) {
    const Answer reference = Reference(prompt, "_f32");
    const Answer ours = Ours(*runner_, tokens);
    ExpectFloatRules(ours, reference, 1e-3);
    CheckGreedy(*runner_, tokens, reference, kGreedy, 6 * RmsDifference(ours.last, reference.last));
  });
}

// In a mixture a rounded score now and then picks another expert, which that position and those
// that attend to it show: measured on two of the prompts here (rms 0.078 and 0.063 at the last
// position) and gone (0.021, 0.018) when the int8 run is given the float run's choices. Mixtures
// are held to the limit at the median position and to a looser one at the last.
TEST_P(QuantisedOracleTest, HoldsWithInt8Activations) {
  Load(Activations::kInt8);
  ASSERT_TRUE(runner_);
  const std::unique_ptr<ModelRunner> int8 = std::move(runner_);
  const bool mixture = int8->config().moe.experts > 0;
  if (mixture) Load(Activations::kF32);
  ForPrompts([&](const std::vector<int32_t>& tokens, const boost::json::object& prompt) {
    const Answer reference = Reference(prompt, "_f32"), other = Reference(prompt, "");
    const Answer ours = Ours(*int8, tokens);
    const double deviation = Deviation(reference.last);
    const double rms = RmsDifference(ours.last, reference.last);
    const double limit = std::max(0.03, 2 * RmsDifference(other.last, reference.last) / deviation);
    EXPECT_LE(rms / deviation, mixture ? 0.1 : limit);
    if (mixture) {
      EXPECT_LE(MedianRms(ours, Ours(*runner_, tokens)), limit);
    }
    EXPECT_NEAR(ours.nll_sum, reference.nll_sum, std::max(0.03 * reference.nll_sum, 1e-2));
    const size_t agree = boost::json::value_to<size_t>(prompt.at("greedy_agree"));
    CheckGreedy(*int8, tokens, reference, agree, 6 * rms);
  });
}

// The names of float files end in -a, those of quantised ones in their format.
std::vector<std::string> Names(bool quantised) {
  std::vector<std::string> names = OracleNames("arch");
  std::erase_if(names, [&](const std::string& name) {
    return name != "absent" && name.ends_with("-a") == quantised;
  });
  return names;
}

std::string NameOf(const testing::TestParamInfo<std::string>& info) { return TestName(info.param); }

INSTANTIATE_TEST_SUITE_P(All, FloatOracleTest, testing::ValuesIn(Names(false)), NameOf);
INSTANTIATE_TEST_SUITE_P(All, QuantisedOracleTest, testing::ValuesIn(Names(true)), NameOf);

}  // namespace
}  // namespace sluice
