// A model in memory with everything that answers for it, and the host that
// loads models by name and unloads those nobody uses.
#ifndef SLUICE_SRC_SERVER_SERVED_MODEL_H_
#define SLUICE_SRC_SERVER_SERVED_MODEL_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "src/base/status.h"
#include "src/engine/engine_service.h"
#include "src/engine/memory_audit.h"
#include "src/engine/model_runner.h"
#include "src/text/chat_format.h"
#include "src/text/grammar/grammar.h"
#include "src/text/tokenizer.h"

namespace sluice {

class Metrics;

// A file that can be served, loaded or not.
struct ModelEntry {
  std::string name;  // what clients call it
  std::string path;
  uint64_t bytes = 0;      // of all parts
  int64_t modified_s = 0;  // of the file, since 1970
};

struct ServedModelOptions {
  ServiceOptions service;
  std::string chat_template;       // source that takes the place of the file's; empty: the file's
  bool scope_by_key = false;       // prefixes are shared only by requests with the same API key
  std::optional<Pooling> pooling;  // of embeddings; none: as the file says
  Metrics* metrics = nullptr;      // told of every request; outlives the models
};

// Immutable but for its engine; kept alive by whoever answers a request with it.
class ServedModel {
 public:
  static Result<std::shared_ptr<ServedModel>> Load(const ModelEntry& entry,
                                                   const ServedModelOptions& options,
                                                   const LoadProgress& progress = {});

  const ModelEntry& entry() const { return entry_; }
  const ServedModelOptions& options() const { return options_; }
  const std::string& name() const { return entry_.name; }
  ModelRunner& runner() const { return engine_->runner(); }
  const Config& config() const { return engine_->runner().config(); }
  const Tokenizer& tokenizer() const { return engine_->tokenizer(); }
  EngineService& engine() const { return *engine_; }
  size_t context() const { return engine_->runner().context(); }
  size_t vocab() const { return config().vocab; }
  Pooling pooling() const { return options_.pooling.value_or(config().pooling); }
  // Null: this model cannot chat, and chat_status() says why.
  const ChatFormat* chat() const { return chat_ ? &*chat_ : nullptr; }
  const Status& chat_status() const { return chat_status_; }
  const std::string& chat_source() const { return chat_source_; }
  std::shared_ptr<const GrammarVocabulary> grammar_vocabulary();  // made at the first call
  ResidencyMeter& residency() { return *residency_; }
  const NodeAudit& nodes();                                  // made at the first call
  double macs_per_token() const { return macs_per_token_; }  // of a row's products, logits too

 private:
  ServedModel() = default;
  ModelEntry entry_;
  ServedModelOptions options_;
  std::unique_ptr<EngineService> engine_;
  std::unique_ptr<ResidencyMeter> residency_;
  double macs_per_token_ = 0;
  std::optional<ChatFormat> chat_;
  Status chat_status_;
  std::string chat_source_;
  std::mutex mutex_;
  std::shared_ptr<const GrammarVocabulary> grammar_vocabulary_;  // guarded by mutex_
  std::optional<NodeAudit> nodes_;                               // guarded by mutex_
};

struct HostOptions {
  ServedModelOptions model;
  size_t max_models = 1;                          // --models-max
  double keep_alive_s = -1;                       // of a model nobody pinned; negative: for ever
  std::vector<std::string> aliases;               // --served-model-name: names of the first model
  std::function<std::vector<ModelEntry>()> list;  // the model folder
};

// What /api/ps and the page show of a loaded model.
struct LoadedModel {
  std::shared_ptr<ServedModel> model;
  double expires_in_s = -1;  // negative: never
};

class ModelHost {
 public:
  // `first` is served under its aliases or its name, and answers requests that name no model.
  ModelHost(HostOptions options, std::shared_ptr<ServedModel> first);
  ~ModelHost();

  // Cancels all requests and waits for the engines; before the server's end, whose exchanges they
  // answer to.
  void Stop();

  // The model of this name, loaded if it is not (which takes a while: not on the I/O thread).
  // Empty: the first model. "name:latest" is "name", "a:b" also "a-b". kNotFound names those there
  // are; kBusy: no room, all others are in use. `keep_alive_s` (null: the default) counts from now.
  Result<std::shared_ptr<ServedModel>> Get(const std::string& name,
                                           const double* keep_alive_s = nullptr);
  std::vector<ModelEntry> List() const;    // served and in the folder
  std::vector<std::string> names() const;  // of the first model: its aliases or its name
  std::vector<LoadedModel> Loaded() const;
  // Unloads once its requests have ended; false: not loaded.
  bool Unload(const std::string& name);
  const HostOptions& options() const { return options_; }

 private:
  struct Slot {
    std::shared_ptr<ServedModel> model;
    std::chrono::steady_clock::time_point last_used;
    double keep_alive_s;
    bool in_use() const { return model.use_count() > 1 || model->engine().pending() > 0; }
    bool expired(std::chrono::steady_clock::time_point now) const;
  };
  std::shared_ptr<ServedModel> Use(const std::string& name, const double* keep_alive_s);
  bool MakeRoom();
  void Reap();

  const HostOptions options_;
  const ModelEntry first_;
  std::mutex loading_;  // one load at a time
  mutable std::mutex mutex_;
  std::map<std::string, Slot> slots_;  // by entry name; guarded by mutex_
  // Unloaded, but requests still use them. Their last owner is the host: not the engine's thread,
  // which runs the callbacks that hold the others. Guarded by mutex_.
  std::vector<std::shared_ptr<ServedModel>> leaving_;
  std::condition_variable wake_;
  bool stop_ = false;  // guarded by mutex_
  std::thread reaper_;
};

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_SERVED_MODEL_H_
