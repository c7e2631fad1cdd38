// A quiet service measures the read bandwidth again and keeps it.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <thread>

#include "src/engine/engine_service.h"
#include "src/machine/ceilings.h"
#include "tests/base/temp_folder.h"
#include "tests/engine/runner.h"
#include "tests/model/tiny_model.h"

namespace sluice {
namespace {

TEST(EngineService, MeasuresTheCeilingAgainWhenItIsQuiet) {
  const TempFolder folder;
  const char* before = std::getenv("SLUICE_CACHE");
  const std::string old = before == nullptr ? "" : before;
  setenv("SLUICE_CACHE", folder.path("cache").c_str(), 1);
  const TinyModel model(TinyLlama());
  ServiceOptions options;
  options.runner = TestOptions(128);
  options.quiet_s = 0.01;
  options.ceiling_age_s = 0;
  auto service = EngineService::Create(model.Write(folder.path("m.gguf")), options);
  ASSERT_TRUE(service.ok()) << service.status().message();
  const auto ask = [&] {
    const auto done = std::make_shared<std::promise<void>>();
    Request request;
    request.prompt = model.Tokens(8);
    request.max_tokens = 4;
    request.on_finish = [done](const Sequence&) { done->set_value(); };
    std::vector<Request> requests;
    requests.push_back(std::move(request));
    ASSERT_TRUE((*service)->Submit(std::move(requests)).ok());
    done->get_future().wait();
  };
  // The first idle moment measures the ceiling, later ones do it again when steps were run between.
  const std::string name = ReadRate((*service)->runner().model().WeightBytesPerToken());
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);  // against a hang
  while (!KeptCeilings(1, 1).Now(name) && std::chrono::steady_clock::now() < end) {
    ask();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_TRUE(KeptCeilings(1, 1).Now(name).has_value());
  EXPECT_GT((*service)->snapshot().read_bandwidth_gb_s, 0);
  before == nullptr ? unsetenv("SLUICE_CACHE") : setenv("SLUICE_CACHE", old.c_str(), 1);
}

}  // namespace
}  // namespace sluice
