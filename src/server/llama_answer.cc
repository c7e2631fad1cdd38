#include "src/server/llama_answer.h"

#include <algorithm>
#include <boost/json/string.hpp>
#include <cmath>
#include <utility>

#include "src/server/fields.h"
#include "src/server/llama_reply.h"
#include "src/server/timings.h"

namespace sluice {

namespace json = boost::json;

namespace {

// Clients read numbers only, and the logarithm of 0 is none.
constexpr double kLeastLogprob = -9999;

json::object ProbJson(int32_t id, const std::string& piece, float logprob) {
  json::array bytes;
  for (const char c : piece) bytes.push_back(static_cast<unsigned char>(c));
  return {{"id", id},
          {"token", piece},
          {"bytes", std::move(bytes)},
          {"logprob", std::isfinite(logprob) ? static_cast<double>(logprob) : kLeastLogprob}};
}

const char* StopType(const ChoiceEnd& end, bool out_of_time) {
  if (out_of_time || end.reason == FinishReason::kLength) return "limit";
  if (end.reason != FinishReason::kStop) return "none";
  return end.stop_text.empty() ? "eos" : "word";
}

}  // namespace

json::object SelectFields(const json::object& object, const std::vector<std::string>& paths) {
  json::object selected;
  for (const std::string& path : paths) {
    const json::object* in = &object;
    const json::value* found = nullptr;
    for (size_t begin = 0; in != nullptr;) {
      const size_t end = std::min(path.find('/', begin), path.size());
      found = in->if_contains(std::string_view(path).substr(begin, end - begin));
      begin = end + 1;
      if (end == path.size()) break;
      in = found == nullptr ? nullptr : found->if_object();
      found = nullptr;
    }
    if (found != nullptr) selected[path] = *found;
  }
  return selected;
}

LlamaAnswer::LlamaAnswer(std::shared_ptr<Exchange> exchange, LlamaAnswerOptions options)
    : exchange_(std::move(exchange)),
      options_(std::move(options)),
      choices_(options_.prompts.size()),
      ended_(choices_.size()),
      left_(choices_.size()) {}

void LlamaAnswer::OnToken(const TokenDelta& token) {
  Choice& choice = choices_.at(token.choice);
  if (token.id >= 0) {
    if (choice.predicted++ == 0) choice.first_token = Clock::now();
    if (options_.return_tokens) choice.tokens.push_back(token.id);
    if (options_.probs) {
      json::object entry = ProbJson(token.id, token.piece, token.logprob);
      json::array top;
      for (const TokenLogprob& t : token.top) {
        top.push_back(ProbJson(t.id, options_.piece ? options_.piece(t.id) : "", t.logprob));
      }
      entry["top_logprobs"] = std::move(top);
      choice.probs.push_back(std::move(entry));
    }
  }
  choice.new_line = choice.new_line || token.text.find('\n') != std::string::npos;
  if (!options_.stream) {
    choice.content += token.text;
  } else if (!token.text.empty()) {
    json::object event = Part(token.choice, token.text);
    if (options_.timings_per_token) event["timings"] = TimingsSoFar(choice, token.choice);
    WriteEvent(event);
  }
}

json::object LlamaAnswer::Part(size_t index, std::string content) {
  Choice& choice = choices_[index];
  json::object part{{"index", index},
                    {"content", std::move(content)},
                    {"tokens", std::exchange(choice.tokens, {})},
                    {"stop", false},
                    {"id_slot", options_.id_slot},
                    {"tokens_predicted", choice.predicted},
                    {"tokens_evaluated", options_.prompt_tokens.at(index)}};
  if (!choice.probs.empty()) part["completion_probabilities"] = std::exchange(choice.probs, {});
  return part;
}

// By the clock here, as the engine counts its own only at the end.
json::object LlamaAnswer::TimingsSoFar(const Choice& choice, size_t index) const {
  const auto seconds = [](Clock::duration d) { return std::chrono::duration<double>(d).count(); };
  SequenceStats stats;
  stats.prompt_tokens = options_.prompt_tokens[index];
  stats.cached_tokens = choice.cached;
  stats.generated_tokens = choice.predicted;
  stats.decode_passes = choice.predicted - std::min<size_t>(choice.predicted, 1);
  stats.prefill_s = seconds(choice.first_token - started_);
  stats.decode_s = seconds(Clock::now() - choice.first_token);
  return Timings(stats);
}

void LlamaAnswer::OnPrefill(size_t index, size_t processed, size_t cached, size_t total) {
  choices_.at(index).cached = cached;
  if (!options_.stream || !options_.return_progress) return;
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - started_);
  json::object event = Part(index, "");
  event["prompt_progress"] = json::object{
      {"total", total}, {"cache", cached}, {"processed", processed}, {"time_ms", ms.count()}};
  WriteEvent(event);
}

void LlamaAnswer::WriteEvent(const json::object& event) {
  if (!streaming_) {
    exchange_->StartStream(200, "text/event-stream",
                           {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}});
  }
  streaming_ = true;
  exchange_->Write("data: " + ToJson(event) + "\n\n");
}

json::object LlamaAnswer::Last(const ChoiceEnd& end) {
  Choice& choice = choices_[end.choice];
  const bool out_of_time = options_.out_of_time != nullptr && options_.out_of_time->load();
  json::object last = Part(end.choice, std::move(choice.content));
  last["stop"] = true;
  last["model"] = options_.model;
  last["tokens_predicted"] = end.stats.generated_tokens;
  last["tokens_evaluated"] = end.stats.prompt_tokens;
  last["generation_settings"] = options_.settings;
  last["prompt"] = options_.prompts[end.choice];
  last["has_new_line"] = choice.new_line;
  last["truncated"] = false;  // prompts are never cut here
  last["stop_type"] = StopType(end, out_of_time);
  last["stopping_word"] = end.stop_text;
  last["tokens_cached"] = end.stats.cached_tokens;
  json::object timings = Timings(end.stats, end.diverged_text);
  if (options_.ceiling || AsksForCeiling(exchange_->request())) {
    timings["ceiling"] = CeilingJson(end.stats.work);
  }
  last["timings"] = std::move(timings);
  return options_.response_fields.empty() ? last : SelectFields(last, options_.response_fields);
}

void LlamaAnswer::OnEnd(const ChoiceEnd& end) {
  if (end.choice >= choices_.size() || left_ == 0) return;
  json::object last = Last(end);
  --left_;
  if (options_.stream) {
    WriteEvent(last);
    if (left_ == 0) exchange_->End();
    return;
  }
  ended_[end.choice] = std::move(last);
  if (left_ > 0) return;
  HttpResponse response;
  if (ended_.size() == 1) {
    response.body = ToJson(ended_[0]);
  } else {
    json::array all;
    for (json::object& one : ended_) all.push_back(std::move(one));
    response.body = ToJson(all);
  }
  exchange_->Respond(std::move(response));
}

void LlamaAnswer::OnError(const Status& status) {
  if (!streaming_) return RespondLlamaError(*exchange_, status);
  exchange_->Write("data: " + ToJson(json::object{{"error", LlamaError(500, status.message())}}) +
                   "\n\n");
  exchange_->End();
}

}  // namespace sluice
