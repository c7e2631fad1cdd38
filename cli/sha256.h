// SHA-256 of files and streams (OpenSSL). Used by downloads.
#ifndef SLUICE_CLI_SHA256_H_
#define SLUICE_CLI_SHA256_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "src/base/status.h"

struct evp_md_ctx_st;

namespace sluice {

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void Add(std::span<const uint8_t> bytes);
  std::string Hex();  // ends the hash

 private:
  evp_md_ctx_st* const context_;
};

// 64 lower-case hex digits.
Result<std::string> FileSha256(const std::string& path);

// kCorrupt, naming the path and both sums, unless the file's SHA-256 is `expected` (any case).
Status CheckSha256(const std::string& path, const std::string& expected);

// 64 hex digits of any case.
bool IsSha256(const std::string& text);

}  // namespace sluice
#endif  // SLUICE_CLI_SHA256_H_
