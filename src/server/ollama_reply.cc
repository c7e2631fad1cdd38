#include "src/server/ollama_reply.h"

#include <openssl/evp.h>

#include <algorithm>
#include <boost/json/string.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <utility>

#include "src/base/printable.h"
#include "src/server/completion.h"
#include "src/server/fields.h"
#include "src/server/http_server.h"

namespace sluice {
namespace {

constexpr double kLongest = 292.0 * 365 * 24 * 3600;  // what Go's durations can hold

struct Unit {
  std::string_view name;
  double seconds;
};
// Longer names before those that begin like them.
constexpr Unit kUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"\xC2\xB5s", 1e-6}, {"\xCE\xBCs", 1e-6},
                           {"ms", 1e-3}, {"s", 1},     {"m", 60},           {"h", 3600}};

Status BadDuration(std::string_view text) {
  return Status(StatusCode::kInvalidArgument,
                "keep_alive: expected seconds or a duration such as \"10m\" or \"-1\", found \"" +
                    Printable(text) + "\"");
}

// Reads a number off the front: digits with at most one point.
bool TakeNumber(std::string_view* text, double* number) {
  size_t n = 0;
  while (n < text->size() && ((*text)[n] == '.' || ((*text)[n] >= '0' && (*text)[n] <= '9'))) ++n;
  const auto [end, error] =
      std::from_chars(text->data(), text->data() + n, *number, std::chars_format::fixed);
  if (error != std::errc() || end != text->data() + n) return false;
  text->remove_prefix(n);
  return true;
}

bool TakeUnit(std::string_view* text, double* seconds) {
  for (const Unit& unit : kUnits) {
    if (!text->starts_with(unit.name)) continue;
    text->remove_prefix(unit.name.size());
    *seconds = unit.seconds;
    return true;
  }
  return false;
}

}  // namespace

std::string Rfc3339(std::chrono::system_clock::time_point time) {
  using std::chrono::duration_cast;
  using std::chrono::nanoseconds;
  const auto since = duration_cast<nanoseconds>(time.time_since_epoch());
  const auto whole = std::chrono::floor<std::chrono::seconds>(since);
  const std::time_t seconds = whole.count();
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[64];
  const size_t length = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(text + length, sizeof(text) - length, ".%09lldZ",
                static_cast<long long>((since - whole).count()));
  return text;
}

int64_t Nanoseconds(double seconds) {
  if (!(seconds > 0)) return 0;
  return static_cast<int64_t>(std::llround(std::min(seconds, kLongest) * 1e9));
}

void RespondOllama(Exchange& exchange, const boost::json::value& body) {
  HttpResponse response;
  response.body = ToJson(body);
  exchange.Respond(std::move(response));
}

void RespondOllamaError(Exchange& exchange, int http_status, std::string_view message,
                        int retry_after_s) {
  HttpResponse response;
  response.status = http_status;
  response.body = ErrorBody(ErrorShape::kOllama, http_status, message);
  if (retry_after_s > 0)
    response.headers.emplace_back("Retry-After", std::to_string(retry_after_s));
  exchange.Respond(std::move(response));
}

void RespondOllamaError(Exchange& exchange, const Status& status, int retry_after_s) {
  const bool busy = status.code() == StatusCode::kBusy;
  RespondOllamaError(exchange, busy ? 503 : HttpStatusOf(status), status.message(),
                     busy ? std::max(1, retry_after_s) : 0);
}

Result<double> ParseDuration(std::string_view text) {
  const std::string_view whole = text;
  double sign = 1;
  if (text.starts_with('-') || text.starts_with('+')) {
    sign = text[0] == '-' ? -1 : 1;
    text.remove_prefix(1);
  }
  if (text.empty()) return BadDuration(whole);
  double total = 0;
  for (bool first = true; !text.empty(); first = false) {
    double number = 0, unit = 1;
    if (!TakeNumber(&text, &number)) return BadDuration(whole);
    if (!TakeUnit(&text, &unit) && !(first && text.empty())) return BadDuration(whole);
    total += number * unit;
  }
  return sign * std::min(total, kLongest);
}

Result<std::optional<double>> ReadKeepAlive(const boost::json::value* value) {
  if (value == nullptr || value->is_null()) return std::optional<double>();
  if (value->is_string()) {
    ASSIGN_OR_RETURN(const double seconds, ParseDuration(value->get_string()));
    return std::optional<double>(seconds);
  }
  if (!value->is_number()) return BadDuration(ToJson(*value));
  const double seconds = value->to_number<double>();
  return std::optional<double>(std::clamp(seconds, -kLongest, kLongest));
}

std::string ModelDigest(const ModelEntry& entry) {
  const std::string what =
      entry.name + '\0' + std::to_string(entry.bytes) + '\0' + std::to_string(entry.modified_s);
  unsigned char hash[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  EVP_Digest(what.data(), what.size(), hash, &bytes, EVP_sha256(), nullptr);
  static constexpr char kHex[] = "0123456789abcdef";
  std::string hex;
  for (unsigned int i = 0; i < bytes; ++i) {
    hex += kHex[hash[i] >> 4];
    hex += kHex[hash[i] & 15];
  }
  return hex;
}

std::string ModelNameOf(const boost::json::object& body) {
  for (const char* key : {"model", "name"}) {
    const boost::json::value* value = body.if_contains(key);
    if (value != nullptr && value->is_string() && !value->get_string().empty()) {
      return std::string(value->get_string());
    }
  }
  return "";
}

Status OllamaModelError(const Status& status, std::string_view name) {
  if (status.code() != StatusCode::kNotFound) return status;
  return Status(StatusCode::kNotFound, "model '" + Printable(name, 200) + "' not found");
}

}  // namespace sluice
