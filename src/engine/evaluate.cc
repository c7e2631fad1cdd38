#include "src/engine/evaluate.h"

#include <algorithm>
#include <string>

namespace sluice {

namespace {
// Rows of logits made at a time: 64 rows of a 262k vocabulary are 67 MB.
constexpr size_t kLogitRows = 64;
}  // namespace

Status CheckTokens(std::span<const int32_t> tokens, size_t vocab) {
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] < 0 || static_cast<size_t>(tokens[i]) >= vocab) {
      return Status(StatusCode::kInvalidArgument,
                    "token " + std::to_string(i) + ": expected an id below " +
                        std::to_string(vocab) + ", found " + std::to_string(tokens[i]));
    }
  }
  return Status();
}

Evaluator::Evaluator(ModelRunner& runner) : runner_(runner), kv_(runner.NewSequence()) {}

void Evaluator::Clear() {
  kv_->Clear();
  tokens_.clear();
}

Status Evaluator::Append(std::span<const int32_t> tokens, size_t logits_from, const LogitSink& sink,
                         size_t total) {
  RETURN_IF_ERROR(CheckTokens(tokens, runner_.config().vocab));
  size_t begin = tokens_.size();
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  // Past LongRoPE's border every key has to be rotated anew: the sequence is computed again.
  const bool long_rope = runner_.model().UsesLongRope(std::max(total, tokens_.size()));
  if (kv_->long_rope != long_rope) {
    kv_->Clear();
    kv_->long_rope = long_rope;
    logits_from = std::max(logits_from, begin);
    begin = 0;
  }
  for (size_t end; begin < tokens_.size(); begin = end) {
    end = std::min(begin + runner_.chunk(), tokens_.size());
    if (Status s = Pass(begin, end, logits_from, sink); !s.ok()) {
      tokens_.resize(kv_->length());  // what was not computed is not part of the sequence
      return s;
    }
  }
  return Status();
}

Status Evaluator::Pass(size_t begin, size_t end, size_t logits_from, const LogitSink& sink) {
  const size_t rows = end - begin, vocab = runner_.config().vocab;
  RETURN_IF_ERROR(kv_->Reserve(rows));
  logit_rows_.clear();
  for (size_t i = std::max(begin, logits_from); i < end; ++i) {
    logit_rows_.push_back(static_cast<int32_t>(i - begin));
  }
  const BatchSegment segment{kv_.get(), 0, rows, static_cast<int32_t>(begin)};
  const Batch batch{{tokens_.data() + begin, rows}, {&segment, 1}, logit_rows_};
  runner_.Forward(batch, rows == 1, {});
  kv_->Advance(rows);

  logits_.resize(std::min(kLogitRows, logit_rows_.size()) * vocab);
  for (size_t i = 0; i < logit_rows_.size(); i += kLogitRows) {
    const size_t n = std::min(kLogitRows, logit_rows_.size() - i);
    runner_.Logits(i, n, {logits_.data()});
    for (size_t j = 0; j < n; ++j) {
      sink(begin + static_cast<size_t>(logit_rows_[i + j]), {logits_.data() + j * vocab, vocab});
    }
  }
  return Status();
}

}  // namespace sluice
