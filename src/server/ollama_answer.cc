#include "src/server/ollama_answer.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/string.hpp>
#include <cmath>
#include <utility>

#include "src/base/printable.h"
#include "src/server/fields.h"
#include "src/server/http_server.h"
#include "src/server/ollama_reply.h"

namespace sluice {
namespace {

// Clients read numbers only, and the logarithm of 0 is none.
constexpr double kLeastLogprob = -9999;

boost::json::object LogprobJson(const std::string& piece, float logprob) {
  boost::json::array bytes;
  for (const char c : piece) bytes.push_back(static_cast<unsigned char>(c));
  return {{"token", piece},
          {"logprob", std::isfinite(logprob) ? static_cast<double>(logprob) : kLeastLogprob},
          {"bytes", std::move(bytes)}};
}

// Of something that happened `count` times; clients divide by it.
int64_t DurationOf(double seconds, size_t count) {
  const int64_t ns = Nanoseconds(seconds);
  return count > 0 ? std::max<int64_t>(ns, 1) : ns;
}

boost::json::object CountsAndTimes(const SequenceStats& stats, double total_s, double load_s) {
  const size_t computed = stats.prompt_tokens - std::min(stats.prompt_tokens, stats.cached_tokens);
  return {{"total_duration", DurationOf(total_s, 1)},
          {"load_duration", Nanoseconds(load_s)},
          {"prompt_eval_count", stats.prompt_tokens},  // all of them, cached or not
          {"prompt_cached_count", stats.cached_tokens},
          {"prompt_eval_duration", DurationOf(stats.prefill_s, computed)},
          {"eval_count", stats.generated_tokens},
          {"eval_duration", DurationOf(stats.decode_s, stats.generated_tokens)}};
}

void Append(boost::json::object* to, const boost::json::object& more) {
  for (const auto& [key, value] : more) (*to)[key] = value;
}

}  // namespace

OllamaAnswer::OllamaAnswer(std::shared_ptr<Exchange> exchange, OllamaAnswerOptions options)
    : exchange_(std::move(exchange)), options_(std::move(options)) {
  if (options_.output) output_.emplace(*options_.output);
}

void OllamaAnswer::OnToken(const TokenDelta& token) {
  if (token.id >= 0) {
    if (options_.context) generated_.push_back(token.id);
    if (options_.logprobs) AddLogprob(token);
  }
  if (output_) return Deliver(output_->Push(token.text));
  ChatDelta delta;
  delta.content = token.text;
  Deliver(std::move(delta));
}

void OllamaAnswer::AddLogprob(const TokenDelta& token) {
  boost::json::object entry = LogprobJson(token.piece, token.logprob);
  if (!token.top.empty()) {
    boost::json::array top;
    for (const TokenLogprob& t : token.top) {
      top.push_back(LogprobJson(options_.piece ? options_.piece(t.id) : "", t.logprob));
    }
    entry["top_logprobs"] = std::move(top);
  }
  logprobs_.push_back(std::move(entry));
}

void OllamaAnswer::Deliver(ChatDelta delta) {
  boost::json::array calls;
  for (ToolCallDelta& fragment : delta.tool_calls) {
    // A call is complete when the next one begins, the last one at the end.
    boost::json::array complete = TakeCalls(fragment.index, &delta.content);
    calls.insert(calls.end(), complete.begin(), complete.end());
    Call& call = calls_[fragment.index];
    call.id += fragment.id;
    call.name += fragment.name;
    call.arguments += fragment.arguments;
  }
  if (!options_.stream) {
    content_ += delta.content;
    reasoning_ += delta.reasoning;
    all_calls_.insert(all_calls_.end(), calls.begin(), calls.end());
  } else if (!delta.content.empty() || !delta.reasoning.empty() || !calls.empty()) {
    boost::json::object line =
        Line(std::move(delta.content), std::move(delta.reasoning), std::move(calls));
    line["done"] = false;
    if (!logprobs_.empty()) line["logprobs"] = std::exchange(logprobs_, {});
    WriteLine(line);
  }
}

boost::json::array OllamaAnswer::TakeCalls(size_t until, std::string* content) {
  boost::json::array complete;
  while (!calls_.empty() && calls_.begin()->first < until) {
    const Call call = std::move(calls_.begin()->second);
    calls_.erase(calls_.begin());
    boost::system::error_code error;
    const boost::json::value arguments =
        boost::json::parse(call.arguments.empty() ? "{}" : call.arguments, error);
    if (error || !arguments.is_object()) {
      // A call with made-up arguments would be worse than none.
      *content += call.name + call.arguments;
      continue;
    }
    boost::json::object function{
        {"index", calls_delivered_++}, {"name", call.name}, {"arguments", arguments}};
    boost::json::object entry{{"function", std::move(function)}};
    if (!call.id.empty()) entry["id"] = call.id;
    complete.push_back(std::move(entry));
  }
  return complete;
}

boost::json::object OllamaAnswer::Line(std::string content, std::string reasoning,
                                       boost::json::array calls) {
  boost::json::object line{{"model", options_.model},
                           {"created_at", Rfc3339(std::chrono::system_clock::now())}};
  boost::json::object message;
  boost::json::object& to = options_.chat ? message : line;
  if (options_.chat) message["role"] = "assistant";
  to[options_.chat ? "content" : "response"] = std::move(content);
  if (!reasoning.empty()) to["thinking"] = std::move(reasoning);
  if (!calls.empty()) to["tool_calls"] = std::move(calls);
  if (options_.chat) line["message"] = std::move(message);
  return line;
}

HttpHeaders OllamaAnswer::Headers() const {
  if (options_.ignored.empty()) return {};
  std::string names;
  for (const std::string& name : options_.ignored) {
    names += (names.empty() ? "" : ", ") + Printable(name, 64);
  }
  // Header values are ASCII.
  for (char& c : names) c = c < ' ' || c > '~' ? '?' : c;
  return {{"X-Ignored-Options", names}};
}

void OllamaAnswer::WriteLine(const boost::json::object& line) {
  if (!started_) {
    HttpHeaders headers = Headers();
    headers.emplace_back("X-Accel-Buffering", "no");  // proxies would keep tokens back
    exchange_->StartStream(200, "application/x-ndjson", std::move(headers));
  }
  started_ = true;
  exchange_->Write(ToJson(line) + "\n");
}

boost::json::object OllamaAnswer::Last(const ChoiceEnd& end) {
  boost::json::object line =
      Line(std::move(content_), std::move(reasoning_), std::move(all_calls_));
  line["done"] = true;
  line["done_reason"] = FinishReasonName(end.reason);
  if (options_.context) {
    boost::json::array ids(options_.prompt.begin(), options_.prompt.end());
    ids.insert(ids.end(), generated_.begin(), generated_.end());
    line["context"] = std::move(ids);
  }
  if (!logprobs_.empty()) line["logprobs"] = std::move(logprobs_);
  const std::chrono::duration<double> total = std::chrono::steady_clock::now() - options_.started;
  Append(&line, CountsAndTimes(end.stats, total.count(), options_.load_s));
  if (options_.truncated) line["truncated"] = true;
  boost::json::array warnings;
  for (const std::string& name : options_.ignored) {
    warnings.push_back(
        boost::json::string("options." + Printable(name, 64) + ": unknown, ignored"));
  }
  for (const std::string& note : options_.notes) warnings.push_back(boost::json::string(note));
  if (!warnings.empty()) line["warnings"] = std::move(warnings);
  return line;
}

void OllamaAnswer::OnEnd(const ChoiceEnd& end) {
  ChatDelta rest;
  if (output_) rest = output_->Finish();
  Deliver(std::move(rest));
  ChatDelta unfinished;
  boost::json::array calls = TakeCalls(SIZE_MAX, &unfinished.content);
  if (!calls.empty() && options_.stream) {
    boost::json::object line = Line("", "", std::move(calls));
    line["done"] = false;
    WriteLine(line);
  } else {
    all_calls_.insert(all_calls_.end(), calls.begin(), calls.end());
  }
  Deliver(std::move(unfinished));
  const boost::json::object last = Last(end);
  if (options_.stream) {
    WriteLine(last);
    exchange_->End();
    return;
  }
  HttpResponse response;
  response.body = ToJson(last);
  response.headers = Headers();
  exchange_->Respond(std::move(response));
}

void OllamaAnswer::OnError(const Status& status) {
  if (!started_) return RespondOllamaError(*exchange_, status);
  exchange_->Write(ErrorBody(ErrorShape::kOllama, 500, status.message()) + "\n");
  exchange_->End();
}

boost::json::object OllamaLoadReply(bool chat, const std::string& model, const char* done_reason,
                                    double load_s) {
  boost::json::object reply{{"model", model},
                            {"created_at", Rfc3339(std::chrono::system_clock::now())}};
  if (chat) {
    reply["message"] = boost::json::object{{"role", "assistant"}, {"content", ""}};
  } else {
    reply["response"] = "";
  }
  reply["done"] = true;
  reply["done_reason"] = done_reason;
  Append(&reply, CountsAndTimes(SequenceStats(), load_s, load_s));
  return reply;
}

}  // namespace sluice
