#include "src/server/served_model.h"

#include <algorithm>
#include <utility>

#include "src/base/printable.h"
#include "src/engine/time_model.h"
#include "src/text/chat_template.h"

namespace sluice {

namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kReapEvery = std::chrono::seconds(1);

// "name:latest" is "name"; "a:b" may also be written "a-b".
bool Names(const std::string& asked, const std::string& name) {
  if (asked == name) return true;
  const size_t colon = asked.rfind(':');
  if (colon == std::string::npos) return false;
  if (asked.compare(colon, std::string::npos, ":latest") == 0)
    return asked.substr(0, colon) == name;
  std::string dashed = asked;
  dashed[colon] = '-';
  return dashed == name;
}

}  // namespace

Result<std::shared_ptr<ServedModel>> ServedModel::Load(const ModelEntry& entry,
                                                       const ServedModelOptions& options,
                                                       const LoadProgress& progress) {
  std::shared_ptr<ServedModel> model(new ServedModel);
  model->entry_ = entry;
  model->options_ = options;
  ASSIGN_OR_RETURN(model->engine_, EngineService::Create(entry.path, options.service, progress));
  model->residency_ = std::make_unique<ResidencyMeter>(model->runner().model());
  const ModelWork work(model->config(), model->runner().model().weights());
  for (const ModelWork::Kernel& k : work.kernels())
    model->macs_per_token_ += k.macs + k.output_macs;
  Result<std::string> source = options.chat_template.empty()
                                   ? ChatTemplateOf(model->runner().model().gguf(), false)
                                   : Result<std::string>(options.chat_template);
  if (!source.ok()) {
    model->chat_status_ = source.status();
    return model;
  }
  model->chat_source_ = *std::move(source);
  Result<ChatFormat> format = ChatFormat::FromTemplate(model->chat_source_);
  if (format.ok()) {
    model->chat_ = *std::move(format);
  } else {
    model->chat_status_ = format.status().Within("chat template");
  }
  return model;
}

std::shared_ptr<const GrammarVocabulary> ServedModel::grammar_vocabulary() {
  const std::lock_guard lock(mutex_);
  if (!grammar_vocabulary_) grammar_vocabulary_ = MakeGrammarVocabulary(tokenizer());
  return grammar_vocabulary_;
}

const NodeAudit& ServedModel::nodes() {
  const std::lock_guard lock(mutex_);
  if (!nodes_) nodes_ = AuditNodes(runner(), ThisMachine());
  return *nodes_;
}

bool ModelHost::Slot::expired(Clock::time_point now) const {
  return keep_alive_s >= 0 &&
         std::chrono::duration<double>(now - last_used).count() >= keep_alive_s;
}

ModelHost::ModelHost(HostOptions options, std::shared_ptr<ServedModel> first)
    : options_(std::move(options)), first_(first->entry()) {
  slots_[first_.name] = {std::move(first), Clock::now(), options_.keep_alive_s};
  reaper_ = std::thread(&ModelHost::Reap, this);
}

ModelHost::~ModelHost() { Stop(); }

std::vector<ModelEntry> ModelHost::List() const {
  std::vector<ModelEntry> entries{first_};
  if (options_.list) {
    for (ModelEntry& entry : options_.list()) {
      if (entry.path != first_.path) entries.push_back(std::move(entry));
    }
  }
  return entries;
}

std::vector<std::string> ModelHost::names() const {
  return options_.aliases.empty() ? std::vector<std::string>{first_.name} : options_.aliases;
}

Result<std::shared_ptr<ServedModel>> ModelHost::Get(const std::string& name,
                                                    const double* keep_alive_s) {
  ModelEntry entry = first_;
  const std::vector<std::string> own = names();
  const bool is_first = name.empty() || Names(name, first_.name) ||
                        std::any_of(own.begin(), own.end(),
                                    [&](const std::string& alias) { return Names(name, alias); });
  if (!is_first) {
    std::string known;
    for (const std::string& alias : own) known += (known.empty() ? "" : ", ") + alias;
    const std::vector<ModelEntry> entries = List();
    const auto found = std::find_if(entries.begin(), entries.end(),
                                    [&](const ModelEntry& e) { return Names(name, e.name); });
    if (found == entries.end()) {
      for (size_t i = 1; i < std::min<size_t>(entries.size(), 20); ++i) {
        known += ", " + entries[i].name;
      }
      return Status(StatusCode::kNotFound,
                    "model '" + Printable(name, 200) + "' not found; there are: " + known);
    }
    entry = *found;
  }
  if (auto model = Use(entry.name, keep_alive_s)) return model;
  const std::lock_guard load(loading_);
  if (auto model = Use(entry.name, keep_alive_s)) return model;  // another request was first
  if (!MakeRoom()) {
    return Status(StatusCode::kBusy, "model '" + entry.name + "': --models-max " +
                                         std::to_string(options_.max_models) +
                                         " are loaded and in use; try again later");
  }
  ASSIGN_OR_RETURN(std::shared_ptr<ServedModel> model, ServedModel::Load(entry, options_.model));
  const std::lock_guard lock(mutex_);
  slots_[entry.name] = {model, Clock::now(),
                        keep_alive_s != nullptr ? *keep_alive_s : options_.keep_alive_s};
  return model;
}

