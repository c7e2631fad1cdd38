// Opening a model file: the directory of a large vocabulary and many tensors,
// checked entry by entry. Every check costs every start: keep this in milliseconds.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <string>
#include <vector>

#include "src/file/gguf.h"
#include "src/file/gguf_directory.h"
#include "src/file/gguf_writer.h"

namespace sluice {
namespace {

// The directory of a model with 262144 tokens and 1000 tensors, as bytes.
std::vector<uint8_t> LargeFile() {
  constexpr size_t kTokens = 262144, kTensors = 1000;
  std::vector<std::string> tokens;
  for (size_t i = 0; i < kTokens; ++i) tokens.push_back("token " + std::to_string(i));
  const std::vector<float> scores(kTokens, -1000.0f);
  const std::vector<int32_t> types(kTokens, 1);
  GgufWriter writer;
  writer.AddString("general.architecture", "llama");
  writer.AddStrings("tokenizer.ggml.tokens", tokens);
  writer.AddFloats("tokenizer.ggml.scores", scores);
  writer.AddI32s("tokenizer.ggml.token_type", types);
  const std::vector<uint8_t> data(256);
  const uint64_t shape[] = {64};
  for (size_t i = 0; i < kTensors; ++i) {
    writer.AddTensor("blk." + std::to_string(i) + ".attn_norm.weight", 0, shape, data);
  }
  return writer.Bytes();
}

void BM_ParseDirectory(benchmark::State& state) {
  const std::vector<uint8_t> file = LargeFile();
  for (auto _ : state) {
    const auto directory = ParseGgufDirectory(file);
    if (!directory.ok()) state.SkipWithError(directory.status().message().c_str());
    benchmark::DoNotOptimize(directory);
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * file.size()));
}
BENCHMARK(BM_ParseDirectory)->Unit(benchmark::kMillisecond);

// With the map, and the views of all tokens.
void BM_OpenAndListTokens(benchmark::State& state) {
  const std::string path = (std::filesystem::temp_directory_path() / "sluice-bench.gguf").string();
  const std::vector<uint8_t> file = LargeFile();
  std::FILE* out = std::fopen(path.c_str(), "wb");
  if (out == nullptr || std::fwrite(file.data(), 1, file.size(), out) != file.size()) {
    state.SkipWithError("cannot write the file");
  }
  if (out != nullptr) std::fclose(out);
  for (auto _ : state) {
    const auto gguf = Gguf::Open(path);
    if (!gguf.ok()) {
      state.SkipWithError(gguf.status().message().c_str());
      break;
    }
    benchmark::DoNotOptimize((*gguf)->Strings("tokenizer.ggml.tokens"));
  }
  std::filesystem::remove(path);
}
BENCHMARK(BM_OpenAndListTokens)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace sluice

BENCHMARK_MAIN();
