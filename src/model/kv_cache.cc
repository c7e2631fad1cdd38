#include "src/model/kv_cache.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "src/machine/topology.h"

namespace sluice {

KvShape KvShapeOf(const Config& config, KvType type) {
  return KvShape{config.key_dim, config.value_dim, type};
}

KvType DefaultKvType(bool portable) {
  return !portable && DotsBf16(KvType::kBF16) ? KvType::kBF16 : KvType::kF16;
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

size_t KvBytesPerToken(const Config& config, KvType type, bool windowed_layers) {
  size_t layers = 0;
  for (size_t i = 0; i < config.layers; ++i) layers += config.Windowed(i) == windowed_layers;
  return layers * config.kv_heads * (KvPageBytes(KvShapeOf(config, type)) / kSpan);
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
  return page;
}

void KvPool::Give(uint8_t* page) {
  // Zeroed for the next owner: nothing of a sequence, a NaN least of all, reaches another.
  std::memset(page, 0, page_bytes_);
  free_.push_back(page);
}

KvSequence::KvSequence(const Config& config, KvPool& pool, size_t context, size_t chunk)
    : config_(config), pool_(pool), context_(context) {
  for (size_t i = 0; i < config.layers; ++i) {
    ring_pages_.push_back(RingPages(config, i, context, chunk));
    reserved_.push_back(0);
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
    const size_t ring = ring_pages_[i];
    const size_t want = std::min(ring, (end + kSpan - 1) / kSpan);
    while (reserved_[i] < want) {
      if (pool_.free_pages() < config_.kv_heads) {
        return Status(StatusCode::kOutOfMemory,
                      "the KV pool of " + std::to_string(pool_.total_pages()) + " pages is empty");
      }
      for (size_t h = 0; h < config_.kv_heads; ++h)
        tables_[i][h * ring + reserved_[i]] = pool_.Take();
      ++reserved_[i];
    }
  }
  return Status();
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
    reserved_[i] = 0;
  }
  length_ = longest_ = 0;
}

void KvSequence::Truncate(size_t length) {
  if (length >= length_) return;
  for (size_t i = 0; i < config_.layers; ++i) {
    // The ring holds the last ring_pages spans of the longest length; older ones were written over.
    const size_t spans = (longest_ + kSpan - 1) / kSpan;
    const size_t oldest = (spans - std::min(spans, ring_pages_[i])) * kSpan;
    const size_t window_start = length - std::min(length, config_.window);
    if (config_.Windowed(i) && oldest > window_start) return Clear();
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
