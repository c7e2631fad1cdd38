// An engine over a tiny model of a named shape, for tests that run the same requests under other
// conditions: memory, chunks, threads, neighbours.
#ifndef SLUICE_TESTS_ENGINE_TINY_ENGINE_H_
#define SLUICE_TESTS_ENGINE_TINY_ENGINE_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "src/engine/engine.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/runner.h"
#include "tests/model/tiny_model.h"

namespace sluice {

// The parameter: "llama", "gemma3" (sliding windows) or "moe".
class TinyEngineTest : public testing::TestWithParam<const char*> {
 protected:
  static constexpr size_t kContext = 320;

  TinyEngineTest() : tiny_(Shape()), path_(tiny_.Write(folder_.path("m.gguf"))) {}

  static TinyShape Shape() {
    const std::string name = GetParam();
    return name == "llama" ? TinyLlama("Q4_0") : name == "gemma3" ? TinyGemma3() : TinyMoe();
  }

  // A new engine with KV memory of pages(runner) pages over all sequences.
  template <class Pages>
  void StartEngine(const EngineOptions& options, RunnerOptions o, const Pages& pages) {
    engine_.reset();
    runner_ = MakeRunner(path_, o);
    o.kv_bytes = pages(*runner_) * runner_->pool().page_bytes();
    runner_ = MakeRunner(path_, o);
    tokenizer_ = *Tokenizer::Load(runner_->model().gguf());
    engine_ = std::make_unique<Engine>(*runner_, *tokenizer_, options);
  }
  // What so many positions take, of one sequence up to its context, of several beyond it.
  static auto PagesFor(size_t positions) {
    return [positions](const ModelRunner& runner) {
      return positions <= kContext ? runner.PagesOf(positions)
                                   : runner.PagesOf(kContext) * positions / kContext;
    };
  }

  const TempFolder folder_;
  TinyModel tiny_;
  const std::string path_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace sluice
#endif  // SLUICE_TESTS_ENGINE_TINY_ENGINE_H_
