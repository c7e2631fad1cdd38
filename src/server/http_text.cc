#include "src/server/http_text.h"

#include <openssl/rand.h>

#include <boost/beast/http/status.hpp>
#include <boost/json.hpp>
#include <charconv>

#include "src/server/http_server.h"
#include "src/text/unicode.h"

namespace sluice {
namespace {

constexpr char kHex[] = "0123456789abcdef";

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (Lower(c) >= 'a' && Lower(c) <= 'f') return Lower(c) - 'a' + 10;
  return -1;
}

std::string_view Find(const HttpHeaders& list, std::string_view name, bool any_case) {
  for (const auto& [key, value] : list) {
    if (any_case ? EqualNoCase(key, name) : key == name) return value;
  }
  return {};
}

bool ParseQuery(std::string_view text, HttpHeaders& query) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('&'), text.size());
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.empty()) continue;
    const size_t equal = std::min(pair.find('='), pair.size());
    auto key = PercentDecode(pair.substr(0, equal), true);
    auto value = PercentDecode(pair.substr(std::min(equal + 1, pair.size())), true);
    if (!key || !value) return false;
    query.emplace_back(*std::move(key), *std::move(value));
  }
  return true;
}

boost::json::value StringOrNull(std::string_view text) {
  if (text.empty()) return nullptr;
  return boost::json::value(ReplaceBadUtf8(text));
}

}  // namespace

std::string_view HttpRequest::Header(std::string_view name) const {
  return Find(headers, name, true);
}

std::string_view HttpRequest::Query(std::string_view name) const {
  return Find(query, name, false);
}

bool EqualNoCase(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (Lower(a[i]) != Lower(b[i])) return false;
  }
  return true;
}

bool IsTokenChar(char c) {
  const char lower = Lower(c);
  return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') ||
         (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
}

std::optional<std::string> PercentDecode(std::string_view text, bool plus_is_blank) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += plus_is_blank && text[i] == '+' ? ' ' : text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = HexDigit(text[i + 1]), low = HexDigit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    const char c = static_cast<char>(high * 16 + low);
    // A query may hold line breaks (a prompt to tokenize), but nothing may hold NUL.
    if (c == '\0' || (IsControl(c) && !plus_is_blank)) return std::nullopt;
    out += c;
    i += 2;
  }
  if (!IsUtf8(out)) return std::nullopt;
  return out;
}

std::optional<Target> ParseTarget(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!EqualNoCase(target.substr(0, scheme.size()), scheme)) continue;
    const size_t slash = target.find('/', scheme.size());
    target = slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
    break;
  }
  if (target.empty() || (target[0] != '/' && target != "*")) return std::nullopt;
  target = target.substr(0, target.find('#'));
  const size_t question = std::min(target.find('?'), target.size());
  Target out;
  out.raw_path = target.substr(0, question);
  auto path = PercentDecode(out.raw_path, false);
  if (!path) return std::nullopt;
  out.path = *std::move(path);
  if (question < target.size() && !ParseQuery(target.substr(question + 1), out.query)) {
    return std::nullopt;
  }
  return out;
}

bool IsRequestId(std::string_view id) {
  if (id.empty() || id.size() > 128) return false;
  for (const char c : id) {
    if (c <= 0x20 || c >= 0x7F) return false;
  }
  return true;
}

std::string NewRequestId() {
  unsigned char bytes[16] = {};
  // Without randomness ids are all zero: they name a request, they guard nothing.
  if (RAND_bytes(bytes, sizeof(bytes)) != 1) std::fill(std::begin(bytes), std::end(bytes), 0);
  std::string id;
  for (const unsigned char b : bytes) {
    id += kHex[b >> 4];
    id += kHex[b & 15];
  }
  return id;
}

std::string HttpDate(std::time_t time) {
  // Not strftime's %a and %b: they follow the locale.
  static const char* const kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static const char* const kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                        "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm tm{};
  if (gmtime_r(&time, &tm) == nullptr) return "";
  char text[64];
  std::snprintf(text, sizeof(text), "%s, %02d %s %04d %02d:%02d:%02d GMT", kDays[tm.tm_wday],
                tm.tm_mday, kMonths[tm.tm_mon], tm.tm_year + 1900, tm.tm_hour, tm.tm_min,
                tm.tm_sec);
  return text;
}

std::string_view ReasonPhrase(int status) {
  const auto phrase =
      boost::beast::http::obsolete_reason(static_cast<boost::beast::http::status>(status));
  return {phrase.data(), phrase.size()};
}

void AppendHeader(std::string_view name, std::string_view value, std::string& out) {
  out.append(name);
  out += ": ";
  for (const char c : value) out += IsControl(c) ? ' ' : c;
  out += "\r\n";
}

std::string FrameChunk(std::string_view data) {
  char size[16];
  const auto end = std::to_chars(size, size + sizeof(size), data.size(), 16).ptr;
  std::string out;
  out.reserve(data.size() + sizeof(size) + 4);
  out.append(size, static_cast<size_t>(end - size));
  out += "\r\n";
  out += data;
  out += "\r\n";
  return out;
}

std::string_view ErrorType(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 429:
      return "rate_limit_error";
    case 501:
      return "not_supported_error";
    case 503:
      return "unavailable_error";
    default:
      return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

std::string ErrorBody(ErrorShape shape, int status, std::string_view message,
                      std::string_view param, std::string_view code) {
  boost::json::object out;
  if (shape == ErrorShape::kOllama) {
    out["error"] = ReplaceBadUtf8(message);
  } else {
    boost::json::object error;
    error["message"] = ReplaceBadUtf8(message);
    error["type"] = ErrorType(status);
    error["param"] = StringOrNull(param);
    error["code"] = StringOrNull(code);
    out["error"] = std::move(error);
  }
  return boost::json::serialize(out);
}

}  // namespace sluice
