#include "cli/download.h"

#include <curl/curl.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include "cli/sha256.h"
#include "src/base/printable.h"
#include "src/base/small_file.h"

namespace sluice {
namespace {

constexpr int kAttempts = 4;  // the first and three more
constexpr long kConnectSeconds = 30, kStallSeconds = 60;

using Curl = std::unique_ptr<CURL, void (*)(CURL*)>;
using Headers = std::unique_ptr<curl_slist, void (*)(curl_slist*)>;

Status IoError(const std::string& path, const char* what) {
  return Status(StatusCode::kIo, path + ": " + what + ": " + std::strerror(errno));
}

// A handle with what all requests share. `error` must outlive it.
Result<Curl> NewRequest(const std::string& url, const std::string& token, char* error) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  Curl curl(ready == CURLE_OK ? curl_easy_init() : nullptr, curl_easy_cleanup);
  if (curl == nullptr) return Status(StatusCode::kOutOfMemory, "libcurl cannot start");
  error[0] = '\0';
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, error);
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_MAXREDIRS, 10L);
  curl_easy_setopt(curl.get(), CURLOPT_USERAGENT, "sluice/" SLUICE_VERSION);
  curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl.get(), CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_LOW_SPEED_TIME, kStallSeconds);
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  if (!token.empty()) {
    curl_easy_setopt(curl.get(), CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    curl_easy_setopt(curl.get(), CURLOPT_XOAUTH2_BEARER, token.c_str());
  }
  return curl;
}

long ResponseCode(CURL* curl) {
  long code = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
  return code;
}

Status HttpError(const std::string& url, long code) {
  const char* hint =
      code == 401 || code == 403 ? " (does it need HF_TOKEN or accepted terms?)" : "";
  const StatusCode kind = code == 404 ? StatusCode::kNotFound : StatusCode::kIo;
  return Status(kind, Printable(url, 400) + ": the server answered " + std::to_string(code) + hint);
}

Status CurlError(const std::string& url, CURLcode code, const char* error) {
  const char* what = error[0] != '\0' ? error : curl_easy_strerror(code);
  return Status(StatusCode::kIo, Printable(url, 400) + ": " + Printable(what, 200));
}

// One download in progress: the part file and what the server says of it.
struct Transfer {
  const std::string& url;
  const std::string& path;
  const DownloadOptions& options;
  int fd = -1;
  bool locked = false;
  uint64_t have = 0;         // bytes in the part file
  std::string tag = {};      // of those bytes; empty: they cannot be continued
  std::string new_tag = {};  // of the answer of the current attempt
  CURL* curl = nullptr;      // of the current attempt
  bool body_began = false;   // in the current attempt
  uint64_t range_begin = 0;  // of the current answer
  Status error = {};         // ours, where libcurl only knows that writing stopped

  std::string part() const { return path + ".part"; }
  std::string tag_path() const { return path + ".tag"; }
};

// Opens the part file, with a lock against a second download of the same file.
Status OpenPart(Transfer* t) {
  t->fd = open(t->part().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (t->fd < 0) return IoError(t->part(), "cannot open");
  if (flock(t->fd, LOCK_EX | LOCK_NB) != 0) {
    return Status(StatusCode::kIo, t->part() + ": another download of this file is running");
  }
  t->locked = true;
  struct stat info{};
  if (fstat(t->fd, &info) != 0) return IoError(t->part(), "cannot read");
  t->have = static_cast<uint64_t>(info.st_size);
  Result<std::string> tag = ReadSmallFile(t->tag_path(), 1 << 16);
  if (tag.ok()) t->tag = *std::move(tag);
  return Status();
}

bool StartOver(Transfer* t) {
  t->have = 0;
  if (ftruncate(t->fd, 0) == 0) return true;
  t->error = IoError(t->part(), "cannot empty");
  return false;
}

// First body bytes of an attempt: a 206 continues the part file, a 200 begins it anew. The old
// bytes go before the new tag is stored: bytes and tag must never belong to two different files.
bool BeginBody(Transfer* t) {
  t->body_began = true;
  const long code = ResponseCode(t->curl);
  if (code == 206 && t->range_begin != t->have) {
    t->error = Status(StatusCode::kIo,
                      Printable(t->url, 400) + ": the server sent another range than asked for");
    return false;
  }
  if (code != 200) return true;
  if (!StartOver(t)) return false;
  t->tag = t->new_tag;
  (void)WriteSmallFile(t->tag_path(), t->tag);  // a lost tag only costs a new start
  return true;
}

size_t WriteBody(char* data, size_t, size_t n, void* user) {
  Transfer* t = static_cast<Transfer*>(user);
  if (!t->body_began && !BeginBody(t)) return 0;
  const long code = ResponseCode(t->curl);
  if (code != 200 && code != 206) return n;
  for (size_t done = 0; done < n;) {
    const ssize_t wrote = pwrite(t->fd, data + done, n - done, static_cast<off_t>(t->have));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      t->error = IoError(t->part(), "cannot write");
      return 0;
    }
    done += static_cast<size_t>(wrote);
    t->have += static_cast<uint64_t>(wrote);
  }
  return n;
}

// Remembers a strong ETag; weak ones do not vouch for bytes.
size_t ReadHeaderLine(char* data, size_t, size_t n, void* user) {
  Transfer* t = static_cast<Transfer*>(user);
  const std::string line(data, n);
  if (line.starts_with("HTTP/")) t->new_tag.clear();  // the next answer of a chain of redirects
  const size_t colon = line.find(':');
  if (colon == std::string::npos) return n;
  std::string name = line.substr(0, colon);
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (name == "content-range") {  // "bytes 100-199/200"
    const size_t digits = line.find_first_of("0123456789", colon);
    t->range_begin =
        digits == std::string::npos ? 0 : std::strtoull(line.c_str() + digits, nullptr, 10);
  }
  if (name != "etag") return n;
  const size_t begin = line.find('"', colon);
  const size_t end = line.rfind('"');
  const bool strong = begin != std::string::npos && end > begin && line[begin - 1] != '/';
  if (strong) t->new_tag = line.substr(begin, end + 1 - begin);
  return n;
}

