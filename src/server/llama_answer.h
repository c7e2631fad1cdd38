// An answer of /completion or /infill as llama-server gives it: one object (a
// list of them for a list of prompts), or an event for every token. One per
// request, told on the I/O thread.
#ifndef SLUICE_SRC_SERVER_LLAMA_ANSWER_H_
#define SLUICE_SRC_SERVER_LLAMA_ANSWER_H_

#include <atomic>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/server/completion.h"
#include "src/server/exchange.h"

namespace sluice {

struct LlamaAnswerOptions {
  std::string model;
  bool stream = false;
  bool return_tokens = false;
  bool return_progress = false;    // events while the prompt is computed
  bool timings_per_token = false;  // timings in every event
  bool ceiling = false;            // in the last timings
  bool probs = false;              // completion_probabilities
  int64_t id_slot = 0;
  std::vector<std::string> prompts;          // as text; one per choice
  std::vector<size_t> prompt_tokens;         // the same
  std::vector<std::string> response_fields;  // of the last object; empty: all
  boost::json::object settings;              // generation_settings
  std::function<std::string(int32_t)> piece;
  // Set once t_max_predict_ms has ended the answer; null: no such limit.
  std::shared_ptr<const std::atomic<bool>> out_of_time;
};

class LlamaAnswer : public CompletionSink {
 public:
  LlamaAnswer(std::shared_ptr<Exchange> exchange, LlamaAnswerOptions options);

  void OnToken(const TokenDelta& token) override;
  void OnEnd(const ChoiceEnd& end) override;
  void OnError(const Status& status) override;
  void OnPrefill(size_t choice, size_t processed, size_t cached, size_t total) override;

 private:
  using Clock = std::chrono::steady_clock;
  struct Choice {
    std::string content;               // without `stream`: all of it
    boost::json::array tokens, probs;  // with `stream`: of text that has not left yet
    size_t predicted = 0, cached = 0;
    bool new_line = false;
    Clock::time_point first_token;
  };

  boost::json::object Part(size_t index, std::string content);
  boost::json::object Last(const ChoiceEnd& end);
  boost::json::object TimingsSoFar(const Choice& choice, size_t index) const;
  void WriteEvent(const boost::json::object& event);

  const std::shared_ptr<Exchange> exchange_;
  const LlamaAnswerOptions options_;
  const Clock::time_point started_ = Clock::now();
  std::vector<Choice> choices_;
  std::vector<boost::json::object> ended_;  // without `stream`, by choice
  size_t left_;
  bool streaming_ = false;
};

// The fields named by paths ("content", "generation_settings/n_predict"), each under its path;
// missing ones are left out.
boost::json::object SelectFields(const boost::json::object& object,
                                 const std::vector<std::string>& paths);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_LLAMA_ANSWER_H_
