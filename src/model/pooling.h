// How the states of a text's tokens become one vector, which is what an
// embedding is. The engine's thread feeds a Pooler, in order of position; what
// it adds up it adds in that order, so that no byte depends on how the text was
// cut into passes. The rest is stateless, any thread.
#ifndef SLUICE_SRC_MODEL_POOLING_H_
#define SLUICE_SRC_MODEL_POOLING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace sluice {

// The numbers of <architecture>.pooling_type in GGUF files.
enum class Pooling : uint8_t {
  kNone,  // a vector for every token
  kMean,
  kCls,   // the first token's
  kLast,  // the last token's: in a decoder the one that has seen the whole text
  kRank,  // a score from a reranker's own head, which is not offered here
};

const char* PoolingName(Pooling pooling);                   // "none", "mean" ...
std::optional<Pooling> FindPooling(std::string_view name);  // nullopt: no such name

class Pooler {
 public:
  // Of a text of `tokens` tokens; not kRank.
  Pooler(Pooling pooling, size_t tokens) : pooling_(pooling), tokens_(tokens) {}

  Pooling pooling() const { return pooling_; }
  // Whether the state of the token at this position is needed.
  bool Wants(size_t position) const;
  // The state [dim] of the next position that is wanted.
  void Add(std::span<const float> state);
  // What was added is forgotten: the text is computed again.
  void Clear();
  // After the last of them: [dim]; kNone: [tokens][dim].
  std::vector<float> Take();

 private:
  const Pooling pooling_;
  const size_t tokens_;
  std::vector<float> states_;
  std::vector<double> sum_;  // kMean: [dim]
};

// Divides by the vector's norm, chosen as llama-server's embd_normalize does: -1 nothing, 0 the
// largest value becomes 32760, p >= 1 the p-norm becomes 1 (2: Euclidean). A zero vector stays.
void Normalize(int norm, std::span<float> vector);

}  // namespace sluice
#endif  // SLUICE_SRC_MODEL_POOLING_H_
