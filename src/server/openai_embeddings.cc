#include "src/server/openai_embeddings.h"

#include <utility>

#include "src/server/fields.h"
#include "src/server/openai_answer.h"

namespace sluice {

namespace json = boost::json;

namespace {

class OpenAiEmbeddings : public EmbeddingAnswer {
 public:
  OpenAiEmbeddings(std::string model, bool base64) : model_(std::move(model)), base64_(base64) {}

  std::string Entry(size_t input, std::span<const float> vectors, size_t) const override {
    const std::string values = base64_ ? '"' + Base64(vectors) + '"' : JsonArray(vectors);
    return R"({"object":"embedding","index":)" + std::to_string(input) + R"(,"embedding":)" +
           values + "}";
  }
  std::string Body(const std::string& entries, size_t prompt_tokens) const override {
    const json::object usage{{"prompt_tokens", prompt_tokens}, {"total_tokens", prompt_tokens}};
    return R"({"object":"list","data":[)" + entries + R"(],"model":)" +
           ToJson(json::string(model_)) + R"(,"usage":)" + ToJson(usage) + "}";
  }
  void Fail(Exchange& exchange, const Status& status) const override {
    exchange.Respond(OpenAiError(status));
  }

 private:
  const std::string model_;
  const bool base64_;
};

// OpenAI has no vector for an empty text, where models that begin texts with a token have one.
bool HasEmptyText(const json::value& input) {
  if (input.is_string()) return input.get_string().empty();
  if (!input.is_array()) return false;
  for (const json::value& one : input.get_array()) {
    if (one.is_string() && one.get_string().empty()) return true;
  }
  return false;
}

}  // namespace

Result<EmbeddingRequest> ReadOpenAiEmbeddings(const ServedModel& model, const json::object& body,
                                              const std::string& name, std::string* param) {
  Fields fields(body);
  const json::value* input = fields.Find("input");
  if (input == nullptr) {
    fields.Fail("input", "missing; expected a text, texts or token ids");
  } else if (HasEmptyText(*input)) {
    fields.Fail("input", "expected texts, found an empty one");
  }
  const std::string format = fields.String("encoding_format", "float");
  if (format != "float" && format != "base64") {
    fields.Fail("encoding_format", "expected float or base64");
  }
  EmbeddingRequest request;
  request.call.dimensions =
      static_cast<size_t>(fields.Int("dimensions", 0, 1, static_cast<int64_t>(model.config().dim)));
  *param = fields.param();
  RETURN_IF_ERROR(fields.status());
  ASSIGN_OR_RETURN(request.call.pooling, PoolingOfTexts(model));
  *param = "input";
  ASSIGN_OR_RETURN(request.call.inputs, ReadInputs(*input, model, "input"));
  request.answer = std::make_shared<OpenAiEmbeddings>(name, format == "base64");
  return request;
}

}  // namespace sluice
