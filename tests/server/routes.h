// Calls handlers of a list of routes as the server would, without a server.
#ifndef SLUICE_TESTS_SERVER_ROUTES_H_
#define SLUICE_TESTS_SERVER_ROUTES_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/server/http_server.h"
#include "tests/server/recorded_exchange.h"

namespace sluice {

inline const Route* FindRoute(const std::vector<Route>& routes, std::string_view method,
                              std::string_view path) {
  for (const Route& route : routes) {
    if (route.method == method && route.path == path) return &route;
  }
  return nullptr;
}

// Waits for the end of the answer.
inline std::shared_ptr<RecordedExchange> CallRoute(const std::vector<Route>& routes,
                                                   std::string_view method, std::string_view path,
                                                   const std::string& body = "",
                                                   HttpHeaders query = {}) {
  const auto exchange = std::make_shared<RecordedExchange>(body);
  exchange->mutable_request().query = std::move(query);
  const Route* route = FindRoute(routes, method, path);
  EXPECT_NE(route, nullptr) << method << " " << path;
  if (route == nullptr) return exchange;
  route->handler(exchange);
  EXPECT_TRUE(exchange->WaitForEnd()) << path << " " << body;
  EXPECT_EQ(exchange->ended(), 1) << path << " " << body;
  return exchange;
}

}  // namespace sluice
#endif  // SLUICE_TESTS_SERVER_ROUTES_H_
