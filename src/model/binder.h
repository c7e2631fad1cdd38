// Finds a model's tensors by name, checks each against the shape the
// architecture expects, and makes the views its layers compute with. After
// binding, the hot path has nothing left to check. The first error sticks.
#ifndef SLUICE_SRC_MODEL_BINDER_H_
#define SLUICE_SRC_MODEL_BINDER_H_

#include <cstddef>
#include <string>

#include "src/base/status.h"
#include "src/file/gguf.h"
#include "src/model/config.h"
#include "src/model/weight_store.h"
#include "src/model/weights.h"

namespace sluice {

class Binder {
 public:
  Binder(const Gguf& gguf, WeightStore& store) : gguf_(gguf), store_(store) {}

  const Status& status() const { return status_; }
  bool Has(const std::string& name) const { return gguf_.FindTensor(name) != nullptr; }

  // `name`.weight as [experts][rows][k], with `name`.bias when the file has one.
  Weight Matrix(const std::string& name, size_t rows, size_t k, size_t experts = 1);
  Weight OptionalMatrix(const std::string& name, size_t rows, size_t k, size_t experts = 1);
  // A matrix of which single rows are read: stays as in the file.
  Weight Table(const std::string& name, size_t rows, size_t k);
  // n floats of a whole tensor (F32, F16 or BF16), with its full name.
  const float* Vector(const std::string& tensor, size_t n);
  const float* OptionalVector(const std::string& tensor, size_t n);
  NormWeights Norm(const std::string& name, size_t n);
  // The first failure is kept.
  void Fail(StatusCode code, std::string message);

 private:
  const GgufTensor* Require(const std::string& tensor);
  bool ShapeIs(const GgufTensor& t, size_t rows, size_t k, size_t experts);

  const Gguf& gguf_;
  WeightStore& store_;
  Status status_;
};

// Names that differ between families; null: this family has no such norm.
struct DecoderNames {
  const char* attn_norm = "attn_norm";
  const char* ffn_norm = "ffn_norm";
  const char* attn_post_norm = nullptr;
  const char* ffn_post_norm = nullptr;
};

// Everything outside attention: embeddings, norms, MLPs or experts, output.
void BindOutside(Binder& b, const Config& config, const DecoderNames& names, Weights* weights);
// Plus the usual attention: q, k, v (fused or apart), their norms, o.
void BindDecoder(Binder& b, const Config& config, const DecoderNames& names, Weights* weights);

}  // namespace sluice
#endif  // SLUICE_SRC_MODEL_BINDER_H_
