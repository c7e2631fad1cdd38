// Keys and values of past positions: pages of 64 positions per (layer, kv
// head), drawn from one pool sized at start. A full layer's table grows to the
// context; a sliding-window layer's table is a ring that holds the window and
// the largest chunk. One sequence belongs to one thread at a time; pages are
// reserved before a pass, so workers never allocate.
#ifndef SLUICE_SRC_MODEL_KV_CACHE_H_
#define SLUICE_SRC_MODEL_KV_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "simd/attention.h"
#include "src/base/arena.h"
#include "src/base/status.h"
#include "src/model/config.h"

namespace sluice {

// The pool's memory is reserved address space; a page costs RAM once it is used.
class KvPool {
 public:
  // Room for `pages` pages of `shape`.
  static Result<std::unique_ptr<KvPool>> Create(const KvShape& shape, size_t pages);

  // Keeps pages in RAM from their first use on; the error says what to do.
  Status Lock() const { return arena_.Lock("keys and values"); }

  uint8_t* Take();           // null when empty
  void Give(uint8_t* page);  // back to the pool
  const KvShape& shape() const { return shape_; }
  size_t free_pages() const { return free_.size(); }
  size_t total_pages() const { return total_; }

 private:
  KvPool() = default;
  KvShape shape_;
  size_t page_bytes_ = 0, total_ = 0;
  Arena arena_;
  std::vector<uint8_t*> free_;
};

// How many pages one sequence of `context` positions and chunks of up to `chunk` rows can hold at
// most.
size_t KvPagesPerSequence(const Config& config, size_t context, size_t chunk);
// Bytes of keys and values one more position adds: full layers, and sliding-window layers apart.
size_t KvBytesPerToken(const Config& config, KvType type, bool windowed_layers);
KvShape KvShapeOf(const Config& config, KvType type);
// What keys and values are stored as unless somebody chooses: 16 bits, bf16 where the CPU
// multiplies those itself. Mean KL of the default model's logits: see simd/attention.h.
KvType DefaultKvType(bool portable);

class KvSequence {
 public:
  // `context`: most positions; `chunk`: most rows of one pass. pool and config must outlive the
  // sequence.
  KvSequence(const Config& config, KvPool& pool, size_t context, size_t chunk);
  ~KvSequence();
  KvSequence(const KvSequence&) = delete;
  KvSequence& operator=(const KvSequence&) = delete;

  // Makes positions up to length() + rows storable. kOutOfMemory when the pool is empty (nothing is
  // lost); kInvalidArgument past the context.
  Status Reserve(size_t rows);
  void Advance(size_t rows);  // after a pass has stored them
  void Clear();               // length 0, all pages back
  // Forgets all but the first `length` positions; all of them when a sliding-window layer no longer
  // holds the window before `length`.
  void Truncate(size_t length);

  size_t length() const { return length_; }
  size_t context() const { return context_; }
  const KvShape& shape() const { return pool_.shape(); }
  // Table of one layer and kv head: entry s % ring_pages(layer) holds positions 64 s .. 64 s + 63.
  const uint8_t* const* pages(size_t layer, size_t kv_head) const;
  uint8_t* page_of(size_t layer, size_t kv_head, size_t position) const;
  size_t ring_pages(size_t layer) const { return ring_pages_[layer]; }

  // LongRoPE: whether this sequence uses the long factors. Set before its first pass, for all of
  // it.
  bool long_rope = false;

 private:
  const Config& config_;
  KvPool& pool_;
  size_t context_, length_ = 0;
  size_t longest_ = 0;                         // length reached since Clear: what rings wrote over
  std::vector<size_t> ring_pages_;             // [layers]
  std::vector<size_t> reserved_;               // [layers] entries that hold a page
  std::vector<std::vector<uint8_t*>> tables_;  // [layers][kv_heads * ring_pages]
};

}  // namespace sluice
#endif  // SLUICE_SRC_MODEL_KV_CACHE_H_
