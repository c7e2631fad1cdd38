// What every dialect's request for embeddings becomes, and how the answer comes
// back: as with completions, a dialect's file reads its JSON into a call and
// writes what it gets; nothing else differs between them.
#ifndef SLUICE_SRC_SERVER_EMBEDDING_H_
#define SLUICE_SRC_SERVER_EMBEDDING_H_

#include <boost/json/value.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/model/pooling.h"
#include "src/server/exchange.h"
#include "src/server/served_model.h"

namespace sluice {

struct EmbeddingCall {
  std::vector<std::vector<int32_t>> inputs;  // ids; at least one input, none of them empty
  Pooling pooling = Pooling::kLast;
  int norm = 2;           // see Normalize; of Pooling::kNone nothing is scaled
  size_t dimensions = 0;  // the first so many values, scaled anew (Matryoshka); 0: all
};

// How a dialect writes an answer. On the I/O thread.
class EmbeddingAnswer {
 public:
  virtual ~EmbeddingAnswer() = default;
  // The JSON of one input's vectors, one after the other, each of `dim` values.
  virtual std::string Entry(size_t input, std::span<const float> vectors, size_t dim) const = 0;
  // The body around all entries, which are separated by commas.
  virtual std::string Body(const std::string& entries, size_t prompt_tokens) const = 0;
  // Something went wrong after the start.
  virtual void Fail(Exchange& exchange, const Status& status) const = 0;
};

// Starts the call: kTooLong (an input can never fit, with both numbers), kInvalidArgument, kBusy.
// Its inputs run together with everything else, as many at once as there may be sequences. Any
// thread.
Status Embed(std::shared_ptr<ServedModel> model, EmbeddingCall call,
             std::shared_ptr<Exchange> exchange, std::shared_ptr<const EmbeddingAnswer> answer);

// The model's pooling; kInvalidArgument: it gives no vector for a text.
Result<Pooling> PoolingOfTexts(const ServedModel& model);

// Ids of the inputs of `value`: a text, ids, or a list of texts and of lists of ids. `key` names
// the field in errors.
Result<std::vector<std::vector<int32_t>>> ReadInputs(const boost::json::value& value,
                                                     const ServedModel& model,
                                                     std::string_view key);
// A text's ids; what looks like a control token is one, as the model's own tools have it.
std::vector<int32_t> EncodeInput(const ServedModel& model, std::string_view text);

// "[0.5,-1.0]".
std::string JsonArray(std::span<const float> values);
// The values as little-endian 32-bit floats, in base64.
std::string Base64(std::span<const float> values);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_EMBEDDING_H_
