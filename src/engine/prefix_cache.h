// Keys and values of prompts that were computed before, for requests that begin
// the same way. Blocks of 64 positions keyed by a hash chain of their token ids,
// the ids compared on a hit; the least recently used go when the pool runs out.
// A block that matches in part is copied as far as it matches. What a hit gives
// is what computing would: the same bytes. Engine thread only.
#ifndef SLUICE_SRC_ENGINE_PREFIX_CACHE_H_
#define SLUICE_SRC_ENGINE_PREFIX_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "src/model/config.h"
#include "src/model/kv_cache.h"

namespace sluice {

class PrefixCache {
 public:
  // Both must outlive it.
  PrefixCache(const Config& config, KvPool& pool) : config_(config), pool_(pool) {}
  ~PrefixCache();

  struct Match {
    size_t length = 0;  // positions adopted
    // What is kept goes on behind `same` equal tokens with others: where the prompt diverged, if
    // anything at all was near. Past `length` if a sliding-window layer no longer has its window.
    size_t same = 0;
    bool diverged = false;
  };
  // Gives an empty `kv` the longest beginning of `tokens` that is kept, all but the last token at
  // most. `scope`: prefixes of other scopes are not seen.
  Match Adopt(std::span<const int32_t> tokens, uint64_t scope, KvSequence& kv);

  // Keeps what `kv` holds of `tokens`, its first kv.length() ones. Sliding-window layers keep the
  // window before `checkpoint` (<= kv.length()) and before the end: only there can a later request
  // take up the thread. `tail`: also the unfinished block at the end, for a sequence that ends: one
  // that goes on would have to copy it.
  void Keep(std::span<const int32_t> tokens, uint64_t scope, size_t checkpoint, bool tail,
            const KvSequence& kv);

  // Drops the block used longest ago that has a page nobody else holds, or with `shared` any: a
  // sequence would have to copy a page that it is about to write. False: there is none.
  bool EvictOne(bool shared = false);
  size_t evictions() const { return evictions_; }

 private:
  struct Block {
    uint64_t parent = 0;
    std::vector<int32_t> tokens;  // 64, or fewer at the end of a sequence
    std::vector<uint8_t*> pages;  // [layers * kv_heads], null: given up (sliding-window layers)
    uint64_t used = 0;            // tick
    bool windowed = false;        // has the pages of sliding-window layers
  };
  using Key = uint64_t;

  Key KeyOf(Key parent, std::span<const int32_t> tokens) const;
  Block* Find(Key parent, std::span<const int32_t> tokens, Key* key);
  // The block behind `parent` that has most in common with `tokens`; how much.
  Block* Nearest(Key parent, std::span<const int32_t> tokens, size_t* same, Key* key);
  bool Insert(Key key, Block block);
  void Touch(std::span<const Key> chain);
  void Drop(Key key);
  bool FreesPages(const Block& block) const;

  const Config& config_;
  KvPool& pool_;
  std::unordered_map<Key, Block> blocks_;
  std::unordered_multimap<Key, Key> children_;  // by parent
  std::map<uint64_t, Key> by_use_;              // ticks are unique
  uint64_t tick_ = 0;
  size_t evictions_ = 0;
};

}  // namespace sluice
#endif  // SLUICE_SRC_ENGINE_PREFIX_CACHE_H_
