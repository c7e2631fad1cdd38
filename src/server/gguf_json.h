// Metadata of a GGUF file as JSON, for answers about models. Any thread.
#ifndef SLUICE_SRC_SERVER_GGUF_JSON_H_
#define SLUICE_SRC_SERVER_GGUF_JSON_H_

#include <boost/json/value.hpp>
#include <cstddef>

#include "src/file/gguf.h"

namespace sluice {

// Numbers, booleans and strings as they are; an array of more than `most` elements is null.
boost::json::value GgufValueJson(const GgufValue& value, size_t most);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_GGUF_JSON_H_
