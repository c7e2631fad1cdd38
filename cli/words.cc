#include "cli/words.h"

#include <initializer_list>
#include <utility>

namespace sluice {
namespace {

template <class T>
Result<T> OneOf(const char* flag, const std::string& word,
                std::initializer_list<std::pair<const char*, T>> known) {
  std::string expected;
  for (const auto& [name, value] : known) {
    if (word == name) return value;
    expected += (expected.empty() ? "" : ", ") + std::string(name);
  }
  return Status(StatusCode::kInvalidArgument,
                std::string(flag) + ": expected one of " + expected + "; found " + word);
}

}  // namespace

Result<LoadMode> ParseLoadMode(const std::string& word) {
  return OneOf<LoadMode>("--weights", word,
                         {{"auto", LoadMode::kAuto},
                          {"panels", LoadMode::kPanels},
                          {"repack", LoadMode::kRepack},
                          {"gguf", LoadMode::kGguf}});
}

Result<HugePages> ParseHugePages(const std::string& word) {
  return OneOf<HugePages>(
      "--huge-pages", word,
      {{"auto", HugePages::kAuto}, {"on", HugePages::kOn}, {"off", HugePages::kOff}});
}

Result<NumaMode> ParseNumaMode(const std::string& word) {
  return OneOf<NumaMode>(
      "--numa", word,
      {{"auto", NumaMode::kAuto}, {"off", NumaMode::kOff}, {"interleave", NumaMode::kInterleave}});
}

Result<Activations> ParseActivations(const std::string& word) {
  return OneOf<Activations>("--activations", word,
                            {{"int8", Activations::kInt8}, {"f32", Activations::kF32}});
}

Result<std::optional<KvType>> ParseKvType(const std::string& word) {
  return OneOf<std::optional<KvType>>("--kv-type", word,
                                      {{"auto", std::nullopt},
                                       {"f32", KvType::kF32},
                                       {"f16", KvType::kF16},
                                       {"bf16", KvType::kBF16},
                                       {"q8", KvType::kQ8},
                                       {"q8_0", KvType::kQ8}});  // llama.cpp's word
}

std::string NamesAFile(const std::string& value) {
  return value.empty() ? "expected the name of a file, found nothing" : std::string();
}

std::string NotEmpty(const std::string& value) {
  return value.empty() ? "expected a value, found nothing" : std::string();
}

}  // namespace sluice
