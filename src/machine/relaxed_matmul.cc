#include "src/machine/relaxed_matmul.h"

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <optional>

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

// Of one form and count of tokens, both sides together; windows take turns, the fastest count.
constexpr auto kMeasure = std::chrono::milliseconds(25);

// Of this thread's own time: a window is longer than the slice that a busy neighbour leaves us.
double CpuNs() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

struct Rates {
  double ours = 0, onednn = 0;  // 1e9 multiply-adds a second
};

// Products of one worker's tile of `matrix` with up to `tokens` rows.
class Trial {
 public:
  Trial(const KernelMatrix& matrix, size_t tokens)
      : format_(*matrix.format),
        scratch_(MatMulScratchBytes(matrix.k) + 64),
        in_(tokens * RowStride(matrix.k)),
        out_(tokens * std::min(OneDnn::kColumns, matrix.rows)) {
    for (size_t i = 0; i < in_.size(); ++i) {  // neither zeros nor denormals
      in_[i] = static_cast<float>(i * 2654435761u % 2048) / 1024 - 1;
    }
    args_.weights = matrix.weights;
    args_.panels = matrix.panels;
    args_.rows = args_.row_end = args_.out_stride = std::min(OneDnn::kColumns, matrix.rows);
    args_.k = matrix.k;
    args_.f32 = in_.data();
    args_.f32_stride = RowStride(matrix.k);  // as passes have them
    if (matrix.dots_bf16) {
      args_.bf16_stride = args_.f32_stride;
      rounded_.resize(tokens * args_.bf16_stride);
      args_.bf16 = rounded_.data();
      for (size_t t = 0; t < tokens; ++t) {
        RoundToBf16(&in_[t * args_.f32_stride], matrix.k, &rounded_[t * args_.bf16_stride]);
      }
    }
    args_.out = out_.data();
    args_.scratch = scratch_.data() + (64 - reinterpret_cast<uintptr_t>(scratch_.data()) % 64) % 64;
  }

  Result<Rates> Measure(OneDnn& onednn, OneDnn::Form form, size_t tokens) {
    args_.tokens = tokens;
    RETURN_IF_ERROR(onednn.Multiply(0, format_, form, args_));  // makes the primitive
    double ours = 1e18, theirs = 1e18;
    for (const auto end = Clock::now() + kMeasure; Clock::now() < end;) {
      const double begin = CpuNs();
      format_.matmul(args_);
      const double between = CpuNs();
      RETURN_IF_ERROR(onednn.Multiply(0, format_, form, args_));
      const double end_ns = CpuNs();
      if (begin == between || between == end_ns) continue;  // the clock stood still: no rate
      ours = std::min(ours, between - begin);
      theirs = std::min(theirs, end_ns - between);
    }
    const auto macs = static_cast<double>(tokens * args_.rows * args_.k);
    return Rates{macs / ours, macs / theirs};
  }

 private:
  const Format& format_;
  std::vector<uint8_t> scratch_;
  std::vector<float> in_, out_;
  std::vector<uint16_t> rounded_;
  MatMulArgs args_;
};

const char* Name(OneDnn::Form form, bool panels) {
  switch (form) {
    case OneDnn::Form::kInPlace:
      return panels ? "panels in place" : "rows in place";
    case OneDnn::Form::kFloats:
      return "rows as floats";
    case OneDnn::Form::kBF16:
      return "rows as bfloat16";
  }
  return "";
}

}  // namespace

RelaxedMatMul::RelaxedMatMul(std::span<const KernelMatrix> matrices, size_t fewest, size_t tokens,
                             ThreadTeam& team, std::function<void(const std::string&)> warn,
                             double least_gain)
    : onednn_(OneDnn::Create(static_cast<size_t>(team.size()))), warn_(std::move(warn)) {
  if (!onednn_) {
    note_ = "--relaxed: this build has no oneDNN (libdnnl-dev when it is built); nothing changes";
  } else if (matrices.empty()) {
    note_ = "--relaxed: this model has no F32, F16 or BF16 matrix for oneDNN; nothing changes";
  } else if (tokens < fewest) {
    note_ = "--relaxed: passes here have at most " + std::to_string(tokens) +
            " rows, oneDNN takes no fewer than " + std::to_string(fewest) + "; nothing changes";
  } else {
    for (const KernelMatrix& m : matrices) Choose(m, fewest, tokens, team, least_gain);
  }
}

void RelaxedMatMul::Choose(const KernelMatrix& matrix, size_t fewest, size_t tokens,
                           ThreadTeam& team, double least_gain) {
  Rates best;
  std::optional<OneDnn::Form> form;
  std::string implementation, error;
  size_t from = tokens;
  team.Run(
      [&](Worker&) {
        Trial trial(matrix, tokens);
        for (const OneDnn::Form f : OneDnn::kForms) {
          if (!OneDnn::Offers(*matrix.format, f)) continue;
          const Result<Rates> rates = trial.Measure(*onednn_, f, tokens);
          if (!rates.ok()) {
            error = rates.status().message();
          } else if (!form || rates->onednn > best.onednn) {
            form = f;
            best = *rates;
            implementation = onednn_->Implementation(0);
          }
        }
        if (!form || best.onednn < least_gain * best.ours) return;
        for (const size_t fewer : {size_t{64}, size_t{16}, fewest}) {
          if (fewer >= from) continue;
          const Result<Rates> rates = trial.Measure(*onednn_, *form, fewer);
          if (!rates.ok() || rates->onednn < least_gain * rates->ours) break;
          from = fewer;
        }
      },
      1);
  const bool taken = form && best.onednn >= least_gain * best.ours;
  if (taken) choices_.push_back({matrix.format, matrix.panels, *form, from});
  char line[256];
  if (form) {
    std::snprintf(line, sizeof(line),
                  "--relaxed: %s, %zu rows of %zu: oneDNN %s (%s) %.1f GMAC/s, sluice %.1f: ",
                  matrix.format->name, tokens, matrix.k, implementation.c_str(),
                  Name(*form, matrix.panels), best.onednn, best.ours);
  } else {
    std::snprintf(line, sizeof(line), "--relaxed: %s: %s: ", matrix.format->name, error.c_str());
  }
  note_ += (note_.empty() ? "" : "\n") + std::string(line) +
           (taken ? "oneDNN from " + std::to_string(from) + " rows on" : "sluice");
}

const RelaxedMatMul::Choice* RelaxedMatMul::Find(const Format& format, bool panels,
                                                 size_t tokens) const {
  for (const Choice& c : choices_) {
    if (c.format == &format && c.panels == panels && tokens >= c.fewest) return &c;
  }
  return nullptr;
}

bool RelaxedMatMul::Multiply(size_t worker, const Format& format, const MatMulArgs& args) {
  const Choice* const choice = Find(format, args.panels, args.tokens);
  if (!choice || failed_.load(std::memory_order_relaxed)) return false;
  const Status status = onednn_->Multiply(worker, format, choice->form, args);
  if (status.ok()) return true;
  if (!failed_.exchange(true) && warn_) {
    warn_("--relaxed: " + status.message() + "; the normal kernels go on");
  }
  return false;
}

}  // namespace sluice
