// oneDNN's products against ours: near, whatever the shape, and where its bytes depend on the
// batch.
#include "src/machine/onednn.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <random>
#include <thread>
#include <vector>

#include "src/machine/relaxed_matmul.h"

namespace sluice {
namespace {

struct Shape {
  size_t tokens, rows, k;
};

// Rows that are no multiple of 16, odd k, few and many tokens.
constexpr Shape kShapes[] = {{9, 16, 64},   {10, 1, 33},     {17, 48, 63},   {33, 130, 257},
                             {64, 128, 96}, {100, 300, 129}, {100, 15, 1025}};

// A random matrix and inputs, and every way to multiply them.
class Operands {
 public:
  Operands(const Format& format, const Shape& shape, bool panels, bool picked = false)
      : format_(format), shape_(shape), scratch_(MatMulScratchBytes(shape.k) + 64) {
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<float> w(shape.rows * shape.k);
    for (float& v : w) v = normal(random);
    weights_.resize(shape.rows * format.RowBytes(shape.k));
    format.encode(w.data(), w.size(), weights_.data());
    if (panels) MakePanels();
    // Inputs with a stride; the picked ones in falling order, every other one.
    stride_ = shape.k + 3;
    inputs_.resize(2 * shape.tokens * stride_);
    for (float& v : inputs_) v = normal(random);
    for (size_t t = 0; t < shape.tokens; ++t) {
      rows_.push_back(static_cast<int32_t>(2 * (shape.tokens - t) - 1));
    }
    args_.weights = weights_.data();
    args_.panels = panels;
    args_.rows = args_.row_end = shape.rows;
    args_.k = shape.k;
    args_.tokens = shape.tokens;
    args_.token_rows = picked ? rows_.data() : nullptr;
    args_.f32 = inputs_.data();
    args_.f32_stride = stride_;
    args_.out_stride = shape.rows + 5;
    args_.scratch = scratch_.data() + (64 - reinterpret_cast<uintptr_t>(scratch_.data()) % 64) % 64;
  }

  std::vector<float> Ours() {
    return Run([&] { format_.matmul(args_); });
  }
  std::vector<float> Theirs(OneDnn& onednn, OneDnn::Form form, size_t tokens = 0) {
    if (tokens > 0) args_.tokens = tokens;
    return Run([&] { status_ = onednn.Multiply(0, format_, form, args_); });
  }
  const Status& status() const { return status_; }
  MatMulArgs& args() { return args_; }

 private:
  template <class F>
  std::vector<float> Run(const F& multiply) {
    std::vector<float> out(args_.tokens * args_.out_stride, kUntouched);
    args_.out = out.data();
    multiply();
    return out;
  }
  void MakePanels() {
    const size_t count = (shape_.rows + kPanelRows - 1) / kPanelRows;
    const size_t bytes = shape_.k * format_.panel_block_bytes;
    const std::vector<uint8_t> zeros(format_.RowBytes(shape_.k));
    std::vector<uint8_t> panels(count * bytes);
    for (size_t p = 0; p < count; ++p) {
      const uint8_t* rows[kPanelRows];
      for (size_t r = 0; r < kPanelRows; ++r) {
        const size_t row = p * kPanelRows + r;
        rows[r] = row < shape_.rows ? &weights_[row * format_.RowBytes(shape_.k)] : zeros.data();
      }
      format_.to_panel(rows, shape_.k, &panels[p * bytes]);
    }
    weights_ = std::move(panels);
  }

 public:
  static constexpr float kUntouched = -12345;

 private:
  const Format& format_;
  const Shape shape_;
  std::vector<uint8_t> weights_, scratch_;
  std::vector<float> inputs_;
  std::vector<int32_t> rows_;
  size_t stride_ = 0;
  MatMulArgs args_;
  Status status_;
};

// A sum of k products of unit deviation; bfloat16 inputs are off by up to 2^-9 each.
float Tolerance(OneDnn::Form form, size_t k) {
  const float unit = form == OneDnn::Form::kBF16 ? 0x1p-8f : 1e-5f;
  return unit * 4 * std::sqrt(static_cast<float>(k));
}

class OneDnnTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!onednn_) GTEST_SKIP() << "built without oneDNN";
  }
  // Calls fn(format, form, panels) for each that oneDNN multiplies here.
  template <class F>
  void ForEachForm(const F& fn) {
    for (const char* name : {"F32", "F16", "BF16"}) {
      const Format& format = *FindFormat(name);
      for (const OneDnn::Form form : OneDnn::kForms) {
        if (!OneDnn::Offers(format, form)) continue;
        for (const bool panels : {false, true}) {
          SCOPED_TRACE(std::string(name) + " form " + std::to_string(static_cast<int>(form)) +
                       (panels ? " panels" : " rows"));
          fn(format, form, panels);
        }
      }
    }
  }
  const std::unique_ptr<OneDnn> onednn_ = OneDnn::Create(1);
};

