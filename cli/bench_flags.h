// The flags of `sluice bench`: llama-bench's names, lists and ranges, and the
// rows that they ask for.
#ifndef SLUICE_CLI_BENCH_FLAGS_H_
#define SLUICE_CLI_BENCH_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/engine/bench.h"

namespace sluice {

// What a model has to be loaded for anew.
struct BenchSetup {
  std::string model;  // path
  LoadMode weights = LoadMode::kAuto;
  std::string huge_pages = "auto";     // checked: a word of ParseHugePages
  std::optional<KvType> kv_type;       // none: as RunnerOptions has it
  size_t batch = 512;                  // rows of a pass of a prompt
  int threads = 0, threads_batch = 0;  // 0: as RunnerOptions has it
  bool relaxed = false, portable = false, mlock = false;
  std::string numa = "auto";  // checked: a word of ParseNumaMode

  bool operator==(const BenchSetup&) const = default;
};

// One row of the result.
struct BenchPlan {
  BenchSetup setup;
  BenchTest test;
};

// "512", "1,2,4", "128-512+128" (128 256 384 512), "1-8*2" (1 2 4 8), "1-4"; several of them, in
// their order. `flag` names it in errors. Error: anything else, a value outside [least, most], a
// range that does not grow, more than 1000 values.
Result<std::vector<size_t>> ParseNumbers(const std::string& flag,
                                         const std::vector<std::string>& lists, size_t least,
                                         size_t most);

struct BenchFlags {
  // Lists as they were typed.
  std::vector<std::string> positional_models, models, prompt{"512"}, generate{"128"}, depth{"0"},
      prompt_generate, batch{"512"}, micro_batch, threads{"0"}, threads_batch{"0"}, kv_type{"auto"},
      value_type, weights{"auto"}, huge_pages{"auto"}, concurrency{"1"};
  bool relaxed = false, portable = false, mlock = false;
  std::string numa = "auto";
  std::vector<std::string> ignored;

  void AddTo(CLI::App& command);
  // The cross product of the lists: models, weights, pages, KV types, batches, threads outermost,
  // so that a model is loaded once for each; then depths; then prompts, generations and both. Every
  // model is found, and its context checked; none is loaded.
  Result<std::vector<BenchPlan>> Plans() const;
  // These flags with some replaced: "OTHER_MODEL --weights gguf -t 2". Error: nothing is replaced.
  Result<BenchFlags> With(const std::string& changes) const;
};

}  // namespace sluice
#endif  // SLUICE_CLI_BENCH_FLAGS_H_
