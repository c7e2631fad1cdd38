// Two schemas into one that holds what both hold (allOf, and keywords beside
// $ref, anyOf, oneOf), without looking into what is nested: that becomes an
// allOf of its own, merged when it is met. Used by json_schema.cc; stateless.
#ifndef SLUICE_SRC_TEXT_GRAMMAR_SCHEMA_MERGE_H_
#define SLUICE_SRC_TEXT_GRAMMAR_SCHEMA_MERGE_H_

#include <boost/json/value.hpp>

#include "src/base/status.h"

namespace sluice::grammar {

// Neither has a $ref of its own. kInvalidArgument, without the path: what cannot be merged.
Result<boost::json::value> MergeSchemas(const boost::json::value& a, const boost::json::value& b);

// Keywords that say nothing about which texts are right.
bool IsAnnotation(std::string_view keyword);

}  // namespace sluice::grammar
#endif  // SLUICE_SRC_TEXT_GRAMMAR_SCHEMA_MERGE_H_
