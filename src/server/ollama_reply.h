// What all answers in Ollama's dialect share: errors, times, names. Stateless,
// any thread.
#ifndef SLUICE_SRC_SERVER_OLLAMA_REPLY_H_
#define SLUICE_SRC_SERVER_OLLAMA_REPLY_H_

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "src/base/status.h"
#include "src/server/exchange.h"
#include "src/server/served_model.h"

namespace sluice {

// "2026-01-31T12:00:00.123456789Z".
std::string Rfc3339(std::chrono::system_clock::time_point time);
int64_t Nanoseconds(double seconds);

void RespondOllama(Exchange& exchange, const boost::json::value& body);
// {"error": message}. `retry_after_s` > 0: sent as Retry-After.
void RespondOllamaError(Exchange& exchange, int http_status, std::string_view message,
                        int retry_after_s = 0);
// A full queue is 503 here, where others say 429.
void RespondOllamaError(Exchange& exchange, const Status& status, int retry_after_s = 1);

// Seconds, negative: for ever. A number is seconds, a text a duration as Go writes it ("10m",
// "1h30m", "-1m"; also "300" and "-1", which people put there). nullopt: absent or null.
Result<std::optional<double>> ReadKeepAlive(const boost::json::value* value);
Result<double> ParseDuration(std::string_view text);

// 64 hex digits that name this version of a file: clients cut ids and progress bars out of it.
// Made of name, size and time, not of the content, which takes seconds per gigabyte to read.
std::string ModelDigest(const ModelEntry& entry);

// "model", or "name" as older clients call it; empty if neither is a text.
std::string ModelNameOf(const boost::json::object& body);
// `model 'x' not found` in Ollama's words, other errors as they are.
Status OllamaModelError(const Status& status, std::string_view name);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_OLLAMA_REPLY_H_
