#include "src/server/openai_completions.h"

#include <algorithm>
#include <utility>

#include "src/server/llama_infill.h"
#include "src/server/openai_prompt_logprobs.h"
#include "src/server/random_id.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr size_t kDefaultMaxTokens = 16;  // OpenAI's
constexpr size_t kMostPrompts = 1000;

// In characters, as text_offset counts.
size_t CountCharacters(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

class PromptReader {
 public:
  // `suffix`: of the text whose middle is wanted; empty: the prompt goes on.
  PromptReader(const ServedModel& model, std::string suffix, Fields* fields)
      : model_(model), suffix_(std::move(suffix)), fields_(fields) {}

  std::vector<std::vector<int32_t>> Read() {
    const json::value* prompt = fields_->Find("prompt");
    std::vector<std::vector<int32_t>> prompts;
    if (prompt == nullptr) {
      fields_->Fail("prompt", "missing; expected a string, strings or token ids");
      return prompts;
    }
    const json::array* list = prompt->if_array();
    if (list == nullptr || (!list->empty() && list->front().is_number())) {
      prompts.push_back(One(*prompt));
      return prompts;
    }
    if (list->empty() || list->size() > kMostPrompts) {
      fields_->Fail("prompt", "expected 1 to 1000 prompts, found " + std::to_string(list->size()));
      return prompts;
    }
    for (const json::value& one : *list) prompts.push_back(One(one));
    return prompts;
  }

 private:
  std::vector<int32_t> One(const json::value& prompt) {
    if (prompt.is_string()) {
      return suffix_.empty() ? Encode(prompt.get_string()) : Infill(prompt.get_string());
    }
    std::vector<int32_t> ids;
    const size_t vocab = std::min(model_.vocab(), model_.tokenizer().vocab_size());
    if (!suffix_.empty()) fields_->Fail("suffix", "needs a prompt that is text, not token ids");
    if (!prompt.is_array()) {
      fields_->Fail("prompt", "expected a string, strings or token ids");
      return ids;
    }
    for (const json::value& id : prompt.get_array()) {
      const bool known =
          id.is_int64() && id.get_int64() >= 0 && static_cast<size_t>(id.get_int64()) < vocab;
      if (!known) {
        fields_->Fail("prompt", "expected token ids from 0 to " + std::to_string(vocab - 1));
        return ids;
      }
      ids.push_back(static_cast<int32_t>(id.get_int64()));
    }
    if (ids.empty()) fields_->Fail("prompt", "expected at least one token");
    return ids;
  }

  // The whole text is the caller's own: what looks like a control token is one.
  std::vector<int32_t> Encode(std::string_view text) {
    Tokenizer::EncodeOptions options;
    options.add_special = fields_->Bool("add_special_tokens", true);
    options.parse_special = true;
    std::vector<int32_t> ids = model_.tokenizer().Encode(text, options);
    // An empty prompt is the beginning of a text.
    if (ids.empty() && model_.tokenizer().bos()) ids.push_back(*model_.tokenizer().bos());
    if (ids.empty())
      fields_->Fail("prompt", "it is empty, and the model has no token to begin a text");
    return ids;
  }

  std::vector<int32_t> Infill(std::string_view prefix) {
    InfillText text;
    text.prefix = std::string(prefix);
    text.suffix = suffix_;
    Result<std::vector<int32_t>> ids = InfillPrompt(text, model_.tokenizer());
    if (ids.ok()) return *std::move(ids);
    fields_->Fail("suffix", ids.status().message());
    return {};
  }

  const ServedModel& model_;
  const std::string suffix_;
  Fields* fields_;
};

// The prompts' texts, and where each of their tokens stands in them.
void ReadEcho(const ServedModel& model, AnswerOptions* answer) {
  const Tokenizer& tokenizer = model.tokenizer();
  for (const std::vector<int32_t>& prompt : answer->prompts) {
    answer->echo.push_back(tokenizer.Decode(prompt, true));
    if (answer->logprobs < 0) continue;
    StreamDecoder decoder(tokenizer, true);
    std::vector<size_t>& offsets = answer->echo_offsets.emplace_back();
    size_t offset = 0;
    for (int32_t id : prompt) {
      offsets.push_back(offset);
      offset += CountCharacters(decoder.Push(id));
    }
  }
}

}  // namespace

Result<OpenAiRequest> ParseCompletion(const ServedModel& model, const json::object& body,
                                      std::string* param) {
  OpenAiRequest request;
  Fields fields(body);
  CompletionCall& call = request.call;
  AnswerOptions& answer = request.answer;
  const auto failed = [&] {
    *param = fields.param();
    return fields.status();
  };
  ReadOpenAiRequest(model, kDefaultMaxTokens, &fields, &request);
  ReadPromptLogprobs(&fields, &request);
  const std::string suffix = fields.String("suffix");
  answer.logprobs = static_cast<int>(fields.Int("logprobs", -1, 0, 20));
  call.options.logprobs = answer.logprobs;
  const bool echo = fields.Bool("echo", false);
  if (echo && !suffix.empty()) fields.Fail("suffix", "cannot go together with echo");
  call.prompts = PromptReader(model, suffix, &fields).Read();
  const std::shared_ptr<const Grammar> grammar = ReadGrammar(&fields);
  if (!fields.status().ok()) return failed();
  if (Status fit = FitPrompts(model, &fields, &call); !fit.ok()) {
    *param = fields.status().ok() ? "prompt" : fields.param();
    return fit;
  }
  Constrain(model, grammar, "", &call);
  answer.id = RandomId("cmpl-", 24);
  answer.prompts = call.prompts;
  if (echo) ReadEcho(model, &answer);
  if (!WantPromptLogprobs(&fields, &request).ok()) return failed();
  return request;
}

