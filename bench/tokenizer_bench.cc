// What a tokenizer costs: loading a vocabulary, and a megabyte of text of the
// kinds that are quadratic elsewhere, beside one of prose. Vocabularies: the
// GGUF files named on the command line, or those of the shared oracles.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "src/file/gguf.h"
#include "src/text/tokenizer.h"

namespace sluice {
namespace {

constexpr size_t kTextBytes = 1 << 20;

std::string Repeat(std::string_view unit) {
  std::string text;
  while (text.size() < kTextBytes) text += unit;
  return text;
}

// Letters that no dictionary orders.
std::string RandomLetters() {
  std::string text;
  uint32_t state = 1;
  while (text.size() < kTextBytes) {
    state = state * 1664525 + 1013904223;
    text.push_back(static_cast<char>('a' + (state >> 24) % 26));
  }
  return text;
}

void Load(benchmark::State& state, const std::string& path) {
  for (auto _ : state) {
    const auto gguf = Gguf::Open(path);
    const auto tokenizer = Tokenizer::Load(**gguf);
    benchmark::DoNotOptimize((*tokenizer)->vocab_size());
  }
}

void Encode(benchmark::State& state, const std::string& path, const std::string& text) {
  const auto gguf = Gguf::Open(path);
  const auto tokenizer = Tokenizer::Load(**gguf);
  size_t ids = 0;
  for (auto _ : state) ids = (*tokenizer)->Encode(text, {.parse_special = true}).size();
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * text.size()));
  state.counters["ids"] = static_cast<double>(ids);
}

std::vector<std::string> Vocabularies(int argc, char** argv) {
  std::vector<std::string> paths(argv + 1, argv + argc);
  if (!paths.empty()) return paths;
  const char* shared = std::getenv("SLUICE_SHARED");
  std::error_code absent;
  for (const auto& entry : std::filesystem::directory_iterator(
           std::filesystem::path(shared ? shared : "../shared") / "oracles/tokenizer", absent)) {
    if (entry.path().extension() == ".gguf") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

void Register(const std::string& path) {
  const auto gguf = Gguf::Open(path);
  if (!gguf.ok() || !Tokenizer::Load(**gguf).ok()) return;
  const std::string name = std::filesystem::path(path).stem();
  const auto add = [&](const char* kind, auto body) {
    benchmark::RegisterBenchmark((name + "/" + kind).c_str(), body)->Unit(benchmark::kMillisecond);
  };
  add("load", [path](benchmark::State& state) { Load(state, path); });
  const std::pair<const char*, std::string> texts[] = {
      {"prose", Repeat("It was the best of times; it was the worst of times, in 1775 or so.\n")},
      {"one_letter", Repeat("a")},
      {"letters", RandomLetters()},
      {"blanks", Repeat(" ")},
      {"newlines", Repeat("\n")},
      {"emoji", Repeat("\xF0\x9F\xA6\x99")},
      {"ideographs", Repeat("\xE4\xB8\xAD\xE6\x96\x87")},
  };
  for (const auto& [kind, text] : texts) {
    add(kind, [path, text = text](benchmark::State& state) { Encode(state, path, text); });
  }
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  const std::vector<std::string> paths = sluice::Vocabularies(argc, argv);
  if (paths.empty()) {
    std::fprintf(stderr, "tokenizer_bench: name a GGUF file with a vocabulary\n");
    return 2;
  }
  for (const std::string& path : paths) sluice::Register(path);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
