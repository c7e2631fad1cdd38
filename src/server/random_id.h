// Ids of answers and calls: unguessable enough to be unique, no secret. Any thread.
#ifndef SLUICE_SRC_SERVER_RANDOM_ID_H_
#define SLUICE_SRC_SERVER_RANDOM_ID_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice {

// `prefix` and `length` letters and digits (lower case).
std::string RandomId(std::string_view prefix, size_t length);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_RANDOM_ID_H_
