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
#include "src/text/grammar/grammar.h"
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
  // Once, before MakeRequest: reads and checks what needs no model, so that a mistake is told
  // before one is loaded.
  Status Prepare();
  // Whether Prepare reads standard input, which nothing else can then.
  bool ReadsStdin() const { return grammar_file == "-" || json_schema_file == "-"; }
  // A request without its prompt; draws the random seed. The tokenizer must outlive it.
  Result<Request> MakeRequest(const Tokenizer& tokenizer, size_t vocab) const;

 private:
  Status ReadGrammar();

  std::shared_ptr<const Grammar> grammar_;  // of the grammar or the schema; null without one
};

}  // namespace sluice
#endif  // SLUICE_CLI_GENERATE_FLAGS_H_
