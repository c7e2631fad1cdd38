// Files and small texts over HTTP(S) with libcurl: resumable, atomic. Used by
// `sluice pull`; one thread.
#ifndef SLUICE_CLI_DOWNLOAD_H_
#define SLUICE_CLI_DOWNLOAD_H_

#include <cstdint>
#include <functional>
#include <string>

#include "src/base/status.h"

namespace sluice {

struct DownloadOptions {
  std::string sha256;  // empty: not checked
  std::string token;   // bearer token; never sent on to another host
  std::function<void(uint64_t done, uint64_t total)> progress;
};

// Fetches `url` into `path`. Bytes so far wait in `<path>.part`, with the server's tag of them in
// `<path>.tag`; the next call goes on from there if the server still has the same file. Lost
// connections are retried. The file gets its name only when it is whole and its checksum fits.
Status Download(const std::string& url, const std::string& path, const DownloadOptions& options);

// The body of `url`, at most `limit` bytes.
Result<std::string> Fetch(const std::string& url, const std::string& token, size_t limit);

// Percent-encodes one segment of a path.
std::string UrlEncode(const std::string& text);

}  // namespace sluice
#endif  // SLUICE_CLI_DOWNLOAD_H_
