// POST /v1/responses: the same conversations in OpenAI's newer form, without
// state: nothing is stored, so nothing earlier can be referred to. The parse runs
// on a request thread, the answer is told on the I/O thread.
#ifndef SLUICE_SRC_SERVER_OPENAI_RESPONSES_H_
#define SLUICE_SRC_SERVER_OPENAI_RESPONSES_H_

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <memory>
#include <string>

#include "src/server/chat_output.h"
#include "src/server/openai_answer.h"
#include "src/server/openai_request.h"

namespace sluice {

// `param`: the field that an error is about, if it is about one.
Result<OpenAiRequest> ParseResponses(const ServedModel& model, const boost::json::object& body,
                                     std::string* param);
// The chat request that asks for the same.
Result<boost::json::object> ResponsesToChat(const boost::json::object& body, std::string* param);

class ResponsesAnswer : public OpenAiAnswer {
 public:
  // `body`: the request, some fields of which are given back.
  ResponsesAnswer(AnswerOptions options, const boost::json::object& body,
                  std::shared_ptr<Exchange> exchange);

  void OnError(const Status& status) override;

 protected:
  void AddToken(size_t choice, const TokenDelta& token) override;
  void EndChoice(size_t choice) override;
  void FillBody(boost::json::object&) override {}
  void EndStream() override;
  void EndWhole() override;

 private:
  enum class Item { kNone, kReasoning, kMessage, kCall };
  void Take(const ChatDelta& delta);
  void OpenItem(Item kind, const ToolCallDelta* call);
  void CloseItem();
  void Append(Item kind, const std::string& text);
  // An event of the open item, with the fields that name it; not sent unless streaming.
  void EmitOfItem(const char* name, boost::json::object fields);
  void Emit(const char* name, boost::json::object fields);
  boost::json::object Response(const char* status) const;
  boost::json::object ItemObject(const char* status) const;

  ChatOutput output_;
  const boost::json::object request_;
  boost::json::array items_;  // ended ones
  Item open_ = Item::kNone;
  std::string item_id_, text_;
  ToolCallDelta call_;  // id and name of an open call
  int64_t sequence_number_ = 0;
  bool begun_ = false;
};

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_OPENAI_RESPONSES_H_
