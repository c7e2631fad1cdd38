// /api/pull: fetches models by a program of its own, each on a thread of its
// own, and tells the client how far it is. Ends with the server.
#ifndef SLUICE_SRC_SERVER_OLLAMA_PULL_H_
#define SLUICE_SRC_SERVER_OLLAMA_PULL_H_

#include <boost/json/object.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "src/base/status.h"
#include "src/server/exchange.h"
#include "src/server/ollama_pull_process.h"

namespace sluice {

// The argument of `sluice pull` for a name as Ollama's clients write them: "hf.co/owner/repo:quant"
// is "hf:owner/repo:quant", ":latest" says nothing.
Result<std::string> PullArgument(std::string_view name);

// What one line of the program's output says to the client. Lines of JSON with `completed` and
// `total` are progress; others are words. `folder`: the model folder, which clients do not learn.
boost::json::object PullStatus(std::string_view line, const std::string& argument,
                               const std::string& folder);

class PullJobs {
 public:
  // `command`: program and arguments before the model.
  PullJobs(std::vector<std::string> command, std::string folder);
  ~PullJobs();  // kills what runs

  // Answers the exchange, now or later. kBusy: enough run already.
  Status Start(const std::string& argument, bool stream, std::shared_ptr<Exchange> exchange);

 private:
  struct Job {
    std::thread thread;
    std::shared_ptr<PullProcess> process;
    bool done = false;
  };
  void Run(Job* job, const std::string& argument, bool stream,
           const std::shared_ptr<Exchange>& exchange);
  void JoinDone();

  const std::vector<std::string> command_;
  const std::string folder_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Job>> jobs_;  // guarded by mutex_, like Job::done
};

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_OLLAMA_PULL_H_