TEST_F(OneDnnTest, IsCloseToOursAtAnyShape) {
  ForEachForm([&](const Format& format, OneDnn::Form form, bool panels) {
    for (const Shape& shape : kShapes) {
      for (const bool picked : {false, true}) {
        Operands o(format, shape, panels, picked);
        const std::vector<float> ours = o.Ours(), theirs = o.Theirs(*onednn_, form);
        if (form == OneDnn::Form::kBF16 && !o.status().ok()) return;  // a CPU without
        ASSERT_TRUE(o.status().ok()) << o.status().message();
        for (size_t i = 0; i < ours.size(); ++i) {
          // What lies between the rows is not written.
          ASSERT_EQ(ours[i] == Operands::kUntouched, theirs[i] == Operands::kUntouched) << i;
          ASSERT_NEAR(theirs[i], ours[i], Tolerance(form, shape.k))
              << shape.tokens << " x " << shape.rows << " x " << shape.k << " at " << i;
        }
      }
    }
  });
}

// F32 and F16 have a form on every CPU.
TEST_F(OneDnnTest, TakesFloatsOnEveryCpu) {
  for (const char* name : {"F32", "F16", "BF16"}) {
    Operands o(*FindFormat(name), kShapes[0], true);
    o.Theirs(*onednn_, OneDnn::Form::kFloats);
    EXPECT_TRUE(o.status().ok()) << o.status().message();
    EXPECT_NE(onednn_->Implementation(0).find(' '), std::string::npos);
  }
  for (const Format* format : Formats()) {
    for (const OneDnn::Form form : OneDnn::kForms) {
      EXPECT_TRUE(!OneDnn::Offers(*format, form) || format->block_values == 1);
    }
  }
}

TEST_F(OneDnnTest, HoldsABoundedNumberOfPrimitives) {
  Operands o(*FindFormat("F32"), {300, 16, 8}, false);
  const std::vector<float> first = o.Theirs(*onednn_, OneDnn::Form::kFloats);
  const size_t one = onednn_->Cached(0);
  for (size_t tokens = 1; tokens <= 300; ++tokens)
    o.Theirs(*onednn_, OneDnn::Form::kFloats, tokens);
  EXPECT_GT(onednn_->Cached(0), one);
  EXPECT_LT(onednn_->Cached(0), 300u);
  EXPECT_EQ(o.Theirs(*onednn_, OneDnn::Form::kFloats, 300), first);  // after it was dropped
}

// What oneDNN cannot do comes back as an error, and nothing is thrown.
TEST_F(OneDnnTest, FailsInOneLine) {
  Operands o(*FindFormat("F32"), kShapes[0], false);
  o.args().f32_stride = 1;  // rows that overlap are no matrix
  o.Theirs(*onednn_, OneDnn::Form::kFloats);
  const Status& s = o.status();
  ASSERT_FALSE(s.ok());
  EXPECT_TRUE(s.message().starts_with("oneDNN: ")) << s.message();
  EXPECT_EQ(s.message().find('\n'), std::string::npos);
}

// Our workers are the team.
TEST_F(OneDnnTest, MakesNoThreads) {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  Operands o(*FindFormat("F32"), {512, 128, 1024}, true);
  std::ptrdiff_t before = 0, after = 0;
  std::thread([&] {  // has no OpenMP team yet that could be used again
    before = threads();
    o.Theirs(*onednn_, OneDnn::Form::kFloats);
    after = threads();
  })
      .join();
  EXPECT_EQ(after, before);
}

