// Which kind of vocabulary a file holds.
#include "src/text/tokenizer.h"

#include "src/base/printable.h"
#include "src/text/tokenizer_base.h"

namespace sluice {
namespace {

struct Kind {
  std::string_view model;  // tokenizer.ggml.model
  Result<std::unique_ptr<Tokenizer>> (*load)(const Gguf& gguf, Vocab vocab);
};
constexpr Kind kKinds[] = {
    {"llama", LoadSpm}, {"gpt2", LoadBpe}, {"gemma4", LoadBpe}, {"bert", LoadWpm}, {"t5", LoadUgm}};

Result<std::unique_ptr<Tokenizer>> LoadKind(const Gguf& gguf) {
  ASSIGN_OR_RETURN(const std::optional<std::string_view> model,
                   gguf.String("tokenizer.ggml.model"));
  if (!model.has_value()) {
    return Status(StatusCode::kNotFound,
                  "no tokenizer.ggml.model: the file has no vocabulary; expected llama, gpt2, bert "
                  "or t5");
  }
  for (const Kind& kind : kKinds) {
    if (kind.model != *model) continue;
    ASSIGN_OR_RETURN(Vocab vocab, Vocab::Load(gguf));
    return kind.load(gguf, std::move(vocab));
  }
  return Status(StatusCode::kUnsupported, "tokenizer.ggml.model is \"" + Printable(*model) +
                                              "\"; expected llama, gpt2, gemma4, bert or t5");
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> Tokenizer::Load(const Gguf& gguf) {
  Result<std::unique_ptr<Tokenizer>> tokenizer = LoadKind(gguf);
  if (!tokenizer.ok()) return tokenizer.status().Within(Printable(gguf.path(), 200));
  return tokenizer;
}

}  // namespace sluice
