// The APIs that clients already speak, each a list of routes over the same
// completion calls. Called once, when the server starts.
#ifndef SLUICE_SRC_SERVER_DIALECTS_H_
#define SLUICE_SRC_SERVER_DIALECTS_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "src/server/http_server.h"
#include "src/server/served_model.h"

namespace sluice {

// What all dialects stand on. Outlives the server.
struct ServerContext {
  ModelHost* host = nullptr;
  std::string version;
  std::string models_folder;  // where /api/pull and /api/delete work
  std::vector<std::string>
      pull_command;  // program and arguments that fetch a model, before its name
  std::function<bool()> draining;
  Metrics* metrics = nullptr;
  std::function<HttpCounters()> http;  // of the server itself
};

std::vector<Route> OpenAiRoutes(const ServerContext& context);   // /v1/..., and vLLM's extras
std::vector<Route> OllamaRoutes(const ServerContext& context);   // /api/...
std::vector<Route> LlamaRoutes(const ServerContext& context);    // llama-server's own
std::vector<Route> MetricsRoutes(const ServerContext& context);  // /metrics

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_DIALECTS_H_
