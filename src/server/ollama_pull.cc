#include "src/server/ollama_pull.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/string.hpp>
#include <utility>

#include "src/base/printable.h"
#include "src/server/fields.h"
#include "src/server/http_server.h"
#include "src/server/ollama_reply.h"

namespace sluice {

namespace json = boost::json;

namespace {

constexpr size_t kMostJobs = 2;  // more would only share the same line
constexpr size_t kLongestName = 1024;
constexpr size_t kLongestText = 400;  // of a line, as clients see it

std::string WithoutFolder(std::string_view line, const std::string& folder) {
  std::string text(line);
  const std::string prefix = folder + "/";
  for (size_t at = 0; !folder.empty() && (at = text.find(prefix, at)) != std::string::npos;) {
    text.erase(at, prefix.size());
  }
  return Printable(text, kLongestText);
}

// What clients keep their progress bars by. Names the download: the content is not known yet.
std::string DigestOf(const std::string& argument) {
  ModelEntry entry;
  entry.name = argument;
  return "sha256:" + ModelDigest(entry);
}

// The words of an error without "sluice pull: error: " and the like before them.
std::string ErrorText(std::string_view line) {
  for (const std::string_view prefix : {"sluice pull: ", "sluice: ", "error: "}) {
    if (line.starts_with(prefix)) line.remove_prefix(prefix.size());
  }
  return std::string(line);
}

}  // namespace

Result<std::string> PullArgument(std::string_view name) {
  std::string_view rest = name;
  if (rest.ends_with(":latest")) rest.remove_suffix(7);
  for (const std::string_view site : {"hf.co/", "huggingface.co/"}) {
    if (!rest.starts_with(site)) continue;
    rest.remove_prefix(site.size());
    return PullArgument("hf:" + std::string(rest));
  }
  // A name that is none must not become a flag.
  const bool plain = !rest.empty() && rest[0] != '-' && rest.size() <= kLongestName &&
                     Printable(rest, rest.size()) == rest;
  if (plain) return std::string(rest);
  return Status(StatusCode::kInvalidArgument,
                "model: expected a name that can be fetched (gemma-3-270m, "
                "hf.co/owner/repo:quant, a URL), found \"" +
                    Printable(name) + "\"");
}

json::object PullStatus(std::string_view line, const std::string& argument,
                        const std::string& folder) {
  boost::system::error_code error;
  const json::value parsed = json::parse(line, error);
  if (!error && parsed.is_object()) {
    Fields fields(parsed.get_object());
    const int64_t completed = fields.Int("completed", 0, 0, INT64_MAX);
    const int64_t total = fields.Int("total", 0, 0, INT64_MAX);
    const std::string title = fields.String("title", argument);
    if (fields.status().ok() && parsed.get_object().contains("completed")) {
      json::object status;
      status["status"] = "pulling " + WithoutFolder(title, folder);
      if (total == 0) return status;  // how much there is will show
      status["digest"] = DigestOf(title);
      status["total"] = total;
      status["completed"] = std::min(completed, total);
      return status;
    }
  }
  json::object status;
  status["status"] = WithoutFolder(ErrorText(line), folder);
  return status;
}

PullJobs::PullJobs(std::vector<std::string> command, std::string folder)
    : command_(std::move(command)), folder_(std::move(folder)) {}

PullJobs::~PullJobs() {
  std::vector<std::unique_ptr<Job>> jobs;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    jobs = std::move(jobs_);
    for (const auto& job : jobs) job->process->Kill();
  }
  for (const auto& job : jobs) job->thread.join();
}

void PullJobs::JoinDone() {
  for (auto it = jobs_.begin(); it != jobs_.end();) {
    if (!(*it)->done) {
      ++it;
      continue;
    }
    (*it)->thread.join();
    it = jobs_.erase(it);
  }
}

Status PullJobs::Start(const std::string& argument, bool stream,
                       std::shared_ptr<Exchange> exchange) {
  if (command_.empty()) {
    return Status(StatusCode::kUnsupported, "fetching models is not offered here");
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  JoinDone();
  if (jobs_.size() >= kMostJobs) {
    return Status(StatusCode::kBusy, "two models are being fetched already, try again later");
  }
  std::vector<std::string> command = command_;
  command.push_back(argument);
  ASSIGN_OR_RETURN(std::unique_ptr<PullProcess> process, PullProcess::Start(command));
  auto job = std::make_unique<Job>();
  job->process = std::move(process);
  exchange->OnDisconnect([p = job->process] { p->Kill(); });
  Job* const raw = job.get();
  raw->thread = std::thread([this, raw, argument, stream, exchange = std::move(exchange)] {
    Run(raw, argument, stream, exchange);
  });
  jobs_.push_back(std::move(job));
  return Status();
}

void PullJobs::Run(Job* job, const std::string& argument, bool stream,
                   const std::shared_ptr<Exchange>& exchange) {
  const auto write = [&](const json::object& line) {
    if (stream) exchange->Write(ToJson(line) + "\n");
  };
  json::object status;
  status["status"] = "pulling manifest";
  if (stream) {
    exchange->StartStream(200, "application/x-ndjson", {{"X-Accel-Buffering", "no"}});
  }
  write(status);
  std::string line, last_words;
  while (job->process->ReadLine(&line)) {
    status = PullStatus(line, argument, folder_);
    if (!status.contains("total")) last_words = status["status"].as_string();
    write(status);
  }
  const int code = job->process->Wait();
  json::object end;
  if (code == 0) {
    end["status"] = "success";
  } else {
    end["error"] = last_words.empty() ? "the download ended with exit code " + std::to_string(code)
                                      : last_words;
  }
  if (stream) {
    write(end);
    exchange->End();
  } else {
    HttpResponse response;
    response.status = code == 0 ? 200 : 500;
    response.body = ToJson(end);
    exchange->Respond(std::move(response));
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  job->done = true;
}

}  // namespace sluice
