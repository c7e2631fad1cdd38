// sluice serve: models behind HTTP, in the dialects that clients speak.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <thread>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/model_path.h"
#include "cli/progress.h"
#include "src/base/printable.h"
#include "src/model/pooling.h"
#include "src/server/dialects.h"
#include "src/server/http_server.h"
#include "src/server/metrics.h"
#include "src/server/page.h"
#include "src/server/served_model.h"
#include "src/text/chat_format.h"

namespace sluice {
namespace {

struct ServeFlags {
  ModelFlags model;
  HttpOptions http;
  std::vector<int> ports{8080};
  std::vector<std::string> names, key_files;
  std::string chat_template, prefix_scope = "shared", pooling;
  uint64_t kv_memory = 0;
  size_t max_sequences = 32, max_queue = 128, max_models = 1;
  double max_stall_ms = 200, keep_alive_s = -1, drain_s = 30;
  bool no_prefix_cache = false, no_log = false, no_page = false;
};

void AddEngineFlags(CLI::App& c, ServeFlags& f) {
  const auto add = [&](const char* names, auto& value, const char* help) {
    return c.add_option(names, value, help)->capture_default_str()->group("Engine");
  };
  add("--np,--parallel,--max-num-seqs", f.max_sequences, "Sequences that run at once")
      ->check(CLI::Range(1, 1024));
  add("--max-queue", f.max_queue, "Requests that may wait beside them; more are told to come later")
      ->check(CLI::Range(0, 1 << 20));
  add("--max-stall-ms", f.max_stall_ms,
      "Longest that prompts of others hold up a running stream; 0: as long as it takes")
      ->check(CLI::Range(0.0, 1e6));
  add("--kv-memory", f.kv_memory,
      "Memory for keys and values, such as 4GiB; 0: half of what there is, at most what all "
      "sequences can fill")
      ->type_name("SIZE")
      ->transform(CLI::AsSizeValue(false));
  c.add_flag("--no-prefix-cache", f.no_prefix_cache, "Compute every prompt from its first token on")
      ->group("Engine");
  add("--prefix-cache-scope", f.prefix_scope,
      "Who shares what was computed: shared (all), or key (requests with the same API key)")
      ->type_name("SCOPE")
      ->check(CLI::IsMember({"shared", "key"}));
  add("--chat-template,--chat-template-file", f.chat_template,
      "A .jinja file instead of the model's own chat template")
      ->type_name("FILE");
  add("--pooling", f.pooling,
      "How embeddings are made of a text's tokens: mean, cls (the first), last, or none (a vector "
      "for each, /embeddings only); default: as the file says, else last")
      ->type_name("KIND")
      ->check(CLI::IsMember({"none", "mean", "cls", "last"}));
  add("--served-model-name,-a,--alias", f.names, "What clients call the model; may be repeated")
      ->type_name("NAME")
      ->allow_extra_args(false);
  add("--models-max", f.max_models, "Models of the model folder that may be loaded at once")
      ->check(CLI::Range(1, 64));
  add("--keep-alive", f.keep_alive_s,
      "Seconds after which a model that nobody uses is unloaded; -1: never");
}

void AddServerFlags(CLI::App& c, ServeFlags& f) {
  HttpOptions& h = f.http;
  const auto add = [&](const char* names, auto& value, const char* help, const char* group) {
    return c.add_option(names, value, help)->capture_default_str()->group(group);
  };
  add("--host", h.host, "Address to listen on; 0.0.0.0: all", "Server")->type_name("ADDRESS");
  add("--port", f.ports, "Port; may be repeated (11434 for Ollama's clients); 0: a free one",
      "Server")
      ->check(CLI::Range(0, 65535))
      ->allow_extra_args(false);
  add("--unix", h.unix_path, "A Unix socket beside it", "Server")->type_name("PATH");
  add("--api-key", h.api_keys, "A key that requests must bring; may be repeated", "Server")
      ->type_name("KEY")
      ->allow_extra_args(false);
  add("--api-key-file", f.key_files, "A file with one key a line", "Server")
      ->type_name("FILE")
      ->allow_extra_args(false);
  add("--metrics-key", h.metrics_key, "A key for /metrics, which needs none otherwise", "Server")
      ->type_name("KEY");
  c.add_flag("--allow-manage", h.allow_manage,
             "Pull and delete models over HTTP also without an API key")
      ->group("Server");
  add("--tls-cert,--ssl-cert-file", h.tls_cert, "PEM certificate chain: HTTPS", "Server")
      ->type_name("FILE");
  add("--tls-key,--ssl-key-file", h.tls_key, "PEM key of it", "Server")->type_name("FILE");
  add("--cors-origin", h.cors_origins, "Origins that browsers may call from; may be repeated",
      "Server")
      ->type_name("ORIGIN")
      ->allow_extra_args(false);
  add("--threads-http", h.request_threads, "Threads that read prompts and render templates",
      "Server")
      ->check(CLI::Range(1, 64));
  add("--drain-seconds", f.drain_s, "On SIGTERM, how long running requests may take to end",
      "Server");
  c.add_flag("--no-page", f.no_page, "No page for browsers at /")->group("Server");
  c.add_flag("--no-access-log", f.no_log, "No line per request on stderr")->group("Server");
  add("--max-connections", h.max_connections, "Open connections", "Limits");
  add("--max-body-bytes", h.max_body_bytes, "Size of a request's body, such as 32MiB", "Limits")
      ->type_name("SIZE")
      ->transform(CLI::AsSizeValue(false));
  add("--max-header-bytes", h.max_header_bytes, "Size of a request's head", "Limits");
  add("--max-header-count", h.max_header_count, "Header lines of a request", "Limits");
  add("--header-timeout", h.header_timeout_s, "Seconds for a request's head", "Limits");
  add("--body-timeout", h.body_timeout_s, "Seconds for its body", "Limits");
  add("--idle-timeout", h.idle_timeout_s, "Seconds between requests of a connection", "Limits");
  add("--write-timeout", h.write_timeout_s, "Seconds in which a reader must take something",
      "Limits");
  add("--max-write-bytes", h.max_write_bytes, "Bytes that may wait for a slow reader", "Limits");
}

Status ReadKeys(const std::vector<std::string>& files, std::vector<std::string>* keys) {
  for (const std::string& file : files) {
    ASSIGN_OR_RETURN(const std::string text, ReadAll(file));
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      std::string key = text.substr(at, end - at);
      if (!key.empty() && key.back() == '\r') key.pop_back();
      if (!key.empty()) keys->push_back(std::move(key));
      at = end + 1;
    }
    if (keys->empty()) {
      return Status(StatusCode::kInvalidArgument, "--api-key-file " + file + ": has no key");
    }
  }
  if (std::find(keys->begin(), keys->end(), "") != keys->end()) {
    return Status(StatusCode::kInvalidArgument, "--api-key: expected a key, found nothing");
  }
  return Status();
}

int64_t ModifiedSeconds(const std::string& path) {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  if (error) return 0;
  const auto system = std::chrono::file_clock::to_sys(time);
  return std::chrono::duration_cast<std::chrono::seconds>(system.time_since_epoch()).count();
}

ModelEntry EntryOf(const ModelFile& file) {
  return {file.name, file.path, file.bytes, ModifiedSeconds(file.path)};
}

std::vector<ModelEntry> FolderEntries() {
  std::vector<ModelEntry> entries;
  for (const ModelFile& file : ListModels()) entries.push_back(EntryOf(file));
  return entries;
}

// The entry of the folder that has this path, or one named after the file.
ModelEntry EntryOfPath(const std::string& path) {
  for (const ModelEntry& entry : FolderEntries()) {
    if (entry.path == path) return entry;
  }
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(path, error);
  return {std::filesystem::path(path).stem().string(), path, error ? 0 : bytes,
          ModifiedSeconds(path)};
}

Result<HostOptions> MakeHostOptions(const ServeFlags& f) {
  HostOptions options;
  ServedModelOptions& model = options.model;
  ASSIGN_OR_RETURN(model.service.runner, f.model.Options());
  model.service.runner.sequences = f.max_sequences;
  model.service.runner.kv_bytes = f.kv_memory;
  model.service.runner.share_memory = true;
  model.service.runner.chunk = std::max(f.model.chunk, f.max_sequences);
  model.service.runner.warn = [](const std::string& line) { ReportNotes("serve", line); };
  model.service.engine.max_sequences = f.max_sequences;
  model.service.engine.prefix_cache = !f.no_prefix_cache;
  model.service.engine.max_stall_s = f.max_stall_ms / 1000;
  model.service.max_queue = f.max_queue;
  model.scope_by_key = f.prefix_scope == "key";
  model.pooling = FindPooling(f.pooling);
  if (!f.chat_template.empty()) {
    ASSIGN_OR_RETURN(model.chat_template, ReadAll(f.chat_template));
    const Status compiles = ChatFormat::FromTemplate(model.chat_template).status();
    if (!compiles.ok())
      return compiles.Within("--chat-template " + Printable(f.chat_template, 200));
  }
  options.max_models = f.max_models;
  options.keep_alive_s = f.keep_alive_s;
  options.aliases = f.names;
  options.list = FolderEntries;
  return options;
}

Result<std::shared_ptr<ServedModel>> LoadFirst(const std::string& path,
                                               const HostOptions& options) {
  ModelEntry entry = EntryOfPath(path);
  if (!options.aliases.empty()) entry.name = options.aliases.front();
  LoadWatch watch;
  Result<std::shared_ptr<ServedModel>> model =
      ServedModel::Load(entry, options.model, watch.progress());
  if (model.ok() && watch.interrupted()) {
    return Status(StatusCode::kCancelled, path + ": interrupted while it was loaded");
  }
  return model;
}

void PrintReady(const ModelHost& host, const HttpServer& server) {
  const std::vector<LoadedModel> loaded = host.Loaded();
  if (loaded.empty()) return;  // its time was short
  const ServedModel& model = *loaded.front().model;
  std::string addresses;
  for (const std::string& address : server.addresses()) {
    addresses += (addresses.empty() ? "" : " ") + address;
  }
  const KvPool& pool = model.runner().pool();
  char sizes[200];
  std::snprintf(sizes, sizeof(sizes),
                "context %zu, %zu sequences, KV %s, %s | weights %s in %.2f s", model.context(),
                model.options().service.engine.max_sequences,
                HumanBytes(pool.total_pages() * pool.page_bytes()).c_str(),
                model.chat() != nullptr ? "chat" : "no chat template",
                HumanBytes(model.runner().model().WeightBytesPerToken()).c_str(),
                model.runner().load_seconds());
  Say("serve", "ready on " + addresses + " | " + host.names().front() + " | " + sizes);
}

std::string OwnPath() {
  std::error_code error;
  const auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? "sluice" : path.string();
}

Status Run(ServeFlags& f) {
  RETURN_IF_ERROR(ReadKeys(f.key_files, &f.http.api_keys));
  f.http.ports.assign(f.ports.begin(), f.ports.end());
  ASSIGN_OR_RETURN(HostOptions options, MakeHostOptions(f));
  std::function<void(const std::string&)> log;
  if (!f.no_log) log = [](const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); };
  auto bound = std::make_unique<HttpServer>(f.http, std::move(log));
  RETURN_IF_ERROR(bound->TakeAddresses());
  ASSIGN_OR_RETURN(const std::string path, FindOrOffer(f.model.model));
  f.model.ReportIgnored("serve");
  // Clients may use the name that was given here; a path is none.
  const std::string& given = f.model.model;
  if (options.aliases.empty() && !given.empty() && given.find('/') == std::string::npos) {
    options.aliases = {EntryOfPath(path).name};
    if (given != options.aliases[0]) options.aliases.push_back(given);
  }
  Metrics metrics;
  options.model.metrics = &metrics;
  ASSIGN_OR_RETURN(std::shared_ptr<ServedModel> first, LoadFirst(path, options));
  ReportNotes("serve", first->runner().load_note());
  if (!first->chat() && first->chat_status().code() != StatusCode::kNotFound) {
    ReportNotes("serve", "chat is off: " + first->chat_status().message());
  }

