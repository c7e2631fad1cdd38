// Before any load: is there a server, which API does it speak, which model has it, does it take
// token ids, and how many tokens are its words. Used by `sluice load`; one thread.
#ifndef SLUICE_SRC_LOAD_PROBE_H_
#define SLUICE_SRC_LOAD_PROBE_H_

#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"
#include "src/load/client.h"
#include "src/load/prompts.h"

namespace sluice::load {

struct ProbeResult {
  RequestOptions request;
  PromptForm form;
  std::vector<std::string> notes;  // what is not as it was asked for, in words
};

// `dialect`: nothing: found out (/v1/models, then /api/tags, then /health). `wanted`: the model
// (empty: the server's first), and how requests are to be made. Sends a few requests of one output
// token. Error: nobody answers, or the server refuses even a plain request; one line says which.
Result<ProbeResult> Probe(Client& client, std::optional<Dialect> dialect, RequestOptions wanted);

}  // namespace sluice::load
#endif  // SLUICE_SRC_LOAD_PROBE_H_
