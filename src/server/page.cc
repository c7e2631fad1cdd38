#include "src/server/page.h"

#include <openssl/sha.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "src/server/http_text.h"

namespace sluice {
namespace {

// Nothing but our own files runs, shows or is called; no page can frame this one. Trusted types:
// no text becomes markup, whatever a model writes.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
    {".html", "text/html; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".svg", "image/svg+xml"}};

std::string_view TypeOf(std::string_view name) {
  for (const auto& [ending, type] : kTypes) {
    if (name.ends_with(ending)) return type;
  }
  return "application/octet-stream";
}

// Strong: of the bytes.
std::string TagOf(std::string_view bytes) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), digest);
  std::string tag = "\"";
  for (size_t i = 0; i < 16; ++i) {
    tag += "0123456789abcdef"[digest[i] >> 4];
    tag += "0123456789abcdef"[digest[i] & 15];
  }
  return tag + '"';
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// What stands before the next `separator`, which is taken off `text` with it.
std::string_view TakeUntil(char separator, std::string_view* text) {
  const size_t end = std::min(text->find(separator), text->size());
  const std::string_view part = Trimmed(text->substr(0, end));
  text->remove_prefix(std::min(end + 1, text->size()));
  return part;
}

// If-None-Match, compared weakly as RFC 9110 has it; a tag of ours has no comma.
bool Matches(std::string_view condition, std::string_view tag) {
  while (!condition.empty()) {
    std::string_view one = TakeUntil(',', &condition);
    if (one == "*") return true;
    if (one.starts_with("W/")) one.remove_prefix(2);
    if (one == tag) return true;
  }
  return false;
}

class Page {
 public:
  Page() {
    for (const PageFile& file : PageFiles()) {
      files_.push_back({file.name, TypeOf(file.name), file.bytes, TagOf(file.bytes)});
    }
  }

  void Answer(Exchange& exchange, std::string_view name) const {
    const auto file = std::find_if(files_.begin(), files_.end(),
                                   [&](const File& one) { return one.name == name; });
    HttpResponse response;
    if (file == files_.end()) {
      response.status = 404;
      response.body = ErrorBody(ErrorShape::kOpenAi, 404, "the page has no such file");
      return exchange.Respond(std::move(response));
    }
    response.headers = {{"ETag", file->tag},
                        {"Cache-Control", "no-cache"},  // a newer program has a newer page
                        {"Content-Security-Policy", kPolicy},
                        {"X-Content-Type-Options", "nosniff"},
                        {"Referrer-Policy", "no-referrer"}};
    if (name == kIndex) response.headers.emplace_back("Vary", "Accept");
    response.content_type = file->type;
    if (Matches(exchange.request().Header("If-None-Match"), file->tag)) {
      response.status = 304;
    } else {
      response.body = file->bytes;
    }
    exchange.Respond(std::move(response));
  }

  static constexpr std::string_view kIndex = "index.html";

 private:
  struct File {
    std::string_view name, type, bytes;
    std::string tag;
  };
  std::vector<File> files_;
};

Route OpenRoute(const char* path, Handler handler) {
  return {"GET", path, std::move(handler), Access::kOpen, ErrorShape::kOpenAi, true};
}

}  // namespace

bool WantsPage(std::string_view accept) {
  while (!accept.empty()) {
    std::string_view range = TakeUntil(',', &accept);
    if (!EqualNoCase(TakeUntil(';', &range), "text/html")) continue;
    bool refused = false;
    while (!range.empty()) {
      std::string_view value = TakeUntil(';', &range);
      const std::string_view name = TakeUntil('=', &value);
      refused = refused ||
                (EqualNoCase(name, "q") && value.find_first_not_of("0.") == std::string_view::npos);
    }
    if (!refused) return true;
  }
  return false;
}

std::vector<Route> WithPage(std::vector<Route> routes) {
  const auto page = std::make_shared<const Page>();
  for (Route& route : routes) {
    if (route.method != "GET" || route.path != "/") continue;
    route.handler = [page, others = std::move(route.handler)](const auto& exchange) {
      if (!WantsPage(exchange->request().Header("Accept"))) return others(exchange);
      page->Answer(*exchange, Page::kIndex);
    };
  }
  routes.push_back(OpenRoute("/page/{name}", [page](const std::shared_ptr<Exchange>& exchange) {
    page->Answer(*exchange, exchange->request().captures.at(0));
  }));
  return routes;
}

}  // namespace sluice
