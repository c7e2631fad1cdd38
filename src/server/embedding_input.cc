// Reading inputs and writing vectors: what the dialects' embeddings share.
#include <openssl/evp.h>

#include <algorithm>
#include <bit>
#include <boost/json/array.hpp>
#include <optional>

#include "src/server/embedding.h"
#include "src/server/fields.h"

namespace sluice {

namespace json = boost::json;

namespace {

constexpr size_t kMostInputs = 2048;  // OpenAI's

Status Refuse(std::string_view key, const std::string& what) {
  return Status(StatusCode::kInvalidArgument, std::string(key) + ": " + what);
}

Result<std::vector<int32_t>> ReadIds(const json::array& array, const ServedModel& model,
                                     std::string_view key) {
  const size_t vocab = std::min(model.vocab(), model.tokenizer().vocab_size());
  std::vector<int32_t> ids;
  for (const json::value& id : array) {
    const bool known =
        id.is_int64() && id.get_int64() >= 0 && static_cast<size_t>(id.get_int64()) < vocab;
    if (!known) {
      return Refuse(key, "expected token ids from 0 to " + std::to_string(vocab - 1) + ", found " +
                             ToJson(id).substr(0, 40));
    }
    ids.push_back(static_cast<int32_t>(id.get_int64()));
  }
  return ids;
}

Result<std::vector<int32_t>> ReadInput(const json::value& value, const ServedModel& model,
                                       std::string_view key) {
  std::vector<int32_t> ids;
  if (value.is_string()) {
    ids = EncodeInput(model, value.get_string());
  } else if (const json::array* array = value.if_array()) {
    ASSIGN_OR_RETURN(ids, ReadIds(*array, model, key));
  } else {
    return Refuse(key, "expected a text, token ids, or a list of these");
  }
  if (ids.empty()) return Refuse(key, "expected at least one token, found an empty one");
  return ids;
}

}  // namespace

Result<Pooling> PoolingOfTexts(const ServedModel& model) {
  if (model.pooling() != Pooling::kNone) return model.pooling();
  return Status(StatusCode::kInvalidArgument,
                "pooling none gives a vector for each token, which only /embeddings answers with; "
                "for one of a whole text start with --pooling last or mean");
}

std::vector<int32_t> EncodeInput(const ServedModel& model, std::string_view text) {
  std::vector<int32_t> ids =
      model.tokenizer().Encode(text, {.add_special = true, .parse_special = true});
  // A text that writes BOS itself does not get another.
  const std::optional<int32_t> bos = model.tokenizer().bos();
  if (bos && ids.size() > 1 && ids[0] == *bos && ids[1] == *bos) ids.erase(ids.begin());
  return ids;
}

Result<std::vector<std::vector<int32_t>>> ReadInputs(const json::value& value,
                                                     const ServedModel& model,
                                                     std::string_view key) {
  std::vector<std::vector<int32_t>> inputs;
  const json::array* list = value.if_array();
  if (list == nullptr || (!list->empty() && list->front().is_number())) {
    ASSIGN_OR_RETURN(std::vector<int32_t> ids, ReadInput(value, model, key));
    inputs.push_back(std::move(ids));
    return inputs;
  }
  if (list->empty() || list->size() > kMostInputs) {
    return Refuse(key, "expected 1 to " + std::to_string(kMostInputs) + " inputs, found " +
                           std::to_string(list->size()));
  }
  for (size_t i = 0; i < list->size(); ++i) {
    ASSIGN_OR_RETURN(
        std::vector<int32_t> ids,
        ReadInput((*list)[i], model, std::string(key) + "[" + std::to_string(i) + "]"));
    inputs.push_back(std::move(ids));
  }
  return inputs;
}

std::string JsonArray(std::span<const float> values) {
  std::string text = "[";
  for (const float value : values) {
    if (text.size() > 1) text += ',';
    AppendJson(value, &text);
  }
  return text + "]";
}

std::string Base64(std::span<const float> values) {
  static_assert(std::endian::native == std::endian::little);
  const size_t bytes = values.size_bytes();
  std::string text((bytes + 2) / 3 * 4 + 1, '\0');  // and the final zero that it writes
  EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                  reinterpret_cast<const unsigned char*>(values.data()), static_cast<int>(bytes));
  text.pop_back();
  return text;
}

}  // namespace sluice
