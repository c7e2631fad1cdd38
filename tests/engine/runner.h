// What the tests of this folder share: a loaded model, and its logits position
// by position.
#ifndef SLUICE_TESTS_ENGINE_RUNNER_H_
#define SLUICE_TESTS_ENGINE_RUNNER_H_

#include <gtest/gtest.h>
#include <xxhash.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "simd/vector_ops.h"
#include "src/engine/evaluate.h"
#include "src/engine/model_runner.h"

namespace sluice {

// One thread and in-place weights: what starts fastest. A context must be given.
inline RunnerOptions TestOptions(size_t context, KvType kv_type = KvType::kF32) {
  RunnerOptions o;
  o.weights = LoadMode::kGguf;
  o.kv_type = kv_type;
  o.context = context;
  o.threads = 1;
  return o;
}

inline std::unique_ptr<ModelRunner> MakeRunner(const std::string& path, const RunnerOptions& o) {
  Result<std::unique_ptr<ModelRunner>> runner = ModelRunner::Create(path, o);
  EXPECT_TRUE(runner.ok()) << path << ": " << runner.status().message();
  return runner.ok() ? *std::move(runner) : nullptr;
}

// One hash for the logits after each token.
inline std::vector<uint64_t> LogitHashes(ModelRunner& runner, std::span<const int32_t> tokens) {
  std::vector<uint64_t> hashes;
  Evaluator evaluator(runner);
  const Status s = evaluator.Append(tokens, 0, [&](size_t, std::span<const float> logits) {
    hashes.push_back(XXH3_64bits(logits.data(), logits.size_bytes()));
  });
  EXPECT_TRUE(s.ok()) << s.message();
  return hashes;
}

// n greedy tokens after the prompt; on_step, if given, sees the logits each was chosen from.
inline std::vector<int32_t> GreedyTokens(
    ModelRunner& runner, std::span<const int32_t> prompt, size_t n,
    const std::function<void(size_t step, std::span<const float>)>& on_step = {}) {
  std::vector<int32_t> ids;
  Evaluator evaluator(runner);
  const LogitSink sink = [&](size_t, std::span<const float> logits) {
    if (on_step) on_step(ids.size(), logits);
    ids.push_back(static_cast<int32_t>(ArgMax(logits.data(), logits.size())));
  };
  Status s = evaluator.Append(prompt, prompt.size() - 1, sink);
  while (s.ok() && ids.size() < n) {
    const int32_t last = ids.back();
    s = evaluator.Append({&last, 1}, evaluator.length(), sink);
  }
  EXPECT_TRUE(s.ok()) << s.message();
  return ids;
}

}  // namespace sluice
#endif  // SLUICE_TESTS_ENGINE_RUNNER_H_
