#include "src/engine/candidates.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <numeric>

#include "simd/exp_series.h"
#include "simd/vector_ops.h"

namespace sluice {
namespace {

constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kNever = -std::numeric_limits<float>::infinity();

bool Better(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

Candidate Make(float logit, size_t id) {
  return {std::min(logit, kLargest), static_cast<int32_t>(id), 0};
}

// Calls take(id) for every logit above bound() (which may rise meanwhile), by ascending id. Blocks
// that have none are not read.
template <class Bound, class Take>
void ForEachAbove(const Logits& logits, const Bound& bound, const Take& take) {
  for (size_t block = 0; block < logits.no_above.size(); ++block) {
    if (!(logits.no_above[block] > bound())) continue;
    const size_t begin = block * kLogitBlock;
    const size_t end = std::min(begin + kLogitBlock, logits.values.size());
    for (size_t i = begin; i < end; ++i) {
      if (logits.values[i] > bound()) take(i);
    }
  }
}

// The k best of logits, best first. Collects what beats the k-th best so far and halves the list
// whenever it holds 2k; a heap lost (log k moves for each newcomer), so did nth_element over the
// whole vocabulary (2.5 ms).
void SelectTopK(const Logits& logits, size_t k, std::vector<Candidate>& list) {
  const size_t most = k + std::max<size_t>(k, 256);
  float bound = kNever;
  const auto shrink = [&] {
    std::nth_element(list.begin(), list.begin() + (k - 1), list.end(), Better);
    list.resize(k);
    bound = list[k - 1].logit;  // equal logits with a higher id lose, so "above" is enough
  };
  list.clear();
  ForEachAbove(
      logits, [&] { return bound; },
      [&](size_t id) {
        list.push_back(Make(logits.values[id], id));
        if (list.size() == most) shrink();
      });
  if (list.size() > k) shrink();
  std::sort(list.begin(), list.end(), Better);
}

}  // namespace

double ExpOfNegative(double x) {
  namespace es = exp_series;
  // No branch and no conversion, so that compilers make vectors of it.
  const double shifted = x * es::kLog2E + es::kShift;
  const double n = shifted - es::kShift;
  const double r = (x - n * es::kLn2High) - n * es::kLn2Low;
  double sum = 0;
  for (const double factor : es::kInverseFactorials) sum = sum * r + factor;
  const uint64_t power = (std::bit_cast<uint64_t>(shifted) << 52) + (uint64_t{1023} << 52);
  return x > es::kLowest ? sum * std::bit_cast<double>(power) : 0;
}

void Candidates::Start(const Logits& logits) {
  logits_ = logits;
  list_.clear();
  filled_ = weighed_ = false;
  sorted_ = false;
  temp_ = 1;
}

void Candidates::Fill(float bound) {
  if (filled_) return;
  filled_ = true;
  ForEachAbove(
      logits_, [bound] { return bound; },
      [&](size_t id) { list_.push_back(Make(logits_.values[id], id)); });
  Divide();
}

void Candidates::Divide() {
  if (temp_ == 1) return;
  for (Candidate& c : list_) c.logit = Divided(c.logit);
  temp_ = 1;
}

float Candidates::Divided(float logit) const {
  return std::clamp(logit / temp_, -kLargest, kLargest);
}

float Candidates::Largest() const {
  float largest = kNever;
  ForEachAbove(logits_, [&] { return largest; }, [&](size_t id) { largest = logits_.values[id]; });
  return std::min(largest, kLargest);
}

double Candidates::MassOfBlocks(float largest) {
  blocks_.resize(logits_.no_above.size());
  ExpSumsOfBlocks(logits_.values.data(), logits_.values.size(), temp_, Divided(largest),
                  blocks_.data());
  return std::accumulate(blocks_.begin(), blocks_.end(), 0.0);
}

void Candidates::Weigh() {
  Fill();
  if (weighed_ || list_.empty()) return;
  weighed_ = true;
  reference_ = kNever;
  for (const Candidate& c : list_) reference_ = std::max(reference_, c.logit);
  for (Candidate& c : list_) c.weight = ExpOfNegative(double{c.logit} - double{reference_});
}

double Candidates::Total() const {
  double total = 0;
  for (const Candidate& c : list_) total += c.weight;
  return total;
}

void Candidates::TopNSigma(float n) {
  if (n <= 0) return;
  Fill();
  if (list_.size() < 2) return;
  // Over the tokens still in: the whole vocabulary without -infinity, when it runs first.
  double sum = 0, squares = 0;
  float largest = kNever;
  for (const Candidate& c : list_) {
    sum += c.logit;
    largest = std::max(largest, c.logit);
  }
  const double mean = sum / static_cast<double>(list_.size());
  for (const Candidate& c : list_) squares += (c.logit - mean) * (c.logit - mean);
  const double sigma = std::sqrt(squares / static_cast<double>(list_.size()));
  const double bound = largest - n * sigma;
  std::erase_if(list_, [&](const Candidate& c) { return c.logit < bound; });
}

void Candidates::TopK(size_t k) {
  if (k == 0) return;
  if (!filled_ && k < logits_.values.size()) {
    filled_ = true;
    SelectTopK(logits_, k, list_);
    Divide();
    sorted_ = true;
    return;
  }
  Fill();
  if (k >= list_.size()) return;
  if (!sorted_) {
    const auto end = list_.begin() + static_cast<ptrdiff_t>(k);
    std::nth_element(list_.begin(), end, list_.end(), Better);
    std::sort(list_.begin(), end, Better);
  }
  list_.resize(k);
  sorted_ = true;
}

double Candidates::Entropy() const {
  // -sum p ln p, where ln p = logit - reference - ln total.
  const double total = Total();
  double weighted = 0;
  for (const Candidate& c : list_) {
    if (c.weight > 0) weighted += c.weight * (double{reference_} - double{c.logit});
  }
  return weighted / total + std::log(total);
}

// Sums the weights by distance in steps of 1/32, and sorts only the step in which the mass is
// reached: sorting a whole vocabulary takes 30 ms, this 1.
template <class Distance>
void Candidates::KeepMass(double wanted, const Distance& distance) {
  std::array<double, 1024> mass = {};
  const auto step = [&](const Candidate& c) {
    return static_cast<size_t>(std::min(distance(c) * 32, mass.size() - 1.0));
  };
  for (const Candidate& c : list_) mass[step(c)] += c.weight;
  double sum = 0;
  size_t last = 0;  // the step that reaches the mass, never an empty one
  while (last + 1 < mass.size() && (sum + mass[last] < wanted || mass[last] == 0)) {
    sum += mass[last++];
  }
  const auto before = [&](const Candidate& a, const Candidate& b) {
    const double x = distance(a), y = distance(b);
    return x != y ? x < y : Better(a, b);
  };
  edge_.clear();
  std::copy_if(list_.begin(), list_.end(), std::back_inserter(edge_),
               [&](const Candidate& c) { return step(c) == last; });
  if (edge_.empty()) return;
  std::sort(edge_.begin(), edge_.end(), before);
  size_t count = 0;
  do {
    sum += edge_[count++].weight;
  } while (count < edge_.size() && sum < wanted);
  const Candidate cut = edge_[count - 1];
  std::erase_if(list_, [&](const Candidate& c) { return before(cut, c); });
}

void Candidates::TypicalP(float p) {
  if (p >= 1) return;
  Weigh();
  if (list_.size() < 2) return;
  const double typical = double{reference_} + std::log(Total()) - Entropy();  // as a logit
  KeepMass(double{p} * Total(), [&](const Candidate& c) { return std::abs(typical - c.logit); });
  weighed_ = false;  // the most likely token may be gone
}

// A share of p is mostly reached by a few tokens, so looks for it ever further down. The mass of
// all.
double Candidates::FillMostLikely(float p) {
  constexpr double kFirstDepth = 8, kLastDepth = 64;
  constexpr double kSlack = 1e-12;  // sums of blocks are added in another order
  const float largest = Largest(), temp = temp_;
  const double total = MassOfBlocks(largest);
  for (double depth = kFirstDepth; depth <= kLastDepth; depth *= 2) {
    Fill(static_cast<float>(largest - depth * temp));
    Weigh();
    if (Total() >= p * total * (1 + kSlack)) return total;
    list_.clear();
    filled_ = weighed_ = false;
    temp_ = temp;
  }
  Weigh();
  return total;
}

void Candidates::TopP(float p) {
  if (p >= 1) return;
  const double total = filled_ ? (Weigh(), Total()) : FillMostLikely(p);
  KeepMass(p * total, [&](const Candidate& c) { return double{reference_} - c.logit; });
}

void Candidates::MinP(float p) {
  if (p <= 0) return;
  if (!filled_) {
    // A little below, for the rounding; the weights decide.
    const double bound = Largest() + (std::log(double{p}) - 0.01) * temp_;
    Fill(std::nextafter(static_cast<float>(bound), kNever));
  }
  Weigh();
  std::erase_if(list_, [&](const Candidate& c) { return c.weight < double{p}; });
}

void Candidates::ExcludeTopChoices(float threshold) {
  if (threshold > 0.5f) return;
  Weigh();
  const double bound = double{threshold} * Total();
  const Candidate* last = nullptr;  // the least likely of the top choices
  for (const Candidate& c : list_) {
    if (c.weight >= bound && (last == nullptr || Better(*last, c))) last = &c;
  }
  if (last == nullptr) return;
  const int32_t kept = last->id;
  std::erase_if(list_, [&](const Candidate& c) { return c.weight >= bound && c.id != kept; });
  weighed_ = false;
}

void Candidates::Temperature(float temp) {
  if (temp <= 0) return TopK(1);
  if (temp == 1) return;
  if (!filled_ && temp_ != 1) Fill();
  temp_ = temp;
  if (filled_) Divide();
  weighed_ = false;
}

void Candidates::DynamicTemperature(float temp, float range, float exponent) {
  Weigh();
  if (list_.size() < 2) return;
  const double most = std::log(static_cast<double>(list_.size()));
  const double share = std::clamp(Entropy() / most, 0.0, 1.0);
  const double low = std::max(0.0, double{temp} - double{range});
  const double high = double{temp} + double{range};
  Temperature(static_cast<float>(low + (high - low) * std::pow(share, exponent)));
}

std::span<const Candidate> Candidates::Finish() {
  Weigh();
  if (sorted_) {
    std::sort(list_.begin(), list_.end(),
              [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
  }
  sorted_ = false;
  return list_;
}

int32_t Candidates::DrawFromBlocks(double share) {
  const float largest = Largest();
  if (largest == kNever) return -1;
  const double drawn = share * MassOfBlocks(largest);
  double sum = 0;
  size_t block = 0, last = 0;
  for (; block < blocks_.size() && !(sum + blocks_[block] > drawn); ++block) {
    sum += blocks_[block];
    if (blocks_[block] > 0) last = block;
  }
  if (block == blocks_.size()) block = last;
  const std::span<float> values = logits_.values;
  int32_t id = -1;
  for (size_t i = block * kLogitBlock; i < std::min(values.size(), (block + 1) * kLogitBlock);
       ++i) {
    double weight;
    ExpSumsOfBlocks(&values[i], 1, temp_, Divided(largest), &weight);
    sum += weight;
    if (weight > 0) id = static_cast<int32_t>(i);
    if (sum > drawn) break;
  }
  return id;
}

int32_t Candidates::Draw(double share) {
  if (!filled_) return DrawFromBlocks(share);
  const std::span<const Candidate> list = Finish();
  const double drawn = share * Total();
  double sum = 0;
  int32_t last = -1;
  for (const Candidate& c : list) {
    sum += c.weight;
    if (sum > drawn) return c.id;
    if (c.weight > 0) last = c.id;
  }
  return last;
}

}  // namespace sluice
