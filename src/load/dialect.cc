#include "src/load/dialect.h"

#include <utility>

#include "src/base/printable.h"
#include "src/load/events.h"

namespace sluice::load {

namespace json = boost::json;

namespace {

constexpr size_t kMostErrorBytes = 160;

const char* PathOf(Dialect dialect) {
  switch (dialect) {
    case Dialect::kOpenAi:
      return "/v1/completions";
    case Dialect::kOpenAiChat:
      return "/v1/chat/completions";
    case Dialect::kOllama:
      return "/api/generate";
    case Dialect::kLlama:
      return "/completion";
  }
  return "";
}

json::value PromptValue(const LoadPrompt& prompt) {
  if (prompt.ids.empty()) return json::value(prompt.text);
  return json::array(prompt.ids.begin(), prompt.ids.end());
}

const json::value* Member(const json::value& v, std::string_view name) {
  const json::object* o = v.if_object();
  return o == nullptr ? nullptr : o->if_contains(name);
}

// A number of tokens; anything else is none.
void ReadCount(const json::value& v, std::string_view name, size_t* out) {
  const json::value* found = Member(v, name);
  if (found == nullptr || !found->is_int64() || found->get_int64() < 0) return;
  *out = static_cast<size_t>(found->get_int64());
}

bool HasText(const json::value* v) {
  return v != nullptr && v->is_string() && !v->get_string().empty();
}

// What one event says; counts go into the sample.
struct Meaning {
  bool text = false, end = false;
  std::string error;
};

std::string MessageIn(const json::value& v) {
  const json::value* error = Member(v, "error");
  if (error == nullptr || error->is_null()) return "";
  if (error->is_string()) return std::string(error->get_string());
  const json::value* message = Member(*error, "message");
  return message != nullptr && message->is_string() ? std::string(message->get_string())
                                                    : json::serialize(*error);
}

Meaning ReadOpenAi(const json::value& v, LoadSample* sample) {
  Meaning m;
  if (const json::value* usage = Member(v, "usage"); usage != nullptr && usage->is_object()) {
    sample->counted |= Member(*usage, "completion_tokens") != nullptr;
    ReadCount(*usage, "prompt_tokens", &sample->prompt_tokens);
    ReadCount(*usage, "completion_tokens", &sample->output_tokens);
    if (const json::value* details = Member(*usage, "prompt_tokens_details")) {
      ReadCount(*details, "cached_tokens", &sample->cached_tokens);
    }
  }
  const json::value* choices = Member(v, "choices");
  if (choices == nullptr || !choices->is_array()) return m;
  for (const json::value& choice : choices->get_array()) {
    m.text |= HasText(Member(choice, "text"));
    if (const json::value* delta = Member(choice, "delta")) {
      m.text |= HasText(Member(*delta, "content")) || HasText(Member(*delta, "reasoning")) ||
                HasText(Member(*delta, "reasoning_content"));
    }
    const json::value* reason = Member(choice, "finish_reason");
    m.end |= reason != nullptr && !reason->is_null();
  }
  return m;
}

Meaning ReadOllama(const json::value& v, LoadSample* sample) {
  Meaning m;
  m.text = HasText(Member(v, "response")) || HasText(Member(v, "thinking"));
  if (const json::value* done = Member(v, "done")) m.end = done->is_bool() && done->get_bool();
  sample->counted |= Member(v, "eval_count") != nullptr;
  ReadCount(v, "prompt_eval_count", &sample->prompt_tokens);
  ReadCount(v, "prompt_cached_count", &sample->cached_tokens);
  ReadCount(v, "eval_count", &sample->output_tokens);
  return m;
}

Meaning ReadLlama(const json::value& v, LoadSample* sample) {
  Meaning m;
  m.text = HasText(Member(v, "content"));
  if (const json::value* stop = Member(v, "stop")) m.end = stop->is_bool() && stop->get_bool();
  sample->counted |= Member(v, "tokens_predicted") != nullptr;
  ReadCount(v, "tokens_predicted", &sample->output_tokens);
  ReadCount(v, "tokens_evaluated", &sample->prompt_tokens);
  if (const json::value* timings = Member(v, "timings")) {
    ReadCount(*timings, "cache_n", &sample->cached_tokens);
  }
  return m;
}

Meaning ReadEvent(Dialect dialect, const json::value& v, LoadSample* sample) {
  Meaning m;
  switch (dialect) {
    case Dialect::kOpenAi:
    case Dialect::kOpenAiChat:
      m = ReadOpenAi(v, sample);
      break;
    case Dialect::kOllama:
      m = ReadOllama(v, sample);
      break;
    case Dialect::kLlama:
      m = ReadLlama(v, sample);
      break;
  }
  m.error = MessageIn(v);
  return m;
}

void Fail(LoadSample* sample, std::string kind, std::string detail) {
  sample->error = std::move(kind);
  sample->detail = Printable(detail, kMostErrorBytes);
}

}  // namespace

const char* DialectName(Dialect dialect) {
  switch (dialect) {
    case Dialect::kOpenAi:
      return "openai";
    case Dialect::kOpenAiChat:
      return "openai-chat";
    case Dialect::kOllama:
      return "ollama";
    case Dialect::kLlama:
      return "llama";
  }
  return "";
}

LoadRequest MakeRequest(const RequestOptions& options, const LoadPrompt& prompt) {
  json::object body;
  if (!options.model.empty()) body["model"] = options.model;
  body["stream"] = true;
  if (options.dialect == Dialect::kOllama) {
    body["prompt"] = prompt.text;
    body["raw"] = true;  // no template around it, so that its length is ours
    json::object more{{"num_predict", prompt.output_tokens}, {"temperature", options.temperature}};
    if (options.ignore_eos) more["ignore_eos"] = true;
    body["options"] = std::move(more);
  } else {
    body["temperature"] = options.temperature;
    if (options.ignore_eos) body["ignore_eos"] = true;
    if (options.dialect == Dialect::kLlama) {
      body["prompt"] = PromptValue(prompt);
      body["n_predict"] = prompt.output_tokens;
      body["cache_prompt"] = true;
    } else {
      body["max_tokens"] = prompt.output_tokens;
      body["stream_options"] = json::object{{"include_usage", true}};
      if (options.dialect == Dialect::kOpenAi) {
        body["prompt"] = PromptValue(prompt);
      } else if (!prompt.messages.empty()) {
        body["messages"] = prompt.messages;
      } else {
        body["messages"] = json::array{json::object{{"role", "user"}, {"content", prompt.text}}};
      }
    }
  }
  for (const auto& [key, value] : options.extra) body[key] = value;
  return {"POST", PathOf(options.dialect), json::serialize(body)};
}

std::string ErrorMessage(const std::string& body) {
  boost::system::error_code error;
  const json::value v = json::parse(body, error);
  const std::string message = error ? "" : MessageIn(v);
  return Printable(message.empty() ? body : message, kMostErrorBytes);
}

LoadSample ReadAnswer(Dialect dialect, LoadClock::time_point begin, const Reply& reply) {
  const auto seconds = [&](LoadClock::time_point at) {
    return std::chrono::duration<double>(at - begin).count();
  };
  LoadSample sample;
  sample.sent_s = seconds(reply.sent);
  sample.end_s = seconds(reply.end);
  if (reply.error.empty() && reply.status != 200) {
    Fail(&sample, "http " + std::to_string(reply.status), ErrorMessage(reply.Text()));
    return sample;
  }
  const bool lines = reply.content_type.find("event-stream") == std::string::npos;
  EventSplitter splitter(lines ? Framing::kLines : Framing::kServerSent);
  for (const StampedBytes& piece : reply.body) splitter.Feed(piece.at, piece.bytes);
  splitter.End();
  bool ended = false;
  for (const StreamEvent& event : splitter.events()) {
    if (event.data == "[DONE]") {
      ended = true;
      continue;
    }
    boost::system::error_code error;
    const json::value v = json::parse(event.data, error);
    if (error || !v.is_object()) {
      // What was cut off may end within an event.
      if (reply.error.empty()) Fail(&sample, "not understood", event.data);
      break;
    }
    const Meaning m = ReadEvent(dialect, v, &sample);
    if (m.text) sample.text_s.push_back(seconds(event.at));
    ended |= m.end;
    if (!m.error.empty()) {
      Fail(&sample, "error in the stream", m.error);
      break;
    }
  }
  if (!sample.counted) sample.output_tokens = sample.text_s.size();
  if (!reply.error.empty()) {
    Fail(&sample, reply.error, reply.detail);
  } else if (sample.ok() && !ended) {
    Fail(&sample, "cut off", "the stream ended without its last event");
  } else if (sample.ok() && sample.text_s.empty()) {
    Fail(&sample, "no text", "the answer is whole, and no event of it carries text");
  }
  return sample;
}

}  // namespace sluice::load
