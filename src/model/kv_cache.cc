#include "src/model/kv_cache.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "src/base/check.h"
#include "src/machine/topology.h"

namespace sluice {

KvShape KvShapeOf(const Config& config, KvType type) {
  return KvShape{config.key_dim, config.value_dim, type};
}

KvType DefaultKvType(const Config& config, bool portable) {
  const bool dots = !portable && DotsBf16(KvShapeOf(config, KvType::kBF16));
  return dots ? KvType::kBF16 : KvType::kF16;
}

namespace {

// Entries of a layer's page table.
size_t RingPages(const Config& config, size_t layer, size_t context, size_t chunk) {
  const size_t all = (context + kSpan - 1) / kSpan;
  if (!config.Windowed(layer)) return all;
  // The oldest key that a chunk's first row sees is window - 1 back; both ends may cut a page.
  const size_t ring = (config.window + chunk + kSpan - 1) / kSpan + 1;
  return std::min(all, ring);
}

}  // namespace

size_t KvPagesPerSequence(const Config& config, size_t context, size_t chunk) {
  size_t pages = 0;
  for (size_t i = 0; i < config.layers; ++i) {
    pages += RingPages(config, i, context, chunk) * config.kv_heads;
  }
  return pages;
}

size_t KvPagesOf(const Config& config, size_t positions, size_t context, size_t chunk) {
  const size_t spans = (positions + kSpan - 1) / kSpan;
  size_t pages = 0;
  for (size_t i = 0; i < config.layers; ++i) {
    pages += std::min(spans, RingPages(config, i, context, chunk)) * config.kv_heads;
  }
  return pages;
}

size_t KvBytesPerToken(const Config& config, KvType type, bool windowed_layers) {
  size_t layers = 0;
  for (size_t i = 0; i < config.layers; ++i) layers += config.Windowed(i) == windowed_layers;
  return layers * config.kv_heads * (KvPageBytes(KvShapeOf(config, type)) / kSpan);
}

uint64_t KvBytesRead(const Config& config, KvType type, size_t positions) {
  const size_t seen = config.window ? std::min(positions, config.window) : positions;
  return uint64_t{KvBytesPerToken(config, type, false)} * positions +
         uint64_t{KvBytesPerToken(config, type, true)} * seen;
}

Result<std::unique_ptr<KvPool>> KvPool::Create(const KvShape& shape, size_t pages) {
  std::unique_ptr<KvPool> pool(new KvPool);
  pool->shape_ = shape;
  pool->page_bytes_ = KvPageBytes(shape);
  pool->total_ = pages;
  // With several memory nodes small pages: each then lies on the node of the worker that first
  // stores into it, and 2 MB would hold the pages of many heads.
  ASSIGN_OR_RETURN(pool->arena_,
                   Arena::Create(pages * pool->page_bytes_, ThisMachine().numa_nodes == 1));
  pool->free_.reserve(pages);
  pool->owners_.resize(pages, 0);
  pool->kept_.resize(pages, 0);
  // Handed out in address order: a short sequence touches one stretch of memory.
  for (size_t i = pages; i-- > 0;) {
    pool->free_.push_back(pool->arena_.data() + i * pool->page_bytes_);
  }
  return pool;
}

uint8_t* KvPool::Take() {
  if (free_.empty()) return nullptr;
  uint8_t* page = free_.back();
  free_.pop_back();
  owners_[IndexOf(page)] = 1;
  return page;
}

void KvPool::Share(uint8_t* page) {
  const size_t i = IndexOf(page);
  if (++owners_[i] == 2 && kept_[i]) --kept_only_;
}

void KvPool::Keep(uint8_t* page) {
  const size_t i = IndexOf(page);
  CHECK(!kept_[i]);
  kept_[i] = 1;
  ++owners_[i];
}

void KvPool::Unkeep(uint8_t* page) {
  const size_t i = IndexOf(page);
  kept_[i] = 0;
  if (owners_[i] == 1) --kept_only_;
  Give(page);
}

void KvPool::Give(uint8_t* page) {
  const size_t i = IndexOf(page);
  if (--owners_[i] == 1 && kept_[i]) ++kept_only_;
  if (owners_[i] > 0) return;
  // Zeroed for the next owner: nothing of a sequence, a NaN least of all, reaches another.
  std::memset(page, 0, page_bytes_);
  free_.push_back(page);
}

KvSequence::KvSequence(const Config& config, KvPool& pool, size_t context, size_t chunk)
    : config_(config), pool_(pool), context_(context) {
  for (size_t i = 0; i < config.layers; ++i) {
    ring_pages_.push_back(RingPages(config, i, context, chunk));
    tables_.emplace_back(config.kv_heads * ring_pages_[i], nullptr);
  }
}

KvSequence::~KvSequence() { Clear(); }

Status KvSequence::Reserve(size_t rows) {
  const size_t end = length_ + rows;
  if (end > context_) {
    return Status(StatusCode::kInvalidArgument, "the context holds " + std::to_string(context_) +
                                                    " positions, " + std::to_string(end) +
                                                    " are needed; raise --ctx-size");
  }
  for (size_t i = 0; i < config_.layers; ++i) {
    for (size_t span = length_ / kSpan; span * kSpan < end; ++span) {
      RETURN_IF_ERROR(MakeOwn(i, span));
    }
  }
  return Status();
}

// Gives the entries of a span pages that nobody else holds. A shared page is copied if it holds
// positions of ours; in a ring it may be that of an older span.
Status KvSequence::MakeOwn(size_t layer, size_t span) {
  const size_t ring = ring_pages_[layer];
  for (size_t h = 0; h < config_.kv_heads; ++h) {
    uint8_t*& page = tables_[layer][h * ring + span % ring];
    if (page != nullptr && !pool_.Shared(page)) continue;
    uint8_t* own = pool_.Take();
    if (own == nullptr) {
      return Status(StatusCode::kOutOfMemory,
                    "the KV pool of " + std::to_string(pool_.total_pages()) + " pages is empty");
    }
    if (page != nullptr) {
      if (span * kSpan < length_) CopyPositions(page, length_ - span * kSpan, own);
      pool_.Give(page);
    }
    page = own;
  }
  return Status();
}

// The first `count` positions. What stands behind them is another sequence's, and must not even be
// multiplied by 0: it may be no number.
void KvSequence::CopyPositions(const uint8_t* from, size_t count, uint8_t* to) const {
  const KvShape& shape = pool_.shape();
  std::memcpy(to, from, pool_.page_bytes());
  const std::vector<float> zeros(std::max(shape.key_dim, shape.value_dim), 0.0f);
  for (size_t slot = count; slot < kSpan; ++slot) {
    KvStore(shape, to, slot, zeros.data(), zeros.data());
  }
}

bool KvSequence::PagesOf(size_t span, bool windowed, std::vector<uint8_t*>* pages) const {
  bool all = true;
  pages->assign(config_.layers * config_.kv_heads, nullptr);
  for (size_t i = 0; i < config_.layers; ++i) {
    if (config_.Windowed(i) && (!windowed || span * kSpan < OldestHeld(i))) {
      all = false;
      continue;
    }
    for (size_t h = 0; h < config_.kv_heads; ++h) {
      (*pages)[i * config_.kv_heads + h] = tables_[i][h * ring_pages_[i] + span % ring_pages_[i]];
    }
  }
  return all;
}

void KvSequence::Adopt(size_t span, const std::vector<uint8_t*>& pages) {
  for (size_t i = 0; i < config_.layers; ++i) {
    for (size_t h = 0; h < config_.kv_heads; ++h) {
      uint8_t* page = pages[i * config_.kv_heads + h];
      if (page == nullptr) continue;
      pool_.Share(page);
      uint8_t*& entry = tables_[i][h * ring_pages_[i] + span % ring_pages_[i]];
      if (entry != nullptr) pool_.Give(entry);
      entry = page;
    }
  }
}

void KvSequence::SetAdopted(size_t length, size_t windowed_from) {
  length_ = longest_ = length;
  windowed_from_ = windowed_from;
}

void KvSequence::Advance(size_t rows) {
  length_ += rows;
  longest_ = std::max(longest_, length_);
}

void KvSequence::Clear() {
  for (size_t i = 0; i < config_.layers; ++i) {
    for (uint8_t*& page : tables_[i]) {
      if (page) pool_.Give(page);
      page = nullptr;
    }
  }
  length_ = longest_ = windowed_from_ = 0;
}

// A ring holds the last ring_pages spans of the longest length; older ones were written over.
size_t KvSequence::OldestHeld(size_t layer) const {
  const size_t spans = (longest_ + kSpan - 1) / kSpan;
  const size_t oldest = (spans - std::min(spans, ring_pages_[layer])) * kSpan;
  return config_.Windowed(layer) ? std::max(oldest, windowed_from_) : oldest;
}

void KvSequence::Truncate(size_t length) {
  if (length >= length_) return;
  for (size_t i = 0; i < config_.layers; ++i) {
    const size_t window_start = length - std::min(length, config_.window);
    if (config_.Windowed(i) && OldestHeld(i) > window_start) return Clear();
  }
  length_ = length;
}

const uint8_t* const* KvSequence::pages(size_t layer, size_t kv_head) const {
  return tables_[layer].data() + kv_head * ring_pages_[layer];
}

uint8_t* KvSequence::page_of(size_t layer, size_t kv_head, size_t position) const {
  const size_t ring = ring_pages_[layer];
  return tables_[layer][kv_head * ring + position / kSpan % ring];
}

}  // namespace sluice