// Why --relaxed is not the default: of gemm:jit the last rows of a batch, which a narrower kernel
// multiplies, have other bytes than in a longer batch. Says what it finds; near they must be.
TEST_F(OneDnnTest, ARowMayDependOnTheBatch) {
  constexpr Shape kLarge = {512, 128, 2048};
  ForEachForm([&](const Format& format, OneDnn::Form form, bool panels) {
    Operands o(format, kLarge, panels);
    const std::vector<float> whole = o.Theirs(*onednn_, form);
    if (!o.status().ok()) return;
    std::string differ;
    for (const size_t tokens : {9, 16, 17, 48, 64, 100, 256, 511}) {
      const std::vector<float> part = o.Theirs(*onednn_, form, tokens);
      size_t rows = 0;
      for (size_t t = 0; t < tokens; ++t) {
        const size_t at = t * o.args().out_stride;
        for (size_t i = at; i < at + kLarge.rows; ++i) {
          ASSERT_NEAR(part[i], whole[i], Tolerance(form, kLarge.k)) << tokens << " tokens";
        }
        rows += std::memcmp(&part[at], &whole[at], kLarge.rows * sizeof(float)) != 0;
      }
      if (rows > 0) differ += " " + std::to_string(rows) + "/" + std::to_string(tokens);
    }
    std::printf("%s form %d %s, %s: %s%s\n", format.name, static_cast<int>(form),
                panels ? "panels" : "rows", onednn_->Implementation(0).c_str(),
                differ.empty() ? "rows have the same bytes in every batch tried"
                               : "rows with other bytes than in a batch of 512:",
                differ.c_str());
  });
}

TEST(RelaxedMatMulTest, SaysInOneLineWhatItCannotDo) {
  const std::unique_ptr<ThreadTeam> team = *ThreadTeam::Create(1);
  const RelaxedMatMul none({}, 9, 512, *team, {});
  EXPECT_TRUE(none.note().starts_with("--relaxed: ")) << none.note();
  EXPECT_EQ(none.note().find('\n'), std::string::npos);
  EXPECT_FALSE(none.Takes(*FindFormat("F32"), false, 512));
  EXPECT_EQ(none.note().find("this build has no oneDNN") == std::string::npos,
            OneDnn::Create(1) != nullptr);
}

class RelaxedChoiceTest : public OneDnnTest {
 protected:
  void Choose(double least_gain) {
    operands_ = std::make_unique<Operands>(*format_, Shape{64, 64, 256}, true);
    const MatMulArgs& a = operands_->args();
    const KernelMatrix m{format_, a.weights, true, false, a.rows, a.k};
    relaxed_ = std::make_unique<RelaxedMatMul>(
        std::span(&m, 1), 9, 64, *team_,
        [&](const std::string& line) { warnings_.push_back(line); }, least_gain);
  }
  const Format* const format_ = FindFormat("F16");
  const std::unique_ptr<ThreadTeam> team_ = *ThreadTeam::Create(1);
  std::unique_ptr<Operands> operands_;
  std::unique_ptr<RelaxedMatMul> relaxed_;
  std::vector<std::string> warnings_;
};

TEST_F(RelaxedChoiceTest, TakesWhatIsFasterByTheFactor) {
  Choose(0);
  EXPECT_TRUE(relaxed_->Takes(*format_, true, 9)) << relaxed_->note();
  EXPECT_FALSE(relaxed_->Takes(*format_, true, 8));
  EXPECT_FALSE(relaxed_->Takes(*format_, false, 9));
  EXPECT_FALSE(relaxed_->Takes(*FindFormat("F32"), true, 9));
  EXPECT_NE(relaxed_->note().find("F16, 64 rows of 256: oneDNN "), std::string::npos)
      << relaxed_->note();
  Choose(1e9);
  EXPECT_FALSE(relaxed_->Takes(*format_, true, 64));
  EXPECT_NE(relaxed_->note().find(": sluice"), std::string::npos) << relaxed_->note();
}

TEST_F(RelaxedChoiceTest, FailureIsSaidOnceAndLeavesTheProductToUs) {
  Choose(0);
  MatMulArgs args = operands_->args();
  std::vector<float> out(args.tokens * args.out_stride);
  args.out = out.data();
  EXPECT_TRUE(relaxed_->Multiply(0, *format_, args));
  MatMulArgs wrong = args;
  wrong.f32_stride = 1;  // rows that overlap are no matrix
  EXPECT_FALSE(relaxed_->Multiply(0, *format_, wrong));
  EXPECT_FALSE(relaxed_->Multiply(0, *format_, wrong));
  EXPECT_FALSE(relaxed_->Multiply(0, *format_, args));
  EXPECT_TRUE(relaxed_->Takes(*format_, true, 64));  // tiles stay as they were
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_TRUE(warnings_[0].starts_with("--relaxed: oneDNN: ")) << warnings_[0];
}

}  // namespace
}  // namespace sluice
