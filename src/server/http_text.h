// The text of HTTP: percent escapes, query strings, request ids, dates, status
// lines. Pure functions, used by the connection and the router; any thread.
#ifndef SLUICE_SRC_SERVER_HTTP_TEXT_H_
#define SLUICE_SRC_SERVER_HTTP_TEXT_H_

#include <ctime>
#include <optional>
#include <string>
#include <string_view>

#include "src/server/exchange.h"

namespace sluice {

bool EqualNoCase(std::string_view a, std::string_view b);
// A character of a method or a header name (RFC 9110, "token").
bool IsTokenChar(char c);

// %41 is "A", and in a query "+" a blank. Nothing: a broken escape, an escaped control character,
// or bytes that are not UTF-8.
std::optional<std::string> PercentDecode(std::string_view text, bool plus_is_blank);

struct Target {
  std::string_view raw_path;  // as sent, without the query; points into the text parsed
  std::string path;           // decoded
  HttpHeaders query;          // decoded
};
// "/a%20b?c=d", or as a proxy sends it "http://host/a%20b?c=d"; "*". Nothing: not well formed.
std::optional<Target> ParseTarget(std::string_view target);

// The client's, if it is 1 to 128 printable ASCII characters without blanks (it stands in the log).
bool IsRequestId(std::string_view id);
std::string NewRequestId();  // 32 hex digits

// "Tue, 15 Nov 1994 08:12:31 GMT"
std::string HttpDate(std::time_t time);
std::string_view ReasonPhrase(int status);
// A header line; control characters in the value become blanks, so that none can end it.
void AppendHeader(std::string_view name, std::string_view value, std::string& out);
// One chunk of the chunked transfer coding.
std::string FrameChunk(std::string_view data);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_HTTP_TEXT_H_
