#include "cli/sha256.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cctype>

#include "src/base/mapped_file.h"

namespace sluice {

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  CHECK(context_ != nullptr && EVP_DigestInit_ex(context_, EVP_sha256(), nullptr) == 1);
}

Sha256::~Sha256() { EVP_MD_CTX_free(context_); }

void Sha256::Add(std::span<const uint8_t> bytes) {
  CHECK(EVP_DigestUpdate(context_, bytes.data(), bytes.size()) == 1);
}

std::string Sha256::Hex() {
  static const char kDigits[] = "0123456789abcdef";
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  CHECK(EVP_DigestFinal_ex(context_, digest, &bytes) == 1);
  std::string hex;
  for (unsigned int i = 0; i < bytes; ++i) {
    hex += kDigits[digest[i] >> 4];
    hex += kDigits[digest[i] & 15];
  }
  return hex;
}

Result<std::string> FileSha256(const std::string& path) {
  constexpr size_t kStep = 16 << 20;
  ASSIGN_OR_RETURN(const std::unique_ptr<MappedFile> file, MappedFile::Open(path));
  const std::span<const uint8_t> bytes = file->bytes();
  Sha256 sum;
  for (size_t at = 0; at < bytes.size(); at += kStep) {
    sum.Add(bytes.subspan(at, std::min(kStep, bytes.size() - at)));
    file->DontNeed(at, kStep);  // hashing a model must not push others out of memory
  }
  return sum.Hex();
}

Status CheckSha256(const std::string& path, const std::string& expected) {
  std::string lower = expected;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  ASSIGN_OR_RETURN(const std::string found, FileSha256(path));
  if (found == lower) return Status();
  return Status(StatusCode::kCorrupt, path + ": expected SHA-256 " + lower + ", found " + found);
}

bool IsSha256(const std::string& text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return std::isxdigit(static_cast<unsigned char>(c)) != 0;
         });
}

}  // namespace sluice
