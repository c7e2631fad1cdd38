// POST /v1/completions: the prompt goes on as it stands, no chat template; with a
// suffix the text between the two is filled in. The parse runs on a request
// thread, the answer is told on the I/O thread.
#ifndef SLUICE_SRC_SERVER_OPENAI_COMPLETIONS_H_
#define SLUICE_SRC_SERVER_OPENAI_COMPLETIONS_H_

#include <boost/json/array.hpp>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "src/server/openai_answer.h"
#include "src/server/openai_request.h"

namespace sluice {

// `param`: the field that an error is about, if it is about one.
Result<OpenAiRequest> ParseCompletion(const ServedModel& model, const boost::json::object& body,
                                      std::string* param);

class CompletionAnswer : public OpenAiAnswer {
 public:
  CompletionAnswer(AnswerOptions options, std::shared_ptr<Exchange> exchange);

  void OnPrompt(size_t choice, const PromptLogprobs& logprobs) override;

 protected:
  void AddToken(size_t choice, const TokenDelta& token) override;
  void EndChoice(size_t choice) override;
  void FillBody(boost::json::object& body) override;

 private:
  // Of a chunk or of the whole answer.
  struct Logprobs {
    boost::json::array tokens, values, top, offsets;
  };
  struct Text {
    std::string text;   // of the whole answer, or since the last chunk
    size_t offset = 0;  // characters of the answer before the next token
    bool sent = false;  // a chunk
    size_t ids_sent = 0;
    Logprobs logprobs;
  };
  void AddLogprob(Logprobs& logprobs, const std::string& piece, float logprob,
                  std::span<const TokenLogprob> top, size_t offset) const;
  boost::json::object MakeChoice(size_t choice, boost::json::value finish);
  std::vector<Text> texts_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_OPENAI_COMPLETIONS_H_
