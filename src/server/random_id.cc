#include "src/server/random_id.h"

#include <random>

namespace sluice {

std::string RandomId(std::string_view prefix, size_t length) {
  constexpr std::string_view kLetters = "0123456789abcdefghijklmnopqrstuvwxyz";
  thread_local std::mt19937_64 random{(uint64_t{std::random_device{}()} << 32) ^
                                      std::random_device{}()};
  std::uniform_int_distribution<size_t> letter(0, kLetters.size() - 1);
  std::string id(prefix);
  for (size_t i = 0; i < length; ++i) id += kLetters[letter(random)];
  return id;
}

}  // namespace sluice
