// Which route a request is for, who may call it, and which web pages may see
// the answer. Made when the server starts, then constant; the I/O thread's.
#ifndef SLUICE_SRC_SERVER_HTTP_ROUTER_H_
#define SLUICE_SRC_SERVER_HTTP_ROUTER_H_

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "src/server/http_server.h"

namespace sluice {

class HttpRouter {
 public:
  HttpRouter(std::vector<Route> routes, const HttpOptions& options);

  struct Match {
    const Route* route = nullptr;       // null: no such path, or not with this method
    std::string allow;                  // methods of the path, empty: there is no such path
    ErrorShape errors;                  // also of paths that are not there
    std::vector<std::string> captures;  // decoded
  };
  // `raw_path` is still escaped, so that %2F is no separator. Literal segments win over {...}.
  Match Find(std::string_view method, std::string_view raw_path) const;

  struct Admission {
    int status = 200;  // or 401, 403
    std::string message;
    int key = -1;
  };
  Admission Admit(const Route& route, const HttpRequest& request) const;

  // Value of Access-Control-Allow-Origin; empty: none.
  std::string AllowOrigin(std::string_view origin) const;

 private:
  using Digest = std::array<unsigned char, 32>;
  struct Pattern {
    Route route;
    std::vector<std::string> segments;  // empty: any one
    size_t captures = 0;
  };
  static Digest DigestOf(std::string_view key);
  int FindKey(const HttpRequest& request, const std::vector<Digest>& keys) const;

  std::vector<Pattern> patterns_;
  std::vector<Digest> keys_;
  std::vector<Digest> metrics_keys_;  // one or none
  bool allow_manage_;
  std::vector<std::string> origins_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_HTTP_ROUTER_H_
