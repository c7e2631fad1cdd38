// Text between two texts, for models trained to fill the middle in: their
// prompt, in the marks that the vocabulary has. Any thread.
#ifndef SLUICE_SRC_SERVER_LLAMA_INFILL_H_
#define SLUICE_SRC_SERVER_LLAMA_INFILL_H_

#include <boost/json/object.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/base/status.h"
#include "src/text/tokenizer.h"

namespace sluice {

struct InfillText {
  std::string prefix, suffix;
  std::string prompt;                                      // begins the middle
  std::vector<std::pair<std::string, std::string>> files;  // of the same project: name, text
};
// input_prefix, input_suffix, prompt, input_extra.
Result<InfillText> ReadInfill(const boost::json::object& body);

// The tokens of a family, all three of one.
struct InfillTokens {
  int32_t prefix = -1, suffix = -1, middle = -1;
  std::optional<int32_t> repository, file;  // before the project's and a file's name
};
std::optional<InfillTokens> FindInfillTokens(const Tokenizer& tokenizer);

// kUnsupported: no such tokens.
Result<std::vector<int32_t>> InfillPrompt(const InfillText& text, const Tokenizer& tokenizer);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_LLAMA_INFILL_H_