CompletionAnswer::CompletionAnswer(AnswerOptions options, std::shared_ptr<Exchange> exchange)
    : OpenAiAnswer(std::move(options), std::move(exchange)), texts_(choices()) {
  set_chunk_object("text_completion");
  if (this->options().echo.empty()) return;
  for (size_t i = 0; i < texts_.size(); ++i) {
    texts_[i].text = this->options().echo[i / this->options().n];
    texts_[i].offset = CountCharacters(texts_[i].text);
  }
}

void CompletionAnswer::OnPrompt(size_t choice, const PromptLogprobs& logprobs) {
  OpenAiAnswer::OnPrompt(choice, logprobs);
  if (!options().echo_logprobs()) return;
  Logprobs& out = texts_[choice].logprobs;
  const std::vector<size_t>& offsets = options().echo_offsets[choice / options().n];
  out.tokens.push_back(json::string(ShownPiece(options().piece(logprobs.first()))));
  out.values.push_back(nullptr);
  out.top.push_back(nullptr);
  out.offsets.push_back(offsets[0]);
  const auto most = static_cast<size_t>(options().logprobs);
  for (size_t i = 1; i < logprobs.size(); ++i) {
    const PromptLogprobs::Entry entry = logprobs.at(i);
    AddLogprob(out, options().piece(entry.token.id), entry.token.logprob,
               entry.top.first(std::min(most, entry.top.size())), offsets[i]);
  }
}

void CompletionAnswer::AddToken(size_t choice, const TokenDelta& token) {
  Text& text = texts_[choice];
  text.text += token.text;
  if (options().logprobs >= 0 && token.id >= 0) {
    AddLogprob(text.logprobs, token.piece, token.logprob, token.top, text.offset);
  }
  text.offset += CountCharacters(token.text);
  if (!options().stream) return;
  const bool shown = !text.text.empty() || !text.logprobs.tokens.empty() ||
                     (options().return_token_ids && token.id >= 0);
  if (!shown) return;
  SendChunk("text_completion", {MakeChoice(choice, nullptr)}, choice, false);
}

void CompletionAnswer::AddLogprob(Logprobs& logprobs, const std::string& piece, float logprob,
                                  std::span<const TokenLogprob> top, size_t offset) const {
  // Alternatives that look the same (parts of characters) are one key: the likelier one's.
  json::object alternatives;
  for (const TokenLogprob& other : top) {
    alternatives.emplace(ShownPiece(options().piece(other.id)), ShownLogprob(other.logprob));
  }
  logprobs.tokens.push_back(json::string(ShownPiece(piece)));
  logprobs.values.push_back(ShownLogprob(logprob));
  logprobs.top.push_back(std::move(alternatives));
  logprobs.offsets.push_back(offset);
}

// What has gathered since the last time.
json::object CompletionAnswer::MakeChoice(size_t choice, json::value finish) {
  Text& text = texts_[choice];
  json::object out = {{"index", choice},
                      {"text", std::exchange(text.text, std::string())},
                      {"logprobs", nullptr},
                      {"finish_reason", std::move(finish)}};
  if (options().logprobs >= 0 && !text.logprobs.tokens.empty()) {
    Logprobs taken = std::exchange(text.logprobs, Logprobs());
    out["logprobs"] = {{"tokens", std::move(taken.tokens)},
                       {"token_logprobs", std::move(taken.values)},
                       {"top_logprobs", std::move(taken.top)},
                       {"text_offset", std::move(taken.offsets)}};
  }
  if (options().prompt_logprobs >= 0) {
    out["prompt_logprobs"] = std::move(this->choice(choice).prompt_logprobs);
  }
  if (options().return_token_ids) {
    const std::vector<int32_t>& ids = this->choice(choice).ids;
    out["token_ids"] = json::array(ids.begin() + static_cast<ptrdiff_t>(text.ids_sent), ids.end());
    text.ids_sent = ids.size();
    if (!std::exchange(text.sent, true)) {
      const std::vector<int32_t>& prompt = options().prompts[choice / options().n];
      out["prompt_token_ids"] = json::array(prompt.begin(), prompt.end());
    }
  }
  return out;
}

void CompletionAnswer::EndChoice(size_t choice) {
  if (!options().stream) return;
  SendChunk("text_completion", {MakeChoice(choice, FinishName(choice, false))}, choice,
            last_choice());
}

void CompletionAnswer::FillBody(json::object& body) {
  body = Frame("text_completion");
  json::array list;
  for (size_t i = 0; i < choices(); ++i) {
    list.push_back(MakeChoice(i, FinishName(i, false)));
  }
  body["choices"] = std::move(list);
}

}  // namespace sluice
