// Answers of OpenAI's endpoints: what all of them have in common, as one JSON
// object or as server-sent events, one event in one write. Told by Complete on
// the I/O thread.
#ifndef SLUICE_SRC_SERVER_OPENAI_ANSWER_H_
#define SLUICE_SRC_SERVER_OPENAI_ANSWER_H_

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "src/server/chat_output.h"
#include "src/server/completion.h"
#include "src/server/exchange.h"

namespace sluice {

struct AnswerOptions {
  std::string id, model, fingerprint;  // the model's name as requested
  int64_t created = 0;                 // since 1970
  bool stream = false;
  bool include_usage = false;     // a last chunk with the totals
  bool continuous_usage = false;  // in every chunk
  bool return_token_ids = false;
  bool ceiling = false;       // in the timings
  bool include_stop = false;  // the stop string is part of the answer
  int logprobs = -1;          // >= 0: with that many alternatives
  size_t n = 1;               // choices for each prompt
  std::vector<std::vector<int32_t>> prompts;
  std::function<std::string(int32_t id)> piece;  // the bytes of a token

  int prompt_logprobs = -1;  // the same of the prompts' tokens, as vLLM shows them

  // Completions.
  std::vector<std::string> echo;  // the prompts' texts, before their answers; empty: not asked for
  // Of the prompts' tokens, in characters of these texts: where log-probabilities are echoed too.
  std::vector<std::vector<size_t>> echo_offsets;
  bool echo_logprobs() const { return !echo_offsets.empty(); }

  // Chat.
  ChatOutputOptions output;
  bool parallel_tool_calls = true;
  bool show_reasoning = true;
};

// {"error": {...}} with the code that clients know, as a whole answer.
HttpResponse OpenAiError(const Status& status, std::string_view param = "", int retry_after_s = 1);
void RespondJson(Exchange& exchange, const boost::json::value& body);

class OpenAiAnswer : public CompletionSink {
 public:
  OpenAiAnswer(AnswerOptions options, std::shared_ptr<Exchange> exchange);

  void OnToken(const TokenDelta& token) override;
  void OnPrompt(size_t choice, const PromptLogprobs& logprobs) override;
  void OnEnd(const ChoiceEnd& end) override;
  void OnError(const Status& status) override;

 protected:
  struct Choice {
    SequenceStats stats;
    FinishReason reason = FinishReason::kNone;
    std::string stop_text, diverged_text;
    size_t tokens = 0;            // so far
    size_t reasoning_tokens = 0;  // of these
    std::vector<int32_t> ids;     // if they are to be returned
    boost::json::array prompt_logprobs;
  };

  virtual void AddToken(size_t choice, const TokenDelta& token) = 0;
  virtual void EndChoice(size_t choice) = 0;
  // After the last choice: what a whole answer has beside Frame, usage and timings.
  virtual void FillBody(boost::json::object& body) = 0;
  // The chunk that carries the totals, and what marks the end of the stream.
  virtual void EndStream();
  virtual void EndWhole();

  const AnswerOptions& options() const { return options_; }
  Choice& choice(size_t i) { return choices_[i]; }
  size_t choices() const { return choices_.size(); }
  bool last_choice() const { return left_ <= 1; }

  // id, object, created, model, system_fingerprint.
  boost::json::object Frame(std::string_view object) const;
  // A chunk with these choices, and the usage that the client asked to see in it.
  void SendChunk(std::string_view object, boost::json::array choices, size_t choice, bool last);
  void SendEvent(std::string_view name, const boost::json::value& data);  // name empty: none
  void SendText(std::string event);
  boost::json::object Usage() const;
  boost::json::object AllTimings() const;  // sums over the choices
  const char* FinishName(size_t choice, bool called_tools) const;
  Exchange& exchange() { return *exchange_; }
  bool streaming() const { return streaming_; }  // something was sent
  void set_chunk_object(std::string object) { chunk_object_ = std::move(object); }

 private:
  boost::json::object UsageOf(size_t choice) const;

  const AnswerOptions options_;
  const std::shared_ptr<Exchange> exchange_;
  std::vector<Choice> choices_;
  size_t left_;
  std::string chunk_object_;
  bool streaming_ = false;  // the head was sent
};

// The bytes as text, what is no UTF-8 replaced.
std::string ShownPiece(const std::string& piece);
// Negative infinity is -9999 in JSON, as vLLM has it.
double ShownLogprob(float logprob);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_OPENAI_ANSWER_H_
