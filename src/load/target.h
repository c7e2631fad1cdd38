// Where load is sent: a URL taken apart. Used by the client of `sluice load`; any thread.
#ifndef SLUICE_SRC_LOAD_TARGET_H_
#define SLUICE_SRC_LOAD_TARGET_H_

#include <string>

#include "src/base/status.h"

namespace sluice::load {

struct Target {
  std::string url;  // as it was given
  bool tls = false;
  std::string host, port;  // of TCP; an IPv6 address without its brackets
  std::string unix_path;   // of a Unix socket; host is then "localhost"
  std::string prefix;      // what stands before every route: "" or "/proxy"

  std::string Authority() const;  // for the Host header
};

// "http://HOST[:PORT][/PREFIX]", https too, "HOST:PORT", "unix:/PATH". A "/v1" at the end, as
// OpenAI's clients have it in their base URL, is left out: routes begin with it.
// Error: another scheme, no host, a user name, a query.
Result<Target> ParseTarget(const std::string& url);

}  // namespace sluice::load
#endif  // SLUICE_SRC_LOAD_TARGET_H_
