// The buffers of a forward pass, allocated once per engine for the largest
// chunk, shared by its workers. Shapes in comments; R = rows of the batch.
#ifndef SLUICE_SRC_MODEL_WORKSPACE_H_
#define SLUICE_SRC_MODEL_WORKSPACE_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "quant/tiles.h"
#include "simd/activations.h"
#include "src/base/arena.h"
#include "src/base/status.h"
#include "src/model/config.h"
#include "src/model/weights.h"

namespace sluice {

class RelaxedMatMul;

// A matmul input: rows as floats, and in the other forms where weights read them.
struct Input {
  float* f32 = nullptr;  // [rows][stride]
  size_t rows = 0, k = 0, stride = 0;
  ActView act;               // storage present when k is a multiple of 32
  uint16_t* bf16 = nullptr;  // [rows][stride]
  float* row(size_t t) const { return f32 + t * stride; }
  // Writes values [begin, end) of row t in these forms too; for int8, multiples of 32.
  void Fill(InputForms forms, size_t t, size_t begin, size_t end) const {
    Fill(forms, t, begin, end, row(t) + begin);
  }
  void Fill(InputForms forms, size_t t) const { Fill(forms, t, 0, k); }
  // From values[end - begin] elsewhere; the row's floats stay as they are.
  void Fill(InputForms forms, size_t t, size_t begin, size_t end, const float* values) const;
  // Asks the caches for what such a Fill() will write.
  void PrefetchToFill(InputForms forms, size_t t, size_t begin, size_t end) const;
  Input Rows(size_t first, size_t count) const;  // a part of the rows
  // The same memory with every `n` rows as one; only of rows without gaps (stride == k).
  Input Joined(size_t n) const;
};

// Storage for an Input of any shape up to a maximum.
struct InputBuffer {
  float* f32 = nullptr;
  uint8_t* act = nullptr;
  uint16_t* bf16 = nullptr;
  size_t max_rows = 0, max_k = 0;
  Input View(size_t rows, size_t k) const { return View(rows, k, RowStride(k)); }
  Input View(size_t rows, size_t k, size_t stride) const;  // `stride` up to RowStride(k)
};

// A pass of up to so many rows lets every worker keep all of them (pass.h). 1.5 us a row to norm
// and quantise against 1 us a barrier, on Zen 4 with two threads.
constexpr size_t kPrivateRows = 2;

constexpr size_t kRelaxedTileColumns = 128;  // of a product by oneDNN
// Passes of up to so many rows may cut one head's attention into units for several workers.
constexpr size_t kSplitRows = 4;

// The row-wise half of a pass: the residual stream and what is made of it row by row.
struct RowBuffers {
  float* x = nullptr;       // [R][dim] the residual stream
  float* branch = nullptr;  // [R][dim] a block's output, normed or summed up, before it is added
  InputBuffer norm_in;      // [R][dim]
  InputBuffer q_low_in;     // [R][q_rank] latent attention

  // Mixture of experts; S = R * used slots.
  float* score = nullptr;           // [R][experts]
  float* choice = nullptr;          // [R][experts] what the selection compares
  int32_t* chosen = nullptr;        // [R][used] expert of each rank
  float* chosen_weight = nullptr;   // [R][used]
  int32_t* expert_begin = nullptr;  // [experts + 1] into slot_row
  int32_t* slot_row = nullptr;      // [S] batch row of a slot, slots grouped by expert
  int32_t* slot_of = nullptr;       // [R][used] slot of each rank
};

class Workspace {
 public:
  // For passes of up to max_rows rows on up to `workers` workers, over sequences of up to `context`
  // positions. relaxed: null, or what takes products of many rows; must outlive this.
  static Result<std::unique_ptr<Workspace>> Create(const Config& config, size_t max_rows,
                                                   size_t workers, size_t context,
                                                   RelaxedMatMul* relaxed = nullptr);

  // Keeps it in RAM; the error says what it would take.
  Status Lock() const { return arena_.Lock("the workspace"); }
  size_t bytes() const { return arena_.size(); }

  size_t max_rows = 0;
  bool portable = false;  // the same bytes on every CPU
  RelaxedMatMul* relaxed = nullptr;
  size_t logit_rows = 0;  // rows of shared.norm_in that the last pass left for the output matrix
  RowBuffers shared;
  const RowBuffers& OwnRows(size_t worker) const { return own_[worker]; }

  float* branch = nullptr;   // [R][dim] a block's output before it is added
  float* branch2 = nullptr;  // [R][dim]
  float* qkv = nullptr;      // [R][q_dim + k_dim + v_dim]
  InputBuffer attn_in;       // [R][heads * value dim] attention's output
  InputBuffer mlp_in;        // [R][widest MLP] activated

  float* rope_cos[2] = {};  // [R][rope dims / 2]; 0: full layers, 1: sliding-window layers
  float* rope_sin[2] = {};

  // Mixture of experts.
  float* router = nullptr;        // [R][experts]
  int32_t* slot_index = nullptr;  // [S] 0, 1, 2 ...
  InputBuffer expert_in;          // [S][expert ffn] activated
  float* expert_out = nullptr;    // [S][dim]
  float* shared_gate = nullptr;   // [R]
  // One worker's: the chosen experts and their tiles of a product, and room for the shared one's.
  struct ExpertLists {
    size_t* expert;  // [experts]
    size_t* tiles;   // [experts + 1]
  };
  ExpertLists Lists(size_t worker) const {
    size_t* const mine = expert_lists_ + worker * expert_list_;
    return {mine, mine + expert_list_ / 2};
  }

  // Latent attention.
  float* q_low = nullptr;        // [R][q_rank]
  float* q_full = nullptr;       // [R][heads * (nope + rope)]
  InputBuffer nope_in;           // [R * heads][nope]
  InputBuffer latent_in;         // [R * heads][kv_rank]
  int32_t* head_rows = nullptr;  // [heads][R] row t * heads + h of the two above

  // Attention of few rows over long contexts, cut into units of 512 positions (attend.cc).
  float* attention_states = nullptr;  // [kSplitRows][kv heads][units][group][AttentionStateFloats]
  std::atomic<uint32_t>* units_done = nullptr;  // [kSplitRows][kv heads]; 0 between passes

  // One worker's tile of each of two products: [R][kTileColumns], relaxed
  // [R][kRelaxedTileColumns], or [kFewRows][kWideTileColumns].
  float* Tile(size_t worker, size_t product) const {
    return tiles_ + (2 * worker + product) * TileFloats();
  }
  uint8_t* MatMulScratch(size_t worker) const { return matmul_scratch_ + worker * matmul_bytes_; }
  uint8_t* AttentionScratch(size_t worker) const {
    return attention_scratch_ + worker * attention_bytes_;
  }

 private:
  Workspace() = default;
  size_t TileFloats() const {
    const size_t columns = relaxed ? kRelaxedTileColumns : kTileColumns;
    return std::max(max_rows * columns, kFewRows * kWideTileColumns);
  }
  Arena arena_;
  std::vector<RowBuffers> own_;  // [workers], for kPrivateRows rows
  float* tiles_ = nullptr;
  size_t* expert_lists_ = nullptr;
  size_t expert_list_ = 0;  // of one worker
  uint8_t* matmul_scratch_ = nullptr;
  uint8_t* attention_scratch_ = nullptr;
  size_t matmul_bytes_ = 0, attention_bytes_ = 0;
};

}  // namespace sluice
#endif  // SLUICE_SRC_MODEL_WORKSPACE_H_
