// Row-wise kernels against the same formulas in double, on every SIMD target,
// at lengths around the 16 lanes; and the same bytes from each target.
#include "simd/vector_ops.h"

#include <math.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>

#include "tests/simd/float_check.h"

namespace sluice {
namespace {

using Floats = std::vector<float>;
const size_t kLengths[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 100, 640, 2049};

void ExpectNear(const Floats& got, const std::function<double(size_t)>& want, double relative,
                double absolute = 1e-30) {
  for (size_t i = 0; i < got.size(); ++i) {
    const double w = want(i);
    ASSERT_NEAR(got[i], w, fabs(w) * relative + absolute) << "at " << i << " of " << got.size();
  }
}

// All floats of `parts` in one, to be compared between targets.
void Append(const Floats& part, Floats& all) { all.insert(all.end(), part.begin(), part.end()); }

TEST(VectorOps, RmsNormIsTheFormula) {
  OnEveryTarget([] {
    Floats all;
    for (const size_t n : kLengths) {
      Random r(n);
      const Floats x = r.Floats(n, 3), w = r.Floats(n, 2);
      double sum = 0;
      for (float v : x) sum += static_cast<double>(v) * v;
      const double scale = 1 / sqrt(sum / static_cast<double>(n) + 1e-6);
      Floats out(n);
      RmsNorm(x.data(), w.data(), 1e-6f, n, out.data());
      ExpectNear(out, [&](size_t i) { return x[i] * scale * w[i]; }, 5e-7);
      Append(out, all);
      out = x;
      RmsNorm(out.data(), nullptr, 1e-6f, n, out.data());
      ExpectNear(out, [&](size_t i) { return x[i] * scale; }, 5e-7);
    }
    return all;
  });
}

TEST(VectorOps, LayerNormIsTheFormula) {
  OnEveryTarget([] {
    Floats all;
    for (const size_t n : kLengths) {
      Random r(n + 100);
      Floats x = r.Floats(n, 3);
      for (float& v : x) v += 5;  // a mean that padding lanes would pull towards 0
      const Floats w = r.Floats(n, 2), b = r.Floats(n, 1);
      const double mean = std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(n);
      double var = 0;
      for (float v : x) var += (v - mean) * (v - mean);
      const double scale = 1 / sqrt(var / static_cast<double>(n) + 1e-5);
      Floats out(n);
      LayerNorm(x.data(), w.data(), b.data(), 1e-5f, n, out.data());
      ExpectNear(out, [&](size_t i) { return (x[i] - mean) * scale * w[i] + b[i]; }, 1e-6, 3e-6);
      Append(out, all);
      LayerNorm(x.data(), nullptr, nullptr, 1e-5f, n, x.data());
      Append(x, all);
    }
    return all;
  });
}

// The whole range a gate can see, dense around 0.
Floats GateValues() {
  Floats x;
  for (int i = -2000; i <= 2000; ++i) x.push_back(static_cast<float>(i) / 100.0f);
  for (int i = -60; i <= 60; ++i) x.push_back(static_cast<float>(i) * 3.0f + 0.1f);
  for (const float v : {0.0f, -0.0f, 1e-8f, -1e-8f, 1e-30f, 3e38f, -3e38f}) x.push_back(v);
  return x;
}

using Gate = void (*)(const float*, const float*, size_t, float*);
void CheckGate(Gate gate, double (*f)(double)) {
  OnEveryTarget([=] {
    const Floats x = GateValues(), up = Random(5).Floats(x.size(), 1);
    Floats plain(x.size()), out(x);
    gate(x.data(), nullptr, x.size(), plain.data());
    ExpectNear(plain, [&](size_t i) { return f(x[i]); }, 1e-6, 1e-10);
    gate(out.data(), up.data(), x.size(), out.data());
    ExpectNear(out, [&](size_t i) { return f(x[i]) * up[i]; }, 1e-6, 1e-10);
    return out;
  });
}

double Silu(double x) { return x / (1 + exp(-x)); }
double GeluTanh(double x) {
  const double z = sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  return x / (1 + exp(-2 * z));
}
double GeluErf(double x) { return 0.5 * x * erfc(-x / sqrt(2)); }
double Relu(double x) { return x > 0 ? x : 0; }

TEST(VectorOps, GatesAreExactFunctions) {
  CheckGate(SiluMul, Silu);
  CheckGate(GeluTanhMul, GeluTanh);
  CheckGate(GeluErfMul, GeluErf);
  CheckGate(ReluMul, Relu);
}

// Constants, so that x86 and ARM64 are compared too. Who changes the arithmetic on purpose changes
// them.
TEST(VectorOps, SameBytesOnEveryMachine) {
  const Floats x = Random(3).Floats(1000, 8), w = Random(4).Floats(1000, 1);
  const auto hash = [&](const std::function<void(Floats&)>& op) {
    return OnEveryTarget([&] {
      Floats y = x;
      op(y);
      return y;
    });
  };
  EXPECT_EQ(hash([&](Floats& y) { RmsNorm(y.data(), w.data(), 1e-6f, 999, y.data()); }),
            0xb1f6c4ab370138dbu);
  EXPECT_EQ(hash([&](Floats& y) { LayerNorm(y.data(), w.data(), w.data(), 1e-6f, 999, y.data()); }),
            0x3f3ac8454863e773u);
  EXPECT_EQ(hash([&](Floats& y) { SiluMul(y.data(), w.data(), 999, y.data()); }),
            0x9fac93961589ac75u);
  EXPECT_EQ(hash([&](Floats& y) { GeluTanhMul(y.data(), w.data(), 999, y.data()); }),
            0x9db827fff3f5198du);
  EXPECT_EQ(hash([&](Floats& y) { GeluErfMul(y.data(), w.data(), 999, y.data()); }),
            0xf7f16565f276501fu);
  EXPECT_EQ(hash([&](Floats& y) { SoftCap(5.0f, 999, y.data()); }), 0x954a9e219391841du);
  EXPECT_EQ(hash([&](Floats& y) { RopeHalves(y.data(), x.data(), w.data(), 499); }),
            0xb2735db6360a59c9u);
  EXPECT_EQ(hash([&](Floats& y) { RopeAdjacent(y.data(), x.data(), w.data(), 499); }),
            0xe680d5b32704a51fu);
  EXPECT_EQ(hash([&](Floats& y) { SoftMax(y.data(), 999); }), 0x067495f8fad2db5du);
}

TEST(VectorOps, ClampedSwiGluClampsTheGateAboveAndUpOnBothSides) {
  OnEveryTarget([] {
    const Floats gate = GateValues(), up = Random(6).Floats(gate.size(), 20);
    Floats out(gate.size());
    ClampedSwiGlu(gate.data(), up.data(), 1.702f, 7.0f, gate.size(), out.data());
    ExpectNear(
        out,
        [&](size_t i) {
          const double g = fmin(gate[i], 7.0), u = fmax(-7.0, fmin(7.0, up[i]));
          return (u + 1) * g / (1 + exp(-1.702f * g));
        },
        3e-6, 1e-10);
    return out;
  });
}

TEST(VectorOps, ElementwiseKernelsStopAtTheEnd) {
  OnEveryTarget([] {
    Floats all;
    for (const size_t n : kLengths) {
      Random r(n);
      const Floats x = r.Floats(n + 1, 2), y0 = r.Floats(n + 1, 2);
      Floats y = y0;
      Add(x.data(), n, y.data());
      ExpectNear(Floats(y.begin(), y.end() - 1), [&](size_t i) { return x[i] + y0[i]; }, 1e-7);
      EXPECT_EQ(y[n], y0[n]);
      Floats z = y0;
      AddScaled(x.data(), 0.3f, n, z.data());
      ExpectNear(
          Floats(z.begin(), z.end() - 1),
          [&](size_t i) { return fma(0.3f, x[i], static_cast<double>(y0[i])); }, 1e-7, 1e-7);
      EXPECT_EQ(z[n], y0[n]);
      Scale(1.7f, n, z.data());
      EXPECT_EQ(z[n], y0[n]);
      Append(y, all);
      Append(z, all);
    }
    return all;
  });
}

TEST(VectorOps, SoftCapIsTanh) {
  OnEveryTarget([] {
    const Floats x = GateValues();
    for (const float cap : {1.0f, 30.0f, 50.0f}) {
      Floats y = x;
      SoftCap(cap, y.size(), y.data());
      ExpectNear(y, [&](size_t i) { return cap * tanh(static_cast<double>(x[i]) / cap); }, 5e-7);
    }
    Floats y = x;
    SoftCap(30.0f, y.size(), y.data());
    return y;
  });
}

TEST(VectorOps, RopeTurnsPairs) {
  OnEveryTarget([] {
    Floats all;
    for (const size_t pairs : {1, 3, 4, 12, 16, 20, 40, 64}) {
      Random r(pairs);
      const Floats c = r.Floats(pairs, 1), s = r.Floats(pairs, 1), x = r.Floats(2 * pairs + 1, 3);
      Floats halves = x, adjacent = x;
      RopeHalves(halves.data(), c.data(), s.data(), pairs);
      RopeAdjacent(adjacent.data(), c.data(), s.data(), pairs);
      for (size_t i = 0; i < pairs; ++i) {
        const auto check = [&](const Floats& got, size_t a, size_t b) {
          EXPECT_NEAR(got[a], static_cast<double>(x[a]) * c[i] - static_cast<double>(x[b]) * s[i],
                      1e-6);
          EXPECT_NEAR(got[b], static_cast<double>(x[a]) * s[i] + static_cast<double>(x[b]) * c[i],
                      1e-6);
        };
        check(halves, i, i + pairs);
        check(adjacent, 2 * i, 2 * i + 1);
      }
      EXPECT_EQ(halves.back(), x.back());
      EXPECT_EQ(adjacent.back(), x.back());
      Append(halves, all);
      Append(adjacent, all);
    }
    return all;
  });
}

TEST(VectorOps, SoftMaxSumsToOne) {
  OnEveryTarget([] {
    Floats all;
    for (const size_t n : kLengths) {
      const Floats x = Random(n).Floats(n, 30);
      double max = -1e300, sum = 0;
      for (float v : x) max = fmax(max, v);
      for (float v : x) sum += exp(v - max);
      Floats y = x;
      SoftMax(y.data(), n);
      ExpectNear(y, [&](size_t i) { return exp(x[i] - max) / sum; }, 3e-6, 1e-37);
      Append(y, all);
    }
    return all;
  });
}

TEST(VectorOps, SoftMaxOfFarLogits) {
  Floats x = {-1e30f, 5.0f, -200.0f, 5.0f};
  SoftMax(x.data(), x.size());
  EXPECT_EQ(x, (Floats{0.0f, 0.5f, 0.0f, 0.5f}));
}

TEST(VectorOps, SigmoidIsLogistic) {
  OnEveryTarget([] {
    Floats out;
    for (const float x : GateValues()) {
      out.push_back(Sigmoid(x));
      EXPECT_NEAR(out.back(), 1 / (1 + exp(-static_cast<double>(x))), 1e-7);
    }
    return out;
  });
}

TEST(VectorOps, LogSumExpOfAVocabulary) {
  OnEveryTarget([] {
    Floats all;
    for (const size_t n : {1, 5, 17, 1000, 262144}) {
      Floats x = Random(n).Floats(n, 20);
      x[n / 2] = 25;
      double sum = 0;
      for (float v : x) sum += exp(v - 25.0);
      const double got = LogSumExp(x.data(), n);
      EXPECT_NEAR(got, 25 + log(sum), 2e-7 * n > 1e-6 ? 1e-6 : 2e-7);
      all.push_back(static_cast<float>(got));
    }
    return all;
  });
}

TEST(VectorOps, ExpSumsOfBlocks) {
  const float kNan = std::numeric_limits<float>::quiet_NaN();
  const float kInf = std::numeric_limits<float>::infinity();
  OnEveryTarget([=] {
    Floats all;
    for (const size_t n : {1, 15, 16, 17, 31, 32, 33, 1000}) {
      Floats x = Random(n).Floats(n, 20);
      x[n / 2] = 25;
      if (n > 4) x[0] = kNan, x[1] = -kInf, x[2] = kInf;
      std::vector<double> sums((n + 31) / 32, -1), expected(sums.size(), 0);
      for (size_t i = 0; i < n; ++i) {
        if (x[i] == x[i]) expected[i / 32] += exp(std::min(x[i] / 2, 12.5f) - 12.5);
      }
      ExpSumsOfBlocks(x.data(), n, 2, 12.5f, sums.data());
      for (size_t b = 0; b < sums.size(); ++b) {
        EXPECT_NEAR(sums[b], expected[b], 1e-13 * expected[b]) << n << " " << b;
        all.push_back(static_cast<float>(sums[b]));
      }
    }
    return all;
  });
}

TEST(VectorOps, ArgMaxIsTheFirstLargest) {
  const float kNan = std::numeric_limits<float>::quiet_NaN();
  const float kInf = std::numeric_limits<float>::infinity();
  OnEveryTarget([=] {
    for (const size_t n : {1, 2, 15, 16, 17, 2048, 2049, 5000, 100000}) {
      Floats x = Random(n).Floats(n, 1);
      for (const size_t at : {n / 3, n / 2, n - 1}) {
        Floats y = x;
        y[at] = 2;
        EXPECT_EQ(ArgMax(y.data(), n), at);
        y[n - 1] = 2;  // a later tie
        EXPECT_EQ(ArgMax(y.data(), n), at);
        if (at > 0) y[at - 1] = kNan;
        EXPECT_EQ(ArgMax(y.data(), n), at);
      }
    }
    EXPECT_EQ(ArgMax(Floats{kNan, -3, kNan}.data(), 3), 1u);
    EXPECT_EQ(ArgMax(Floats{kNan, -kInf, kNan}.data(), 3), 1u);
    EXPECT_EQ(ArgMax(Floats{kNan, kNan}.data(), 2), 0u);
    EXPECT_EQ(ArgMax(Floats{-1, kInf, kInf}.data(), 3), 1u);
    Floats late(3000, -kInf);
    late[0] = kNan;
    EXPECT_EQ(ArgMax(late.data(), late.size()), 1u);
    std::fill(late.begin(), late.begin() + 2500, kNan);
    EXPECT_EQ(ArgMax(late.data(), late.size()), 2500u);
    return Floats{1};
  });
}

}  // namespace
}  // namespace sluice
