#include "src/file/summary.h"

#include <algorithm>

namespace sluice {
namespace {

bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::string StringOr(const Gguf& gguf, std::string_view key) {
  const auto text = gguf.String(key);
  return text.ok() && text->has_value() ? std::string(**text) : "";
}

// Names of general.file_type, as llama.cpp numbers them; null where a number is free or retired.
const char* FileTypeName(uint64_t type) {
  static constexpr const char* kNames[] = {
      "F32",    "F16",    "Q4_0",  "Q4_1",    nullptr,  nullptr,  nullptr,  "Q8_0",
      "Q5_0",   "Q5_1",   "Q2_K",  "Q3_K_S",  "Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M",
      "Q5_K_S", "Q5_K_M", "Q6_K",  "IQ2_XXS", "IQ2_XS", "Q2_K_S", "IQ3_XS", "IQ3_XXS",
      "IQ1_S",  "IQ4_NL", "IQ3_S", "IQ3_M",   "IQ2_S",  "IQ2_M",  "IQ4_XS", "IQ1_M",
      "BF16",   nullptr,  nullptr, nullptr,   "TQ1_0",  "TQ2_0",  "MXFP4"};
  return type < std::size(kNames) ? kNames[type] : nullptr;
}

}  // namespace

const char* TensorClassName(TensorClass c) {
  static constexpr const char* kNames[] = {"embedding", "attention", "mlp",  "experts",
                                           "norm",      "output",    "other"};
  return kNames[static_cast<size_t>(c)];
}

TensorClass TensorClassOf(std::string_view tensor) {
  if (Contains(tensor, "norm")) return TensorClass::kNorm;
  if (Contains(tensor, "_exps") || Contains(tensor, "_shexp") || Contains(tensor, "ffn_gate_inp")) {
    return TensorClass::kExperts;
  }
  if (Contains(tensor, "attn_") || Contains(tensor, "ssm_")) return TensorClass::kAttention;
  if (Contains(tensor, "ffn_")) return TensorClass::kMlp;
  if (Contains(tensor, "_embd") || Contains(tensor, "token_types")) return TensorClass::kEmbedding;
  if (tensor.starts_with("output.")) return TensorClass::kOutput;
  return TensorClass::kOther;
}

std::string TensorTypeName(const GgufTensor& tensor) {
  static constexpr const char* kPlain[] = {"I8", "I16", "I32", "I64", "F64"};
  if (tensor.format != nullptr) return tensor.format->name;
  if (tensor.type_id >= 24 && tensor.type_id <= 28) return kPlain[tensor.type_id - 24];
  return "type " + std::to_string(tensor.type_id);
}

std::vector<ClassSummary> SummariseClasses(const Gguf& gguf) {
  std::map<TensorClass, ClassSummary> by_class;
  for (const GgufTensor& tensor : gguf.tensors()) {
    ClassSummary& summary = by_class[TensorClassOf(tensor.name)];
    ++summary.tensors;
    summary.parameters += tensor.Elements();
    summary.bytes += tensor.bytes;
    summary.bytes_of_type[TensorTypeName(tensor)] += tensor.bytes;
  }
  std::vector<ClassSummary> list;
  for (auto& [tensor_class, summary] : by_class) {
    summary.tensor_class = tensor_class;
    list.push_back(std::move(summary));
  }
  return list;
}

std::string QuantisationOf(const Gguf& gguf) {
  const auto type = gguf.U64("general.file_type");
  // llama.cpp sets this bit where it guessed the type from the tensors.
  constexpr uint64_t kGuessed = 1024;
  const bool given = type.ok() && type->has_value();
  const char* name = given ? FileTypeName(**type & ~kGuessed) : nullptr;
  if (name != nullptr) return name;
  std::map<std::string, uint64_t> bytes;
  for (const GgufTensor& tensor : gguf.tensors()) bytes[TensorTypeName(tensor)] += tensor.bytes;
  const auto most = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes.end() ? "" : most->first;
}

std::string ArchitectureOf(const Gguf& gguf) { return StringOr(gguf, "general.architecture"); }
std::string NameOf(const Gguf& gguf) { return StringOr(gguf, "general.name"); }

}  // namespace sluice
