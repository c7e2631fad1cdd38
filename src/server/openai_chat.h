// POST /v1/chat/completions: a conversation in the model's own template, the
// answer taken apart into content, reasoning and calls. The parse runs on a
// request thread, the answer is told on the I/O thread.
#ifndef SLUICE_SRC_SERVER_OPENAI_CHAT_H_
#define SLUICE_SRC_SERVER_OPENAI_CHAT_H_

#include <boost/json/array.hpp>
#include <memory>
#include <string>
#include <vector>

#include "src/server/chat_output.h"
#include "src/server/openai_answer.h"
#include "src/server/openai_request.h"
#include "src/server/openai_tools.h"

namespace sluice {

// `param`: the field that an error is about, if it is about one.
Result<OpenAiRequest> ParseChat(const ServedModel& model, const boost::json::object& body,
                                std::string* param);

// From messages in OpenAI's form on: the prompt, its marks and what holds the answer. Errors with
// no field of their own are about `messages_key`.
Status PrepareChat(const ServedModel& model, const boost::json::array& messages,
                   const ToolPlan& tools, std::shared_ptr<const Grammar> grammar,
                   const char* messages_key, Fields* fields, OpenAiRequest* request);

class ChatAnswer : public OpenAiAnswer {
 public:
  ChatAnswer(AnswerOptions options, std::shared_ptr<Exchange> exchange);

 protected:
  void AddToken(size_t choice, const TokenDelta& token) override;
  void EndChoice(size_t choice) override;
  void FillBody(boost::json::object& body) override;

 private:
  struct Message {
    std::unique_ptr<ChatOutput> output;
    std::string content, reasoning;
    boost::json::array calls;     // of a whole answer
    boost::json::array logprobs;  // of the answer, or since the last chunk
    bool sent = false;            // a chunk
    size_t ids_sent = 0;
  };
  void Take(Message& message, const ChatDelta& delta);
  void SendDelta(size_t choice, const ChatDelta& delta);
  boost::json::value TakeLogprobs(Message& message);
  void AddIds(size_t choice, boost::json::object& out);
  std::vector<Message> messages_;
};

// What of a delta this answer shows: one call at most where calls must not be parallel.
ChatDelta ShownDelta(ChatDelta delta, const AnswerOptions& options);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_OPENAI_CHAT_H_
