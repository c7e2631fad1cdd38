#include "src/server/openai_prompt_logprobs.h"

#include <algorithm>
#include <boost/json/object.hpp>

namespace sluice {

namespace json = boost::json;

namespace {

constexpr int64_t kMostAlternatives = 20;  // vLLM's default, OpenAI's limit
// Tokens with their alternatives in one answer; some 100 bytes each as JSON.
constexpr size_t kMostNumbers = 250'000;

}  // namespace

void ReadPromptLogprobs(Fields* fields, OpenAiRequest* request) {
  AnswerOptions& answer = request->answer;
  answer.prompt_logprobs =
      static_cast<int>(fields->Int("prompt_logprobs", -1, 0, kMostAlternatives));
  if (answer.prompt_logprobs >= 0 && answer.stream) {
    fields->Fail("prompt_logprobs", "not available in a stream; leave stream out");
  }
}

Status WantPromptLogprobs(Fields* fields, OpenAiRequest* request) {
  const AnswerOptions& answer = request->answer;
  const int echoed = answer.echo_logprobs() ? answer.logprobs : -1;
  const int wanted = std::max(answer.prompt_logprobs, echoed);
  request->call.options.prompt_logprobs = wanted;
  if (wanted < 0) return Status();
  size_t tokens = 0;
  for (const std::vector<int32_t>& prompt : request->call.prompts) tokens += prompt.size();
  const size_t numbers = tokens * static_cast<size_t>(wanted + 1) * request->call.n;
  if (numbers <= kMostNumbers) return Status();
  fields->Fail(answer.prompt_logprobs >= 0 ? "prompt_logprobs" : "logprobs",
               "expected at most " + std::to_string(kMostNumbers) +
                   " log-probabilities of prompts in one answer, these would be " +
                   std::to_string(numbers) + "; ask for fewer alternatives, prompts or choices");
  return fields->status();
}

json::array PromptLogprobsJson(const PromptLogprobs& logprobs, size_t count,
                               const std::function<std::string(int32_t id)>& piece) {
  json::array list;
  list.push_back(nullptr);
  for (size_t i = 1; i < logprobs.size(); ++i) {
    const PromptLogprobs::Entry entry = logprobs.at(i);
    json::object one;
    const auto add = [&](const TokenLogprob& token, size_t rank) {
      one.emplace(std::to_string(token.id),
                  json::object{{"logprob", ShownLogprob(token.logprob)},
                               {"rank", rank},
                               {"decoded_token", ShownPiece(piece(token.id))}});
    };
    add(entry.token, entry.rank);
    for (size_t k = 0; k < std::min(count, entry.top.size()); ++k) add(entry.top[k], k + 1);
    list.push_back(std::move(one));
  }
  return list;
}

}  // namespace sluice
