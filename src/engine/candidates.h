// The tokens still in the draw, and the filters that narrow them. Every
// function is one function of the logits: ties go to the lower token id, sums
// run in a fixed order, exp is our own (entropies use the C library's log and
// pow, good to the last bit or two). One per sampling thread.
//
// As long as it can, it keeps no list: with temperature alone the draw needs one
// pass over the logits, and min-p and top-p list only what can stay. A list of a vocabulary of
// 262144 takes milliseconds, as long as a small model's whole step.
#ifndef SLUICE_SRC_ENGINE_CANDIDATES_H_
#define SLUICE_SRC_ENGINE_CANDIDATES_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "src/model/logits.h"

namespace sluice {

struct Candidate {
  float logit;
  int32_t id;
  double weight;  // exp(logit - largest logit), so the most likely token has 1
};

// exp(x) for x <= 0, 0 below -700, within 1e-14 relative, the same bits on every machine; the C
// library's is not.
double ExpOfNegative(double x);

class Candidates {
 public:
  // Starts over with all of `logits`, which must stay as they are until the last filter.
  // NaN counts as -infinity, +infinity as the largest float; -infinity never gets in.
  void Start(const Logits& logits);

  // "Probability": within the tokens still in. At least one token stays.
  // Logit >= largest - n x standard deviation (Tang et al., "Top-n-sigma", 2024).
  void TopNSigma(float n);
  // The k largest logits.
  void TopK(size_t k);
  // The smallest set, most typical first (-ln p closest to the entropy), with sum >= p (Meister et
  // al., "Locally typical sampling", 2022).
  void TypicalP(float p);
  // The smallest set of the most likely with sum >= p (Holtzman et al., "The curious case of neural
  // text degeneration", 2019).
  void TopP(float p);
  // Probability >= p x that of the most likely (Nguyen et al., "Turning up the heat", 2024).
  void MinP(float p);
  // Drops every token with probability >= threshold but the least likely of those (p-e-w, 2024).
  // The caller has thrown the dice.
  void ExcludeTopChoices(float threshold);
  // Divides the logits; temp <= 0 keeps only the most likely.
  void Temperature(float temp);
  // Temperature temp +- range, at entropy / largest possible entropy to the power of exponent.
  void DynamicTemperature(float temp, float range, float exponent);

  // By ascending id, weights filled in; empty if no logit was above -infinity.
  std::span<const Candidate> Finish();
  // The first token, by ascending id, at which the running sum of weights passes `share` (in
  // [0, 1)) of their total; weights of 0 never do. -1 if no logit was above -infinity.
  int32_t Draw(double share);

 private:
  // list_ from the logits above `bound`, if no filter has filled it yet.
  void Fill(float bound = -std::numeric_limits<float>::infinity());
  void Divide();  // list_ by temp_
  float Divided(float logit) const;
  float Largest() const;  // of logits_
  double MassOfBlocks(
      float largest);  // of all logits_, weighed as list_ would be; block by block in blocks_
  double FillMostLikely(float p);
  int32_t DrawFromBlocks(double share);
  void Weigh();
  double Total() const;
  double Entropy() const;  // of weighed candidates
  // Keeps the smallest set, least distance first, whose weights sum up to `wanted`.
  template <class Distance>
  void KeepMass(double wanted, const Distance& distance);

  Logits logits_;
  float temp_ = 1;              // that Fill divides by
  std::vector<double> blocks_;  // [LogitBlocks]
  std::vector<Candidate> list_;
  std::vector<Candidate> edge_;  // scratch of KeepMass
  float reference_ = 0;          // the logit of weight 1
  bool filled_ = false, weighed_ = false;
  bool sorted_ = false;  // by falling logit; else by ascending id
};

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_CANDIDATES_H_
