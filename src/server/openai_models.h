// What clients ask about models, and the texts of tokens: GET /v1/models, POST
// /tokenize and /detokenize. Request threads.
#ifndef SLUICE_SRC_SERVER_OPENAI_MODELS_H_
#define SLUICE_SRC_SERVER_OPENAI_MODELS_H_

#include <boost/json/object.hpp>
#include <memory>
#include <string>

#include "src/base/status.h"
#include "src/server/served_model.h"

namespace sluice {

boost::json::object ListModels(const ModelHost& host);
// kNotFound: no model of this name.
Result<boost::json::object> DescribeModel(const ModelHost& host, const std::string& name);

// In the dialect that the keys tell: "content" is llama-server's, "prompt" and "messages" vLLM's.
Result<boost::json::object> Tokenize(const ServedModel& model, const boost::json::object& body,
                                     std::string* param);
Result<boost::json::object> Detokenize(const ServedModel& model, const boost::json::object& body,
                                       std::string* param);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_OPENAI_MODELS_H_
