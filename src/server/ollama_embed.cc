#include "src/server/ollama_embed.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <utility>

#include "src/server/fields.h"
#include "src/server/ollama_reply.h"

namespace sluice {

namespace json = boost::json;

namespace {

class OllamaEmbeddings : public EmbeddingAnswer {
 public:
  OllamaEmbeddings(std::string model, const OllamaEmbedTimes& times)
      : model_(std::move(model)), times_(times) {}

  std::string Entry(size_t, std::span<const float> vectors, size_t) const override {
    return JsonArray(vectors);
  }
  std::string Body(const std::string& entries, size_t prompt_tokens) const override {
    const std::chrono::duration<double> total = std::chrono::steady_clock::now() - times_.started;
    const json::object rest{{"total_duration", Nanoseconds(total.count())},
                            {"load_duration", Nanoseconds(times_.load_s)},
                            {"prompt_eval_count", prompt_tokens}};
    return R"({"model":)" + ToJson(json::string(model_)) + R"(,"embeddings":[)" + entries + "]," +
           ToJson(rest).substr(1);
  }
  void Fail(Exchange& exchange, const Status& status) const override {
    RespondOllamaError(exchange, status);
  }

 private:
  const std::string model_;
  const OllamaEmbedTimes times_;
};

class OllamaOldEmbedding : public EmbeddingAnswer {
 public:
  std::string Entry(size_t, std::span<const float> vectors, size_t) const override {
    return JsonArray(vectors);
  }
  std::string Body(const std::string& entries, size_t) const override {
    return R"({"embedding":)" + (entries.empty() ? "[]" : entries) + "}";
  }
  void Fail(Exchange& exchange, const Status& status) const override {
    RespondOllamaError(exchange, status);
  }
};

// Most tokens of an input: the context, or the smaller one that the request asks for.
Result<size_t> MostTokens(const ServedModel& model, Fields& fields) {
  const size_t most = std::min(model.context(), model.runner().MostPositions());
  const json::object* options = fields.Object("options");
  RETURN_IF_ERROR(fields.status());
  if (options == nullptr) return most;
  Fields inner(*options);
  const auto asked = static_cast<size_t>(inner.Int("num_ctx", 0, 0, INT32_MAX));
  RETURN_IF_ERROR(inner.status().Within("options"));
  return asked == 0 ? most : std::min(most, asked);
}

// The end goes, but for the token that the model's own tokenizer puts there.
void Cut(const ServedModel& model, size_t most, std::vector<int32_t>* ids) {
  const int32_t last = ids->back();
  ids->resize(most);
  if (most > 1 && model.tokenizer().eos() == last) ids->back() = last;
}

}  // namespace

Result<OllamaEmbedRequest> ReadOllamaEmbed(const ServedModel& model, const json::object& body,
                                           bool old, const std::string& name,
                                           const OllamaEmbedTimes& times) {
  Fields fields(body);
  const char* const key = old ? "prompt" : "input";
  const std::vector<std::string> texts = fields.Strings(key, 100000);
  const bool truncate = fields.Bool("truncate", true);
  OllamaEmbedRequest request;
  EmbeddingCall& call = request.call;
  // 0 is all of them, as in Ollama.
  call.dimensions =
      static_cast<size_t>(fields.Int("dimensions", 0, 0, static_cast<int64_t>(model.config().dim)));
  RETURN_IF_ERROR(fields.status());
  ASSIGN_OR_RETURN(const size_t most, MostTokens(model, fields));
  ASSIGN_OR_RETURN(call.pooling, PoolingOfTexts(model));
  if (old) {
    call.norm = -1;
    request.answer = std::make_shared<OllamaOldEmbedding>();
  } else {
    request.answer = std::make_shared<OllamaEmbeddings>(name, times);
  }
  const json::value* given = fields.Find(key);
  if (given == nullptr || (given->is_string() && texts.front().empty())) return request;
  for (size_t i = 0; i < texts.size(); ++i) {
    std::vector<int32_t> ids = EncodeInput(model, texts[i]);
    const std::string where = std::string(key) + "[" + std::to_string(i) + "]";
    if (ids.empty()) {
      return Status(StatusCode::kInvalidArgument,
                    where + ": expected at least one token, found an empty text");
    }
    if (ids.size() > most) {
      if (!truncate) {
        return Status(StatusCode::kTooLong, where +
                                                ": the input length exceeds the context length: "
                                                "it has " +
                                                std::to_string(ids.size()) +
                                                " tokens, the context holds " +
                                                std::to_string(most));
      }
      Cut(model, most, &ids);
    }
    call.inputs.push_back(std::move(ids));
  }
  return request;
}

}  // namespace sluice
