// Looks at the server again and again on a thread of its own, so that the keys
// work while a server hangs. Made and asked by the thread that draws.
#ifndef SLUICE_CLI_TOP_POLLER_H_
#define SLUICE_CLI_TOP_POLLER_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cli/top/client.h"

namespace sluice::top {

class Poller {
 public:
  Poller(std::unique_ptr<Client> client, double interval_s);
  ~Poller();  // ends a request that is on its way

  std::optional<Scrape> Take();              // the newest look, once
  std::optional<std::string> TakeMessage();  // what came of a Cancel, once
  void Cancel(std::string request_id);
  void Set(double interval_s, bool paused);

 private:
  void Run();

  const std::unique_ptr<Client> client_;  // its thread's, but for Stop
  std::mutex mutex_;
  std::condition_variable wake_;
  // All guarded by mutex_.
  double interval_s_;
  bool paused_ = false, stop_ = false, look_now_ = true;
  std::vector<std::string> cancels_;
  std::optional<Scrape> scrape_;
  std::optional<std::string> message_;
  std::thread thread_;
};

}  // namespace sluice::top
#endif  // SLUICE_CLI_TOP_POLLER_H_
