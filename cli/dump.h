// One tensor as little-endian float32. Used by `sluice inspect --dump`.
#ifndef SLUICE_CLI_DUMP_H_
#define SLUICE_CLI_DUMP_H_

#include <cstdio>
#include <string>

#include "src/base/status.h"
#include "src/file/gguf.h"

namespace sluice {

// Writes the values of the tensor called `name`, shape[0] running fastest. Of any type whose bits
// are known: all weight formats, and I8 I16 I32 I64 F64, rounded to float32.
Status DumpTensor(const Gguf& gguf, const std::string& name, std::FILE* out);

}  // namespace sluice
#endif  // SLUICE_CLI_DUMP_H_
