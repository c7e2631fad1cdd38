#include "src/server/http_router.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>

#include "src/server/http_text.h"

namespace sluice {
namespace {

std::vector<std::string_view> Split(std::string_view path) {
  std::vector<std::string_view> out;
  if (!path.empty() && path[0] == '/') path.remove_prefix(1);
  while (true) {
    const size_t slash = path.find('/');
    out.push_back(path.substr(0, slash));
    if (slash == std::string_view::npos) return out;
    path.remove_prefix(slash + 1);
  }
}

void AddMethod(std::string_view method, std::string& list) {
  if ((", " + list + ",").find(", " + std::string(method) + ",") != std::string::npos) return;
  if (!list.empty()) list += ", ";
  list += method;
}

}  // namespace

HttpRouter::HttpRouter(std::vector<Route> routes, const HttpOptions& options)
    : allow_manage_(options.allow_manage), origins_(options.cors_origins) {
  for (Route& route : routes) {
    Pattern pattern;
    for (const std::string_view segment : Split(route.path)) {
      const bool any = segment.size() >= 2 && segment.front() == '{' && segment.back() == '}';
      pattern.segments.emplace_back(any ? std::string_view() : segment);
      pattern.captures += any;
    }
    // The root has one segment, which is empty and yet no capture.
    if (route.path == "/") pattern.segments.clear();
    pattern.route = std::move(route);
    patterns_.push_back(std::move(pattern));
  }
  std::stable_sort(patterns_.begin(), patterns_.end(),
                   [](const Pattern& a, const Pattern& b) { return a.captures < b.captures; });
  for (const std::string& key : options.api_keys) keys_.push_back(DigestOf(key));
  if (!options.metrics_key.empty()) metrics_keys_.push_back(DigestOf(options.metrics_key));
}

HttpRouter::Match HttpRouter::Find(std::string_view method, std::string_view raw_path) const {
  Match match;
  match.errors = raw_path.substr(0, 5) == "/api/" || raw_path == "/api" ? ErrorShape::kOllama
                                                                        : ErrorShape::kOpenAi;
  if (raw_path.substr(0, 1) != "/") return match;  // "*"
  std::vector<std::string> segments;
  if (raw_path != "/") {
    for (const std::string_view segment : Split(raw_path)) {
      auto decoded = PercentDecode(segment, false);
      if (!decoded || decoded->empty()) return match;
      segments.push_back(*std::move(decoded));
    }
  }
  const auto fits = [&](const Pattern& pattern) {
    return std::equal(
        pattern.segments.begin(), pattern.segments.end(), segments.begin(), segments.end(),
        [](const std::string& want, const std::string& is) { return want.empty() || want == is; });
  };
  for (const Pattern& pattern : patterns_) {
    if (!fits(pattern)) continue;
    if (match.allow.empty()) match.errors = pattern.route.errors;
    AddMethod(pattern.route.method, match.allow);
    if (pattern.route.method == "GET") AddMethod("HEAD", match.allow);
    const bool same =
        pattern.route.method == method || (method == "HEAD" && pattern.route.method == "GET");
    if (match.route != nullptr || !same) continue;
    match.route = &pattern.route;
    match.errors = pattern.route.errors;
    for (size_t i = 0; i < segments.size(); ++i) {
      if (pattern.segments[i].empty()) match.captures.push_back(segments[i]);
    }
  }
  if (!match.allow.empty()) AddMethod("OPTIONS", match.allow);
  return match;
}

HttpRouter::Digest HttpRouter::DigestOf(std::string_view key) {
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest.data());
  return digest;
}

// The time it takes tells nothing: digests have one length, and every key is compared to its end.
int HttpRouter::FindKey(const HttpRequest& request, const std::vector<Digest>& keys) const {
  int found = -1;
  const auto look = [&](std::string_view key) {
    if (key.empty()) return;
    const Digest digest = DigestOf(key);
    for (size_t i = 0; i < keys.size(); ++i) {
      if (CRYPTO_memcmp(digest.data(), keys[i].data(), digest.size()) == 0) {
        found = static_cast<int>(i);
      }
    }
  };
  look(request.Header("x-api-key"));
  std::string_view authorization = request.Header("Authorization");
  if (EqualNoCase(authorization.substr(0, 7), "Bearer ")) {
    authorization.remove_prefix(7);
    while (!authorization.empty() && authorization[0] == ' ') authorization.remove_prefix(1);
    look(authorization);
  }
  return found;
}

HttpRouter::Admission HttpRouter::Admit(const Route& route, const HttpRequest& request) const {
  Admission admission;
  if (route.access == Access::kOpen) return admission;
  if (route.access == Access::kManage && keys_.empty()) {
    if (allow_manage_) return admission;
    admission.status = 403;
    admission.message =
        "this changes what the server serves: start it with --api-key KEY to let holders of the "
        "key do that, or with --allow-manage to let anybody";
    return admission;
  }
  const bool metrics = route.access == Access::kMetrics;
  if (metrics ? metrics_keys_.empty() : keys_.empty()) return admission;
  admission.key = FindKey(request, keys_);
  if (admission.key >= 0) return admission;
  if (metrics && FindKey(request, metrics_keys_) >= 0) return admission;
  admission.status = 401;
  const bool tried =
      !request.Header("Authorization").empty() || !request.Header("x-api-key").empty();
  admission.message = tried ? "the API key is not one of this server's"
                            : "an API key is needed: send Authorization: Bearer KEY";
  return admission;
}

std::string HttpRouter::AllowOrigin(std::string_view origin) const {
  for (const std::string& allowed : origins_) {
    if (allowed == "*") return "*";
    if (!origin.empty() && allowed == origin) return allowed;
  }
  return "";
}

}  // namespace sluice