// Null: not loaded.
std::shared_ptr<ServedModel> ModelHost::Use(const std::string& name, const double* keep_alive_s) {
  const std::lock_guard lock(mutex_);
  const auto found = slots_.find(name);
  if (found == slots_.end()) return nullptr;
  Slot& slot = found->second;
  slot.last_used = Clock::now();
  if (keep_alive_s != nullptr) slot.keep_alive_s = *keep_alive_s;
  return slot.model;
}

// Unloads the model used longest ago that nobody uses now. Outside of the lock, for it takes a
// while.
bool ModelHost::MakeRoom() {
  std::shared_ptr<ServedModel> leaves;
  const std::lock_guard lock(mutex_);
  if (slots_.size() < std::max<size_t>(options_.max_models, 1)) return true;
  auto oldest = slots_.end();
  for (auto it = slots_.begin(); it != slots_.end(); ++it) {
    if (it->second.in_use()) continue;
    if (oldest == slots_.end() || it->second.last_used < oldest->second.last_used) oldest = it;
  }
  if (oldest == slots_.end()) return false;
  leaves = std::move(oldest->second.model);
  slots_.erase(oldest);
  return true;
}

std::vector<LoadedModel> ModelHost::Loaded() const {
  std::vector<LoadedModel> loaded;
  const std::lock_guard lock(mutex_);
  const auto now = Clock::now();
  for (const auto& [name, slot] : slots_) {
    const double idle_s = std::chrono::duration<double>(now - slot.last_used).count();
    loaded.push_back(
        {slot.model, slot.keep_alive_s < 0 ? -1 : std::max(slot.keep_alive_s - idle_s, 0.0)});
  }
  return loaded;
}

bool ModelHost::Unload(const std::string& name) {
  const std::lock_guard lock(mutex_);
  const std::vector<std::string> own = names();
  for (auto it = slots_.begin(); it != slots_.end(); ++it) {
    const bool alias =
        it->first == first_.name &&
        std::any_of(own.begin(), own.end(), [&](const std::string& a) { return Names(name, a); });
    if (!alias && !Names(name, it->first)) continue;
    leaving_.push_back(std::move(it->second.model));
    slots_.erase(it);
    wake_.notify_one();
    return true;
  }
  return false;
}

// Unloads what nobody has used for its time, and frees what its last request has left.
void ModelHost::Reap() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    wake_.wait_for(lock, kReapEvery);
    const auto now = Clock::now();
    for (auto it = slots_.begin(); it != slots_.end();) {
      Slot& slot = it->second;
      if (slot.in_use()) slot.last_used = now;
      if (!slot.expired(now)) {
        ++it;
        continue;
      }
      leaving_.push_back(std::move(slot.model));
      it = slots_.erase(it);
    }
    std::vector<std::shared_ptr<ServedModel>> free;
    std::erase_if(leaving_, [&](std::shared_ptr<ServedModel>& model) {
      if (model.use_count() > 1 || model->engine().pending() > 0) return false;
      free.push_back(std::move(model));
      return true;
    });
    lock.unlock();  // freeing takes a while
    free.clear();
    lock.lock();
  }
}

void ModelHost::Stop() {
  std::vector<std::shared_ptr<ServedModel>> all;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    for (const auto& [name, slot] : slots_) all.push_back(slot.model);
    all.insert(all.end(), leaving_.begin(), leaving_.end());
  }
  wake_.notify_one();
  if (reaper_.joinable()) reaper_.join();
  for (const auto& model : all) model->engine().Stop();
}

}  // namespace sluice
