// The APIs that load can be sent in: how a prompt becomes a request, and what the events of the
// answer say. Used by the generator and the probe; any thread.
#ifndef SLUICE_SRC_LOAD_DIALECT_H_
#define SLUICE_SRC_LOAD_DIALECT_H_

#include <boost/json.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/load/client.h"
#include "src/load/sample.h"

namespace sluice::load {

enum class Dialect { kOpenAi, kOpenAiChat, kOllama, kLlama };
const char* DialectName(Dialect dialect);  // as --dialect has it

// What is sent: ids where they are not empty, messages where there are some, else the text.
struct LoadPrompt {
  std::vector<int32_t> ids;
  std::string text;
  boost::json::array messages;
  size_t tokens = 0;         // meant; 0: as long as the text is
  size_t output_tokens = 0;  // asked for
};

struct RequestOptions {
  Dialect dialect = Dialect::kOpenAi;
  std::string model;       // empty: left out
  bool ignore_eos = true;  // always as many tokens as asked for
  double temperature = 0;
  boost::json::object extra;  // goes over what is written here
};

LoadRequest MakeRequest(const RequestOptions& options, const LoadPrompt& prompt);

// The measurements in an answer. Times are since `begin`; intended_s is the caller's to set.
LoadSample ReadAnswer(Dialect dialect, LoadClock::time_point begin, const Reply& reply);

// The message in an error's body, in whatever dialect, as one printable line.
std::string ErrorMessage(const std::string& body);

}  // namespace sluice::load
#endif  // SLUICE_SRC_LOAD_DIALECT_H_
