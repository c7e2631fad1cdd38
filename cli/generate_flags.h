// The flags of how text is generated, shared by run and chat: llama.cpp's names
// and short forms where it has one.
#ifndef SLUICE_CLI_GENERATE_FLAGS_H_
#define SLUICE_CLI_GENERATE_FLAGS_H_

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/engine/sequence.h"
#include "src/text/tokenizer.h"

namespace sluice {

struct GenerateFlags {
  SamplerOptions sampler;
  int64_t seed = -1;  // -1: a random one
  int64_t max_tokens = 512;
  std::vector<std::string> stop, logit_bias, dry_breakers;
  std::string samplers;
  std::string grammar, grammar_file, json_schema, json_schema_file;
  bool ignore_eos = false, context_shift = false;
  size_t sinks = 4;

  void AddTo(CLI::App& command);
  // A request without its prompt; draws the random seed.
  Result<Request> MakeRequest(const Tokenizer& tokenizer, size_t vocab) const;

 private:
  // What the grammar or the schema holds the text to; null without one. The tokenizer must outlive
  // it.
  Result<std::shared_ptr<TokenConstraint>> MakeConstraint(const Tokenizer& tokenizer) const;
};

}  // namespace sluice
#endif  // SLUICE_CLI_GENERATE_FLAGS_H_
