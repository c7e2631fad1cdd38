// What passes of a model compute and move, counted from its shapes alone, and the
// time that takes on a machine of known speeds: the model of time behind `sluice
// plan`, the roofs of `sluice bench` and whoever explains a run. Nothing here reads
// a weight, a clock or the system; any thread.
//
// A pass reads every streamed matrix once (of a mixture, the chosen experts; of the
// embedding, a row per token, which is nothing), the output matrix once if it makes
// logits, and each sequence's keys and values once, in sliding-window layers those
// of the window. It multiplies per row, and attends to every position a row sees.
#ifndef SLUICE_SRC_ENGINE_TIME_MODEL_H_
#define SLUICE_SRC_ENGINE_TIME_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/model/model.h"

namespace sluice {

// Rows of one sequence in a pass: positions [first, first + rows).
struct RowRange {
  size_t first = 0, rows = 1;
};

// Multiply-adds (MAC) and bytes of some passes.
struct PassWork {
  std::vector<double> matrix_macs;   // [ModelWork::kernels()]
  std::vector<double> matrix_bytes;  // [ModelWork::kernels()] weights, once per pass
  double attention_macs = 0;         // scores and weighed values
  double row_attention_macs = 0;     // of these, of sequences with one row in the pass
  double kv_bytes = 0;               // keys and values read, once per sequence
  double written_bytes = 0;          // keys and values stored
  double bytes = 0;                  // read: weights, keys and values

  double macs() const;
  void Add(const PassWork& other, double times = 1);
  void Clear();  // nothing of everything; keeps its memory
};

// Counts the passes of one model. Immutable.
class ModelWork {
 public:
  // One way in which matrices are multiplied: format, panels or rows.
  struct Kernel {
    const Format* format = nullptr;
    bool panels = false;
    bool exact = false;
    bool dots_bf16 = false;
    double macs = 0;         // per row: layers, the chosen experts
    double output_macs = 0;  // per row whose logits are made
    double dense_bytes = 0, expert_bytes = 0, output_bytes = 0;  // expert: all of them
    double value_bytes = 0;                                      // of one weight
  };

  ModelWork(const Config& config, const Weights& weights);
  // Of a file, whose tensors are checked and not read; `panels`: as they are held by default.
  static Result<ModelWork> Of(const std::string& path, bool panels = true);
  // The same model with every matrix in `format` that has whole blocks of it (routers stay).
  ModelWork In(const Format& format) const;

  const Config& config() const { return config_; }
  const std::vector<Kernel>& kernels() const { return kernels_; }
  size_t KernelOf(const Weight& weight) const;  // its index; the weight is one of this model's

  // Adds what one pass over these rows, `logit_rows` of which get logits, computes and moves. Of a
  // mixture, the experts that rows choose at random are read: experts * (1 - (1 - used / experts) ^
  // rows).
  void Add(std::span<const RowRange> ranges, size_t logit_rows, KvType kv_type,
           PassWork* work) const;
  // A decode step of `rows` sequences that each hold `context` positions.
  PassWork Decode(size_t rows, size_t context, KvType kv_type) const;

  // What a decode step of one row streams; Model::WeightBytesPerToken.
  uint64_t WeightBytesPerToken() const;
  double WeightBytes() const;  // held in memory, all experts; the embedding table left out
  double Parameters() const;   // of these matrices, as many values
  double EmbeddingBytes() const { return embedding_bytes_; }  // the table, in the file
  size_t normed_values() const { return normed_values_; }     // of a row, in all layers
  // Barriers of a pass, as counted in tests/engine/barriers_test.cc.
  size_t Barriers(size_t rows) const;

 private:
  enum class Use : uint8_t { kDense, kRouter, kExpert, kOutput };
  struct Matrix {
    Weight shape;  // without data
    Use use;
  };
  static double BytesOf(const Weight& w);
  void Count();

  Config config_;
  std::vector<Matrix> matrices_;
  std::vector<Kernel> kernels_;
  size_t windowed_layers_ = 0, normed_values_ = 0;
  double embedding_bytes_ = 0;
  uint64_t embedding_row_bytes_ = 0;
};

// ---- Time ---------------------------------------------------------------------------------------

// How fast one kernel is on all threads of a machine.
struct KernelSpeed {
  double stream_gb_s = 0;  // one row, weights from memory
  double best_gmac_s = 0;  // 1e9 MAC/s from the caches: the roof; 0: not known
  // 1e9 MAC/s of products whose weights come from memory, by rows; rows ascending. Empty: not
  // known.
  std::vector<std::pair<double, double>> gmac_s;
  double one_gmac_s = 0;  // one row, weights in the caches, on decode's threads; 0: not known

  double GmacsAt(double rows) const;  // between two counts by their logarithm; 0: not known
};

struct MachineSpeed {
  std::string name;
  // Reading as many bytes as a token's weights, nothing else done: the ceiling. Of few bytes caches
  // hold a part, and it is more than memory_gb_s (0: not known).
  double read_gb_s = 0, memory_gb_s = 0;
  double read_bytes = 0;             // so many; what a pass reads beyond comes at memory_gb_s
  std::vector<KernelSpeed> kernels;  // [ModelWork::kernels()]
  double attention_gmac_s = 0;       // tiles of a prompt
  double row_attention_gmac_s = 0;   // single rows
  double barrier_us = 0;
  double row_ns = 0;         // one value normed and quantised, on one thread
  double gate_ns = 0;        // one value of an MLP activated and quantised, on one thread
  double compute_share = 1;  // of the rates of multiply-adds to expect
  int threads = 1;
};

// The shortest time of a pass: the larger of bytes at read_gb_s and multiply-adds at the kernels'
// best rates.
double RoofSeconds(const PassWork& work, const MachineSpeed& speed);
bool ComputeBinds(const PassWork& work, const MachineSpeed& speed);

// The time a pass is expected to take: each kernel's weights at the speed it streams them, or its
// multiply-adds at the rate of products of so many rows if that is longer (of a mixture, the rows
// that an expert gets); attention; row-wise work; barriers.
struct PassTime {
  double weights_s = 0, attention_s = 0, rows_s = 0, barriers_s = 0;
  double total() const { return weights_s + attention_s + rows_s + barriers_s; }
};
PassTime PredictPass(const ModelWork& model, const PassWork& work, size_t rows,
                     const MachineSpeed& speed);

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_TIME_MODEL_H_
