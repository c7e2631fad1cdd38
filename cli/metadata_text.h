// Metadata values for people and for JSON, whatever their type. Used by `sluice inspect`.
#ifndef SLUICE_CLI_METADATA_TEXT_H_
#define SLUICE_CLI_METADATA_TEXT_H_

#include <boost/json.hpp>
#include <string>

#include "src/file/gguf.h"

namespace sluice {

// One line: `32768`, `"llama"`, `array of string, 262144: "<pad>", "<eos>", ...`.
std::string MetadataText(const GgufValue& value);

// A number, bool or string; an array is {"element", "count", "first": [...]}, because vocabularies
// are long. Floats that JSON cannot say and strings that are not UTF-8 come as escaped text.
boost::json::value MetadataJson(const GgufValue& value);

}  // namespace sluice
#endif  // SLUICE_CLI_METADATA_TEXT_H_