  InterruptGuard interrupt;
  ModelHost host(options, std::move(first));
  ServerContext context;
  context.host = &host;
  context.version = SLUICE_VERSION;
  context.models_folder = ModelFolder();
  context.pull_command = {OwnPath(), "pull", "--progress", "json"};
  context.draining = [&interrupt] { return interrupt.interrupted(); };
  context.metrics = &metrics;
  context.http = [server = bound.get()] { return server->counters(); };
  std::vector<Route> routes;
  for (auto make : {OpenAiRoutes, OllamaRoutes, LlamaRoutes, MetricsRoutes}) {
    for (Route& route : make(context)) routes.push_back(std::move(route));
  }
  if (!f.no_page) routes = WithPage(std::move(routes));
  const std::unique_ptr<HttpServer> server = std::move(bound);  // gone before what its routes use
  RETURN_IF_ERROR(server->Start(std::move(routes)));
  PrintReady(host, *server);
  while (!interrupt.interrupted()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::fprintf(stderr, "sluice serve: ending, running requests have %g s\n", f.drain_s);
  server->Drain(f.drain_s);
  host.Stop();
  return Status();
}

}  // namespace

void AddServe(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* c = app.add_subcommand(
      "serve", "Serve models over HTTP: the APIs of OpenAI, Ollama, llama-server and vLLM");
  flags->model.AddTo(*c);
  AddEngineFlags(*c, *flags);
  AddServerFlags(*c, *flags);
  c->footer(
      "MODEL is served under its file's name, and answers requests that name no model.\n"
      "Example:\n  sluice serve gemma-3-270m --port 8080 --port 11434\n"
      "  curl localhost:8080/v1/completions -d '{\"prompt\": \"The capital of France is\"}'");
  c->callback([flags, exit_code] {
    std::signal(SIGPIPE, SIG_IGN);
    if (Status s = Run(*flags); !s.ok()) *exit_code = ReportError("serve", s);
  });
}

}  // namespace sluice
