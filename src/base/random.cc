#include "src/base/random.h"

namespace sluice {

std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> key) {
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;  // golden ratio
    key[1] += 0xBB67AE85;  // sqrt(3) - 1
  }
  return c;
}

uint64_t RandomBits(uint64_t seed, uint64_t stream, uint64_t step) {
  const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  const std::array<uint32_t, 4> words =
      Philox({low(step), high(step), low(stream), high(stream)}, {low(seed), high(seed)});
  return words[0] | uint64_t{words[1]} << 32;
}

double RandomUniform(uint64_t seed, uint64_t stream, uint64_t step) {
  return static_cast<double>(RandomBits(seed, stream, step) >> 11) * 0x1p-53;
}

}  // namespace sluice
