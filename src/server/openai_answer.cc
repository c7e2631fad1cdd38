#include "src/server/openai_answer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/server/fields.h"
#include "src/server/http_server.h"
#include "src/server/openai_prompt_logprobs.h"
#include "src/server/timings.h"
#include "src/text/unicode.h"

namespace sluice {
namespace {

namespace json = boost::json;

const char* ErrorCode(StatusCode code) {
  switch (code) {
    case StatusCode::kNotFound:
      return "model_not_found";
    case StatusCode::kTooLong:
      return "context_length_exceeded";
    case StatusCode::kBusy:
      return "rate_limit_exceeded";
    default:
      return "";
  }
}

}  // namespace

HttpResponse OpenAiError(const Status& status, std::string_view param, int retry_after_s) {
  HttpResponse response;
  // A 501 would make clients try again; what they asked for is never going to be there.
  const bool unsupported = status.code() == StatusCode::kUnsupported;
  response.status = unsupported ? 400 : HttpStatusOf(status);
  response.body = ErrorBody(ErrorShape::kOpenAi, response.status, status.message(), param,
                            ErrorCode(status.code()));
  if (status.code() == StatusCode::kBusy) {
    response.headers.emplace_back("Retry-After", std::to_string(std::max(1, retry_after_s)));
  }
  return response;
}

void RespondJson(Exchange& exchange, const json::value& body) {
  HttpResponse response;
  response.body = ToJson(body);
  exchange.Respond(std::move(response));
}

OpenAiAnswer::OpenAiAnswer(AnswerOptions options, std::shared_ptr<Exchange> exchange)
    : options_(std::move(options)),
      exchange_(std::move(exchange)),
      choices_(options_.prompts.size() * options_.n),
      left_(choices_.size()) {}

void OpenAiAnswer::OnToken(const TokenDelta& token) {
  Choice& choice = choices_[token.choice];
  if (token.id >= 0) {
    ++choice.tokens;
    if (options_.return_token_ids) choice.ids.push_back(token.id);
  }
  AddToken(token.choice, token);
}

void OpenAiAnswer::OnPrompt(size_t choice, const PromptLogprobs& logprobs) {
  if (options_.prompt_logprobs < 0) return;
  choices_[choice].prompt_logprobs =
      PromptLogprobsJson(logprobs, static_cast<size_t>(options_.prompt_logprobs), options_.piece);
}

void OpenAiAnswer::OnEnd(const ChoiceEnd& end) {
  Choice& choice = choices_[end.choice];
  choice.stats = end.stats;
  choice.reason = end.reason;
  choice.stop_text = end.stop_text;
  choice.diverged_text = end.diverged_text;
  if (options_.include_stop && !end.stop_text.empty()) {
    TokenDelta stop;
    stop.choice = end.choice;
    stop.text = end.stop_text;
    AddToken(end.choice, stop);
  }
  // Whoever reads echoed numbers counts them by the tokens drawn, of which this is one.
  if (options_.echo_logprobs() && end.end_token) AddToken(end.choice, *end.end_token);
  EndChoice(end.choice);
  if (--left_ > 0) return;
  options_.stream ? EndStream() : EndWhole();
}

void OpenAiAnswer::OnError(const Status& status) {
  const HttpResponse response = OpenAiError(status);
  if (!streaming_) return exchange_->Respond(response);
  SendText("data: " + response.body + "\n\n");
  exchange_->End();
}

void OpenAiAnswer::EndStream() {
  if (options_.include_usage) {
    json::object chunk = Frame(chunk_object_);
    chunk["choices"] = json::array();
    chunk["usage"] = Usage();
    chunk["timings"] = AllTimings();
    SendEvent("", chunk);
  }
  SendText("data: [DONE]\n\n");
  exchange_->End();
}

void OpenAiAnswer::EndWhole() {
  json::object body;
  FillBody(body);
  body["usage"] = Usage();
  body["timings"] = AllTimings();
  RespondJson(*exchange_, body);
}

json::object OpenAiAnswer::Frame(std::string_view object) const {
  return {{"id", options_.id},
          {"object", object},
          {"created", options_.created},
          {"model", options_.model},
          {"system_fingerprint", options_.fingerprint}};
}

void OpenAiAnswer::SendChunk(std::string_view object, json::array choices, size_t choice,
                             bool last) {
  json::object chunk = Frame(object);
  chunk["choices"] = std::move(choices);
  if (options_.continuous_usage) {
    chunk["usage"] = UsageOf(choice);
  } else if (options_.include_usage) {
    chunk["usage"] = nullptr;
  }
  if (last && !options_.include_usage) chunk["timings"] = AllTimings();
  SendEvent("", chunk);
}

void OpenAiAnswer::SendEvent(std::string_view name, const json::value& data) {
  std::string event;
  if (!name.empty()) event.append("event: ").append(name).append("\n");
  SendText(event + "data: " + ToJson(data) + "\n\n");
}

void OpenAiAnswer::SendText(std::string event) {
  if (!std::exchange(streaming_, true)) {
    exchange_->StartStream(200, "text/event-stream",
                           {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}});
  }
  exchange_->Write(std::move(event));
}

// So far, of one choice.
json::object OpenAiAnswer::UsageOf(size_t choice) const {
  const size_t prompt = options_.prompts[choice / options_.n].size();
  const size_t tokens = choices_[choice].tokens;
  return {
      {"prompt_tokens", prompt}, {"completion_tokens", tokens}, {"total_tokens", prompt + tokens}};
}

json::object OpenAiAnswer::Usage() const {
  size_t prompt = 0, cached = 0, generated = 0, reasoning = 0;
  for (size_t i = 0; i < choices_.size(); ++i) {
    const Choice& c = choices_[i];
    generated += c.tokens;
    reasoning += c.reasoning_tokens;
    if (i % options_.n != 0) continue;  // a prompt counts once
    prompt += options_.prompts[i / options_.n].size();
    cached += c.stats.cached_tokens;
  }
  json::object usage = {{"prompt_tokens", prompt},
                        {"completion_tokens", generated},
                        {"total_tokens", prompt + generated},
                        {"prompt_tokens_details", {{"cached_tokens", cached}}}};
  if (reasoning > 0) usage["completion_tokens_details"] = {{"reasoning_tokens", reasoning}};
  return usage;
}

json::object OpenAiAnswer::AllTimings() const {
  SequenceStats sum;
  std::string diverged;
  for (const Choice& c : choices_) {
    AddStats(c.stats, &sum);
    diverged = c.diverged_text;
  }
  json::object timings = Timings(sum, diverged);
  if (options_.ceiling || AsksForCeiling(exchange_->request())) {
    timings["ceiling"] = CeilingJson(sum.work);
  }
  return timings;
}

const char* OpenAiAnswer::FinishName(size_t i, bool called_tools) const {
  const FinishReason reason = choices_[i].reason;
  if (reason == FinishReason::kCancelled) return "abort";
  if (reason == FinishReason::kStop && called_tools) return "tool_calls";
  return FinishReasonName(reason);
}

std::string ShownPiece(const std::string& piece) { return ReplaceBadUtf8(piece); }

double ShownLogprob(float logprob) {
  return std::isfinite(logprob) ? static_cast<double>(logprob) : -9999.0;
}

}  // namespace sluice
