// What a GGUF holds, in a few words and numbers, from its directory alone.
// Used by `sluice inspect` and `sluice models`; any thread.
#ifndef SLUICE_SRC_FILE_SUMMARY_H_
#define SLUICE_SRC_FILE_SUMMARY_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "src/file/gguf.h"

namespace sluice {

// What a tensor is for, told by its name.
enum class TensorClass { kEmbedding, kAttention, kMlp, kExperts, kNorm, kOutput, kOther };
const char* TensorClassName(TensorClass c);  // "attention"
TensorClass TensorClassOf(std::string_view tensor);

// "Q4_K"; types that no format here covers: "I32", or "type 200".
std::string TensorTypeName(const GgufTensor& tensor);

struct ClassSummary {
  TensorClass tensor_class{};
  uint64_t tensors = 0, parameters = 0, bytes = 0;
  std::map<std::string, uint64_t> bytes_of_type;
};

// Classes that have tensors, in the order of the enum.
std::vector<ClassSummary> SummariseClasses(const Gguf& gguf);

// The name a quantiser would give the whole file, "Q4_K_M": from general.file_type, else the type
// that takes most of the bytes; empty for a file without tensors.
std::string QuantisationOf(const Gguf& gguf);

// general.architecture and general.name as they stand; empty if absent or no string.
std::string ArchitectureOf(const Gguf& gguf);
std::string NameOf(const Gguf& gguf);

}  // namespace sluice
#endif  // SLUICE_SRC_FILE_SUMMARY_H_
