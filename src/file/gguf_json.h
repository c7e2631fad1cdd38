// Metadata of a GGUF file as JSON, for `sluice inspect` and answers about models. Any thread.
#ifndef SLUICE_SRC_FILE_GGUF_JSON_H_
#define SLUICE_SRC_FILE_GGUF_JSON_H_

#include <boost/json/array.hpp>
#include <boost/json/value.hpp>
#include <cstdint>

#include "src/file/gguf.h"

namespace sluice {

// A value that is no array: numbers (infinities and NaN too), booleans and strings as they are.
boost::json::value GgufScalarJson(const GgufValue& value);
// The first elements of an array, `most` at most.
boost::json::array GgufElementsJson(const GgufValue& value, uint64_t most);

}  // namespace sluice
#endif  // SLUICE_SRC_FILE_GGUF_JSON_H_
