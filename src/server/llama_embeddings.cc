#include "src/server/llama_embeddings.h"

#include <algorithm>
#include <utility>

#include "src/server/fields.h"
#include "src/server/llama_reply.h"

namespace sluice {

namespace json = boost::json;

namespace {

constexpr int64_t kMostNorm = 1024;

class LlamaEmbeddings : public EmbeddingAnswer {
 public:
  explicit LlamaEmbeddings(bool base64) : base64_(base64) {}

  std::string Entry(size_t input, std::span<const float> vectors, size_t dim) const override {
    std::string rows;
    for (size_t at = 0; at < vectors.size(); at += dim) {
      const auto row = vectors.subspan(at, dim);
      if (at > 0) rows += ',';
      rows += base64_ ? '"' + Base64(row) + '"' : JsonArray(row);
    }
    return R"({"index":)" + std::to_string(input) + R"(,"embedding":[)" + rows + "]}";
  }
  std::string Body(const std::string& entries, size_t) const override {
    return "[" + entries + "]";
  }
  void Fail(Exchange& exchange, const Status& status) const override {
    RespondLlamaError(exchange, status);
  }

 private:
  const bool base64_;
};

}  // namespace

Status EmbedForLlama(std::shared_ptr<ServedModel> model, const json::object& body,
                     std::shared_ptr<Exchange> exchange) {
  Fields fields(body);
  const char* const key = fields.Has("input") ? "input" : "content";
  const json::value* input = fields.Find(key);
  if (input == nullptr) fields.Fail("content", "missing; expected a text, texts or token ids");
  const std::string format = fields.String("encoding_format", "float");
  if (format != "float" && format != "base64") {
    fields.Fail("encoding_format", "expected float or base64");
  }
  EmbeddingCall call;
  call.pooling = model->pooling();
  call.norm = static_cast<int>(fields.Int("embd_normalize", 2, -1, kMostNorm));
  call.dimensions = static_cast<size_t>(
      fields.Int("dimensions", 0, 1, static_cast<int64_t>(model->config().dim)));
  RETURN_IF_ERROR(fields.status());
  ASSIGN_OR_RETURN(call.inputs, ReadInputs(*input, *model, key));
  size_t longest = 0;
  for (const std::vector<int32_t>& ids : call.inputs) longest = std::max(longest, ids.size());
  const Status refused = Embed(model, std::move(call), exchange,
                               std::make_shared<LlamaEmbeddings>(format == "base64"));
  if (refused.code() == StatusCode::kTooLong) {
    RespondLlamaTooLong(*exchange, refused, longest, model->context());
    return Status();
  }
  if (refused.code() != StatusCode::kBusy) return refused;
  RespondLlamaError(*exchange, refused, model->engine().RetryAfterSeconds());
  return Status();
}

}  // namespace sluice
