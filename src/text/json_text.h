// JSON as it leaves the program: answers over HTTP and what --json prints. Any thread.
#ifndef SLUICE_SRC_TEXT_JSON_TEXT_H_
#define SLUICE_SRC_TEXT_JSON_TEXT_H_

#include <boost/json/value.hpp>
#include <string>

namespace sluice {

// One line; bad UTF-8 becomes U+FFFD, infinities and NaN null. A double keeps its fraction (2.0),
// and an exponent only where it is below 1e-5 or from 1e15 on.
std::string ToJson(const boost::json::value& value);

// A number as ToJson writes it: the fewest digits that read back as it.
void AppendJson(float number, std::string* out);

}  // namespace sluice
#endif  // SLUICE_SRC_TEXT_JSON_TEXT_H_