int ReportProgress(void* user, curl_off_t total, curl_off_t now, curl_off_t, curl_off_t) {
  const Transfer* t = static_cast<Transfer*>(user);
  const uint64_t left = total > now ? static_cast<uint64_t>(total - now) : 0;
  if (t->options.progress && t->body_began)
    t->options.progress(t->have, total > 0 ? t->have + left : 0);
  return 0;
}

// Whether a failure without an answer is worth another try: a line that broke, not a wrong address.
bool MayPass(CURLcode result) {
  switch (result) {
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return true;
    default:
      return false;
  }
}

// One request. `*again`: it failed in a way that may pass.
Status Attempt(Transfer* t, bool* again) {
  *again = false;
  char error[CURL_ERROR_SIZE];
  ASSIGN_OR_RETURN(const Curl curl, NewRequest(t->url, t->options.token, error));
  Headers headers(nullptr, curl_slist_free_all);
  const std::string range = std::to_string(t->have) + "-";
  t->curl = curl.get();
  t->body_began = false;
  if (t->have > 0 && !t->tag.empty()) {
    // With If-Range a changed file comes whole, as 200, rather than as a wrong tail.
    headers.reset(curl_slist_append(nullptr, ("If-Range: " + t->tag).c_str()));
    curl_easy_setopt(curl.get(), CURLOPT_RANGE, range.c_str());
    curl_easy_setopt(curl.get(), CURLOPT_HTTPHEADER, headers.get());
  }
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, WriteBody);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, t);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERFUNCTION, ReadHeaderLine);
  curl_easy_setopt(curl.get(), CURLOPT_HEADERDATA, t);
  curl_easy_setopt(curl.get(), CURLOPT_XFERINFOFUNCTION, ReportProgress);
  curl_easy_setopt(curl.get(), CURLOPT_XFERINFODATA, t);
  curl_easy_setopt(curl.get(), CURLOPT_NOPROGRESS, 0L);
  const CURLcode result = curl_easy_perform(curl.get());
  if (!t->error.ok()) return t->error;
  const long code = ResponseCode(curl.get());
  if (result == CURLE_OK && (code == 200 || code == 206)) {
    return t->body_began || BeginBody(t) ? Status() : t->error;  // an empty file has no body
  }
  if (code == 416 && t->have > 0) {  // the part file is longer than the server's file
    if (!StartOver(t)) return t->error;
    *again = true;
  }
  if (result != CURLE_OK && code < 400) *again = MayPass(result);
  if (code >= 500) *again = true;
  return result == CURLE_OK ? HttpError(t->url, code) : CurlError(t->url, result, error);
}

Status Finish(Transfer* t) {
  if (fsync(t->fd) != 0) return IoError(t->part(), "cannot sync");
  if (!t->options.sha256.empty()) {
    const Status sum = CheckSha256(t->part(), t->options.sha256);
    if (sum.code() == StatusCode::kCorrupt) {
      unlink(t->part().c_str());  // going on from wrong bytes would fail for ever
      unlink(t->tag_path().c_str());
    }
    RETURN_IF_ERROR(sum);
  }
  if (rename(t->part().c_str(), t->path.c_str()) != 0) return IoError(t->path, "cannot rename");
  unlink(t->tag_path().c_str());
  return Status();
}

Status Run(Transfer* t) {
  RETURN_IF_ERROR(OpenPart(t));
  Status status;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::seconds(1) * attempt);
    bool again = false;
    status = Attempt(t, &again);
    if (status.ok()) return Finish(t);
    if (!again) break;
  }
  return status;
}

struct Body {
  std::string text;
  size_t limit;
};

size_t CollectBody(char* data, size_t, size_t n, void* user) {
  Body* body = static_cast<Body*>(user);
  if (n > body->limit - body->text.size()) return 0;
  body->text.append(data, n);
  return n;
}

}  // namespace

Status Download(const std::string& url, const std::string& path, const DownloadOptions& options) {
  Transfer transfer{url, path, options};
  const Status status = Run(&transfer);
  if (transfer.locked && transfer.have == 0 && !status.ok()) {  // nothing worth going on from
    unlink(transfer.part().c_str());
    unlink(transfer.tag_path().c_str());
  }
  if (transfer.fd >= 0) close(transfer.fd);
  return status;
}

Result<std::string> Fetch(const std::string& url, const std::string& token, size_t limit) {
  char error[CURL_ERROR_SIZE];
  ASSIGN_OR_RETURN(const Curl curl, NewRequest(url, token, error));
  Body body{"", limit};
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, CollectBody);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &body);
  const CURLcode result = curl_easy_perform(curl.get());
  if (result != CURLE_OK) return CurlError(url, result, error);
  const long code = ResponseCode(curl.get());
  if (code != 200) return HttpError(url, code);
  return std::move(body.text);
}

std::string UrlEncode(const std::string& text) {
  static const char kDigits[] = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = std::isalnum(byte) != 0 || std::strchr("-._~", c) != nullptr;
    if (plain && c != '\0') {
      out += c;
    } else {
      out.append({'%', kDigits[byte >> 4], kDigits[byte & 15]});
    }
  }
  return out;
}

}  // namespace sluice
