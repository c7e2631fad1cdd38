// Keys and values of past positions: pages of 64 positions per (layer, kv
// head), drawn from one pool sized at start. A full layer's table grows to the
// context; a sliding-window layer's table is a ring that holds the window and
// the largest chunk. One sequence belongs to one thread at a time; pages are
// reserved before a pass, so workers never allocate. Pages may be shared by
// sequences and by what keeps them for later: a shared page is never written,
// who wants to write gets one of its own first.
#ifndef SLUICE_SRC_MODEL_KV_CACHE_H_
#define SLUICE_SRC_MODEL_KV_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
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

  uint8_t* Take();            // one owner; null when empty
  void Share(uint8_t* page);  // one owner more
  void Give(uint8_t* page);   // one owner less; the last gives it back to the pool
  // The same for the one owner that keeps pages for later and can spare them.
  void Keep(uint8_t* page);
  void Unkeep(uint8_t* page);
  size_t kept_only() const { return kept_only_; }  // pages that nobody else owns
  bool Kept(const uint8_t* page) const { return kept_[IndexOf(page)] != 0; }
  bool Shared(const uint8_t* page) const { return owners_[IndexOf(page)] > 1; }
  const KvShape& shape() const { return shape_; }
  size_t page_bytes() const { return page_bytes_; }
  std::span<const uint8_t> memory() const { return {arena_.data(), total_ * page_bytes_}; }
  size_t free_pages() const { return free_.size(); }
  size_t total_pages() const { return total_; }

 private:
  KvPool() = default;
  size_t IndexOf(const uint8_t* page) const {
    return static_cast<size_t>(page - arena_.data()) / page_bytes_;
  }
  KvShape shape_;
  size_t page_bytes_ = 0, total_ = 0;
  Arena arena_;
  std::vector<uint8_t*> free_;
  std::vector<uint32_t> owners_;  // [pages]
  std::vector<uint8_t> kept_;     // [pages] 1: Keep
  size_t kept_only_ = 0;
};

// How many pages one sequence of `context` positions and chunks of up to `chunk` rows can hold at
// most.
size_t KvPagesPerSequence(const Config& config, size_t context, size_t chunk);
// The pages that `positions` of them take.
size_t KvPagesOf(const Config& config, size_t positions, size_t context, size_t chunk);
// Bytes of keys and values one more position adds: full layers, and sliding-window layers apart.
size_t KvBytesPerToken(const Config& config, KvType type, bool windowed_layers);
// Bytes that a row behind `positions` of them reads: all in full layers, the window in the others.
uint64_t KvBytesRead(const Config& config, KvType type, size_t positions);
KvShape KvShapeOf(const Config& config, KvType type);
// What keys and values are stored as unless somebody chooses: 16 bits, bf16 where the CPU
// multiplies those of this model itself. Mean KL of the default model's logits: see
// simd/attention.h.
KvType DefaultKvType(const Config& config, bool portable);

class KvSequence {
 public:
  // `context`: most positions; `chunk`: most rows of one pass. pool and config must outlive the
  // sequence.
  KvSequence(const Config& config, KvPool& pool, size_t context, size_t chunk);
  ~KvSequence();
  KvSequence(const KvSequence&) = delete;
  KvSequence& operator=(const KvSequence&) = delete;

  // Makes positions up to length() + rows storable, on pages of this sequence alone. kOutOfMemory
  // when the pool is empty (nothing is lost); kInvalidArgument past the context.
  Status Reserve(size_t rows);
  void Advance(size_t rows);  // after a pass has stored them
  void Clear();               // length 0, all pages back
  // Forgets all but the first `length` positions; all of them when a sliding-window layer no longer
  // holds the window before `length`.
  void Truncate(size_t length);

  // Sharing, by spans of 64 positions; pages: [layers * kv_heads].
  // The pages of one span, null for sliding-window layers if `windowed` is false or they no longer
  // hold it: the answer is whether they all do.
  bool PagesOf(size_t span, bool windowed, std::vector<uint8_t*>* pages) const;
  // Takes up pages that hold a span (one owner more each), passing over null; of spans in ascending
  // order, before SetLength.
  void Adopt(size_t span, const std::vector<uint8_t*>& pages);
  // What was adopted: `length` positions, in sliding-window layers those from `windowed_from` on.
  void SetAdopted(size_t length, size_t windowed_from);

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
  size_t OldestHeld(size_t layer) const;  // position
  Status MakeOwn(size_t layer, size_t span);
  void CopyPositions(const uint8_t* from, size_t count, uint8_t* to) const;

  size_t longest_ = 0;                         // length reached since Clear: what rings wrote over
  size_t windowed_from_ = 0;                   // first position ever held by sliding-window layers
  std::vector<size_t> ring_pages_;             // [layers]
  std::vector<std::vector<uint8_t*>> tables_;  // [layers][kv_heads * ring_pages]
};

}  // namespace sluice
#endif  // SLUICE_SRC_MODEL_KV_CACHE_H_
