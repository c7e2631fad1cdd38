#include "src/machine/residency.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

namespace sluice {
namespace {

constexpr size_t kPiece = 1 << 20;
constexpr size_t kMostPieces = 64;

}  // namespace

size_t ResidentBytes(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(data) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(data) + size;
  std::vector<unsigned char> pages((end - begin + page - 1) / page);
  if (mincore(reinterpret_cast<void*>(begin), end - begin, pages.data()) != 0) return size;
  const auto in = std::count_if(pages.begin(), pages.end(), [](unsigned char p) { return p & 1; });
  return size * static_cast<size_t>(in) / pages.size();
}

double ResidentShare(std::span<const std::span<const uint8_t>> memory) {
  size_t bytes = 0;
  for (const auto part : memory) bytes += part.size();
  const size_t pieces = bytes / kPiece + 1;
  const size_t stride = (pieces / kMostPieces + 1) * kPiece;  // from one piece to the next
  size_t looked = 0, in = 0, next = 0, first = 0;             // of all bytes, one after another
  for (const auto part : memory) {
    for (; next < first + part.size(); next += stride) {
      const size_t from = next - first;
      const size_t size = std::min(kPiece, part.size() - from);
      looked += size;
      in += ResidentBytes(part.data() + from, size);
    }
    first += part.size();
  }
  return looked > 0 ? static_cast<double>(in) / static_cast<double>(looked) : 1;
}

}  // namespace sluice
