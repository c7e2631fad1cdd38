// Sends the load and measures. In an open loop requests go out when they are due, whatever became
// of those before; in a closed loop a number of clients each send the next one when their last is
// answered. One thread: the caller's.
#ifndef SLUICE_SRC_LOAD_GENERATOR_H_
#define SLUICE_SRC_LOAD_GENERATOR_H_

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "src/load/arrivals.h"
#include "src/load/client.h"
#include "src/load/prompts.h"
#include "src/load/sample.h"

namespace sluice::load {

struct RunProgress {
  size_t sent = 0, ended = 0, failed = 0, running = 0;
  uint64_t output_tokens = 0;
  double seconds = 0;
};

struct LoadRun {
  // Open: due times come from `arrivals`, and no more than `clients` requests are in flight (0: as
  // many as there are); one that waits for its turn is late from its due time on. Closed: `clients`
  // send one after the other; a request is due when its client is free.
  bool open = false;
  std::optional<Arrivals> arrivals;  // of an open loop
  size_t clients = 1;
  size_t requests = 0;       // ends after so many; 0: no end but the time
  double duration_s = 0;     // sends none after it, and waits for what runs; 0: no limit
  uint64_t first_index = 0;  // of the prompts
  bool warm_up = false;      // takes the prompts of warming up

  std::function<bool()> interrupted;                 // asked every 50 ms; ends what runs
  std::function<void(const RunProgress&)> progress;  // called as often
};

// One sample for each request that was sent, in the order of sending.
std::vector<LoadSample> RunLoad(boost::asio::io_context& io, Client& client,
                                const PromptSource& prompts, const RequestOptions& options,
                                LoadRun run);

}  // namespace sluice::load
#endif  // SLUICE_SRC_LOAD_GENERATOR_H_
