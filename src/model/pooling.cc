#include "src/model/pooling.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace sluice {

namespace {

constexpr const char* kNames[] = {"none", "mean", "cls", "last", "rank"};

// What becomes 1; 0: of a zero vector.
double NormOf(int norm, std::span<const float> vector) {
  double sum = 0;
  if (norm == 0) {
    for (const float v : vector) sum = std::max(sum, std::abs(static_cast<double>(v)));
    return sum / 32760;
  }
  for (const float v : vector) {
    const double a = std::abs(static_cast<double>(v));
    sum += norm == 1 ? a : norm == 2 ? a * a : std::pow(a, norm);
  }
  return norm == 1 ? sum : norm == 2 ? std::sqrt(sum) : std::pow(sum, 1.0 / norm);
}

}  // namespace

const char* PoolingName(Pooling pooling) { return kNames[static_cast<size_t>(pooling)]; }

std::optional<Pooling> FindPooling(std::string_view name) {
  const auto found = std::find(std::begin(kNames), std::end(kNames), name);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<Pooling>(found - std::begin(kNames));
}

bool Pooler::Wants(size_t position) const {
  switch (pooling_) {
    case Pooling::kNone:
    case Pooling::kMean:
      return true;
    case Pooling::kCls:
      return position == 0;
    case Pooling::kLast:
    case Pooling::kRank:
      return position + 1 == tokens_;
  }
  return false;
}

void Pooler::Add(std::span<const float> state) {
  if (pooling_ != Pooling::kMean) {
    states_.insert(states_.end(), state.begin(), state.end());
    return;
  }
  // Doubles: the mean of thousands of tokens loses nothing that a float could show.
  sum_.resize(state.size());
  for (size_t i = 0; i < state.size(); ++i) sum_[i] += static_cast<double>(state[i]);
}

void Pooler::Clear() {
  states_.clear();
  sum_.clear();
}

std::vector<float> Pooler::Take() {
  for (const double sum : sum_) {
    states_.push_back(static_cast<float>(sum / static_cast<double>(tokens_)));
  }
  sum_.clear();
  return std::move(states_);
}

void Normalize(int norm, std::span<float> vector) {
  if (norm < 0) return;
  const double by = NormOf(norm, vector);
  if (by > 0) {
    for (float& v : vector) v = static_cast<float>(static_cast<double>(v) / by);
  }
}

}  // namespace sluice
