#include "src/load/target.h"

#include <algorithm>
#include <string_view>

#include "src/base/printable.h"

namespace sluice::load {
namespace {

Status Wrong(const std::string& url, const std::string& what) {
  return Status(StatusCode::kInvalidArgument,
                Printable(url) + ": expected a URL such as http://127.0.0.1:8080, found " + what);
}

bool IsPort(std::string_view text) {
  if (text.empty() || text.size() > 5) return false;
  unsigned value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return false;
    value = 10 * value + static_cast<unsigned>(c - '0');
  }
  return value > 0 && value < 65536;
}

}  // namespace

std::string Target::Authority() const {
  const std::string name = host.find(':') == std::string::npos ? host : "[" + host + "]";
  const bool usual = !unix_path.empty() || port == (tls ? "443" : "80");
  return usual ? name : name + ":" + port;
}

Result<Target> ParseTarget(const std::string& url) {
  Target t;
  t.url = url;
  std::string rest = url;
  for (const char c : url) {
    if (static_cast<unsigned char>(c) <= 0x20) return Wrong(url, "a blank in it");
  }
  if (rest.starts_with("unix:")) {
    t.unix_path = rest.substr(5);
    if (t.unix_path.starts_with("//")) t.unix_path.erase(0, 2);
    t.host = "localhost";
    if (t.unix_path.empty()) return Wrong(url, "no path of a socket");
    return t;
  }
  if (const size_t scheme = rest.find("://"); scheme != std::string::npos) {
    const std::string name = rest.substr(0, scheme);
    if (name != "http" && name != "https") return Wrong(url, "the scheme " + Printable(name));
    t.tls = name == "https";
    rest.erase(0, scheme + 3);
  }
  if (rest.find_first_of("?#") != std::string::npos) return Wrong(url, "a query or fragment");
  const size_t slash = std::min(rest.find('/'), rest.size());
  t.prefix = rest.substr(slash);
  rest.resize(slash);
  while (t.prefix.ends_with("/")) t.prefix.pop_back();
  if (t.prefix.ends_with("/v1")) t.prefix.resize(t.prefix.size() - 3);
  if (rest.find('@') != std::string::npos) return Wrong(url, "a user name; use --api-key");

  size_t name_end = rest.rfind(':');
  if (rest.starts_with("[")) {
    const size_t close = rest.find(']');
    if (close == std::string::npos) return Wrong(url, "[ without ]");
    t.host = rest.substr(1, close - 1);
    name_end = close + 1 < rest.size() ? close + 1 : std::string::npos;
    if (name_end != std::string::npos && rest[name_end] != ':') return Wrong(url, "text after ]");
  } else {
    t.host = rest.substr(0, name_end);
  }
  if (t.host.empty()) return Wrong(url, "no host");
  t.port = name_end == std::string::npos ? (t.tls ? "443" : "80") : rest.substr(name_end + 1);
  if (!IsPort(t.port)) return Wrong(url, "the port " + Printable(t.port));
  return t;
}

}  // namespace sluice::load
