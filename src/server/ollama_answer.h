// An answer of /api/generate or /api/chat: what the engine says, as lines of
// JSON while it comes, or as one object at the end. One per request, told on
// the I/O thread.
#ifndef SLUICE_SRC_SERVER_OLLAMA_ANSWER_H_
#define SLUICE_SRC_SERVER_OLLAMA_ANSWER_H_

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/server/chat_output.h"
#include "src/server/completion.h"
#include "src/server/exchange.h"

namespace sluice {

struct OllamaAnswerOptions {
  std::string model;  // as the client wrote it
  bool chat = false;
  bool stream = true;
  bool logprobs = false;
  std::optional<ChatOutputOptions> output;  // none: all text is the answer
  // With `context`, the last object ends with these ids and those that were generated; without the
  // end token, as Ollama makes it of the prompt's and the answer's text.
  bool context = false;
  std::vector<int32_t> prompt;
  std::vector<std::string> ignored;  // options nobody here knows: header X-Ignored-Options
  std::vector<std::string> notes;    // what was not done as asked: "warnings" of the last object
  bool truncated = false;            // the client let us cut the prompt, and we did
  std::function<std::string(int32_t)> piece;  // bytes of a token, for alternatives
  std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  double load_s = 0;
};

class OllamaAnswer : public CompletionSink {
 public:
  OllamaAnswer(std::shared_ptr<Exchange> exchange, OllamaAnswerOptions options);

  void OnToken(const TokenDelta& token) override;
  void OnEnd(const ChoiceEnd& end) override;
  void OnError(const Status& status) override;

 private:
  struct Call {
    std::string id, name, arguments;
  };

  void Deliver(ChatDelta delta);
  // Calls before `until` are complete: as JSON, or, if the model wrote no object, back as text.
  boost::json::array TakeCalls(size_t until, std::string* content);
  void AddLogprob(const TokenDelta& token);
  boost::json::object Line(std::string content, std::string reasoning, boost::json::array calls);
  boost::json::object Last(const ChoiceEnd& end);
  void WriteLine(const boost::json::object& line);
  HttpHeaders Headers() const;

  const std::shared_ptr<Exchange> exchange_;
  const OllamaAnswerOptions options_;
  std::optional<ChatOutput> output_;
  bool started_ = false;
  std::map<size_t, Call> calls_;  // begun, not yet delivered
  size_t calls_delivered_ = 0;
  boost::json::array logprobs_;  // of tokens whose text has not left yet
  std::vector<int32_t> generated_;
  // Without `stream`: what there is so far.
  std::string content_, reasoning_;
  boost::json::array all_calls_;
};

// The object that answers a request which only loads or unloads.
boost::json::object OllamaLoadReply(bool chat, const std::string& model, const char* done_reason,
                                    double load_s);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_OLLAMA_ANSWER_H_
