#include "src/engine/prefix_cache.h"

#include <xxhash.h>

#include <algorithm>

namespace sluice {

namespace {

size_t CommonPrefix(std::span<const int32_t> a, std::span<const int32_t> b) {
  const size_t most = std::min(a.size(), b.size());
  size_t same = 0;
  while (same < most && a[same] == b[same]) ++same;
  return same;
}

bool HasWindows(const Config& config) {
  for (size_t i = 0; i < config.layers; ++i) {
    if (config.Windowed(i)) return true;
  }
  return false;
}

}  // namespace

PrefixCache::~PrefixCache() {
  while (!blocks_.empty()) Drop(blocks_.begin()->first);
}

PrefixCache::Key PrefixCache::KeyOf(Key parent, std::span<const int32_t> tokens) const {
  return XXH3_64bits_withSeed(tokens.data(), tokens.size_bytes(), parent + 1);
}

PrefixCache::Block* PrefixCache::Find(Key parent, std::span<const int32_t> tokens, Key* key) {
  *key = KeyOf(parent, tokens);
  const auto found = blocks_.find(*key);
  if (found == blocks_.end()) return nullptr;
  Block& block = found->second;
  // Keys are hashes: whether it is the same text, only the ids can say.
  return block.parent == parent && std::ranges::equal(block.tokens, tokens) ? &block : nullptr;
}

PrefixCache::Block* PrefixCache::Nearest(Key parent, std::span<const int32_t> tokens, size_t* same,
                                         Key* key) {
  Block* nearest = nullptr;
  *same = 0;
  const auto [begin, end] = children_.equal_range(parent);
  for (auto it = begin; it != end; ++it) {
    Block& block = blocks_.at(it->second);
    const size_t common = CommonPrefix(block.tokens, tokens);
    // More in common wins, then (whatever order the table has) what was used last.
    if (common > *same || (nearest != nullptr && common == *same && block.used > nearest->used)) {
      if (common == 0) continue;
      *same = common;
      nearest = &block;
      *key = it->second;
    }
  }
  return nearest;
}

PrefixCache::Match PrefixCache::Adopt(std::span<const int32_t> tokens, uint64_t scope,
                                      KvSequence& kv) {
  const auto usable = tokens.first(tokens.size() - 1);  // one token is computed: it has the logits
  std::vector<Key> chain;
  std::vector<const Block*> found;
  Key parent = scope, key = 0;
  size_t matched = 0;
  while (matched + kSpan <= usable.size()) {
    Block* block = Find(parent, usable.subspan(matched, kSpan), &key);
    if (block == nullptr) break;
    chain.push_back(key);
    found.push_back(block);
    parent = key;
    matched += kSpan;
  }
  Match match;
  size_t same = 0;
  if (Block* near = Nearest(parent, usable.subspan(matched), &same, &key); near != nullptr) {
    chain.push_back(key);
    found.push_back(near);
    match.diverged = matched + same < usable.size() && same < near->tokens.size();
    matched += same;
  } else {
    match.diverged = matched > 0 && children_.contains(parent) && matched < usable.size();
  }
  match.same = matched;

  // Sliding-window layers need every position of the window before the first one to compute.
  size_t length = matched, from = 0;
  if (HasWindows(config_)) {
    while (length > 0) {
      from = (length - std::min(length, config_.window)) / kSpan;
      size_t span = (length - 1) / kSpan + 1;
      while (span > from && found[span - 1]->windowed) --span;
      if (span == from) break;
      length = (span - 1) * kSpan;  // the block that lacks it is of no use as a neighbour either
    }
  }
  for (size_t span = 0; span * kSpan < length; ++span) kv.Adopt(span, found[span]->pages);
  kv.SetAdopted(length, length == 0 ? 0 : from * kSpan);
  match.length = length;
  Touch(chain);
  return match;
}

void PrefixCache::Keep(std::span<const int32_t> tokens, uint64_t scope, size_t checkpoint,
                       bool tail, const KvSequence& kv) {
  size_t end = std::min(kv.length(), tokens.size());
  if (!tail) end = end / kSpan * kSpan;
  const auto held = tokens.first(end);
  const auto in_window = [&](size_t span, size_t end) {
    const size_t first = end - std::min(end, config_.window);
    return span * kSpan < end && (span + 1) * kSpan > first;
  };
  std::vector<Key> chain;
  Key parent = scope;
  for (size_t span = 0; span * kSpan < held.size(); ++span) {
    const auto ids = held.subspan(span * kSpan, std::min(kSpan, held.size() - span * kSpan));
    const bool windowed = in_window(span, held.size()) || in_window(span, checkpoint);
    Key key = 0;
    Block* block = Find(parent, ids, &key);
    if (block == nullptr && blocks_.contains(key)) break;  // another text has this hash: leave it
    if (block == nullptr || (windowed && !block->windowed)) {
      Block fresh{parent, {ids.begin(), ids.end()}, {}, ++tick_, false};
      fresh.windowed = kv.PagesOf(span, windowed, &fresh.pages);
      if ((block == nullptr || fresh.windowed) && !Insert(key, std::move(fresh)) &&
          block == nullptr) {
        break;
      }
    }
    chain.push_back(key);
    parent = key;
  }
  Touch(chain);
}

// Of pages that a sequence holds; takes the place of a block of the same key. False: a page is
// another block's. A sequence that ends before it has computed a row holds the pages of what it
// adopted, and a part of that block is a block already kept: two keepers of a page could never
// be told to let it go.
bool PrefixCache::Insert(Key key, Block block) {
  const auto old = blocks_.find(key);
  for (size_t i = 0; i < block.pages.size(); ++i) {
    uint8_t* const page = block.pages[i];
    const bool own = old != blocks_.end() && old->second.pages[i] == page;
    if (page != nullptr && !own && pool_.Kept(page)) return false;
  }
  if (old != blocks_.end()) Drop(key);
  for (uint8_t* page : block.pages) {
    if (page != nullptr) pool_.Keep(page);
  }
  by_use_[block.used] = key;
  children_.emplace(block.parent, key);
  blocks_.emplace(key, std::move(block));
  return true;
}

// The end of a chain is older than its beginning, so that it goes first: a block without those
// before it is of no use.
void PrefixCache::Touch(std::span<const Key> chain) {
  for (size_t i = chain.size(); i-- > 0;) {
    Block& block = blocks_.at(chain[i]);
    by_use_.erase(block.used);
    block.used = ++tick_;
    by_use_[block.used] = chain[i];
  }
}

void PrefixCache::Drop(Key key) {
  const auto found = blocks_.find(key);
  Block& block = found->second;
  for (uint8_t* page : block.pages) {
    if (page != nullptr) pool_.Unkeep(page);
  }
  const auto [begin, end] = children_.equal_range(block.parent);
  for (auto it = begin; it != end; ++it) {
    if (it->second != key) continue;
    children_.erase(it);
    break;
  }
  by_use_.erase(block.used);
  blocks_.erase(found);
}

// Whether dropping it gives the pool a page. Of a running sequence's own blocks that can be those
// of sliding-window layers, which it has left behind.
bool PrefixCache::FreesPages(const Block& block) const {
  return std::any_of(block.pages.begin(), block.pages.end(),
                     [&](const uint8_t* p) { return p != nullptr && !pool_.Shared(p); });
}

bool PrefixCache::EvictOne(bool shared) {
  for (const auto& [tick, key] : by_use_) {
    if (!shared && !FreesPages(blocks_.at(key))) continue;
    Drop(key);
    ++evictions_;
    return true;
  }
  return false;
}

}  // namespace sluice
