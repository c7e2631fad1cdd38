#include "cli/top/client.h"

#include <curl/curl.h>

#include <boost/json/parse.hpp>
#include <chrono>
#include <utility>

#include "src/base/printable.h"

namespace sluice::top {

namespace json = boost::json;

namespace {

constexpr size_t kMostBytes = size_t{32} << 20;  // of an answer
constexpr size_t kMostModels = 16;               // whose slots are asked for

size_t Append(char* data, size_t, size_t size, void* body) {
  std::string& text = *static_cast<std::string*>(body);
  if (text.size() + size > kMostBytes) return 0;
  text.append(data, size);
  return size;
}

int StopIfAsked(void* stop, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<std::atomic<bool>*>(stop)->load() ? 1 : 0;
}

double Now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// {"error": {"message": ...}}; empty: no such thing.
std::string MessageOf(const std::string& body) {
  boost::system::error_code error;
  const json::value value = json::parse(body, error);
  const json::object* object = error ? nullptr : value.if_object();
  const json::value* inner = object == nullptr ? nullptr : object->if_contains("error");
  const json::object* reply = inner == nullptr ? nullptr : inner->if_object();
  const json::value* message = reply == nullptr ? nullptr : reply->if_contains("message");
  return message != nullptr && message->is_string() ? std::string(message->get_string()) : "";
}

std::string Refusal(const char* path, int status, const std::string& body) {
  std::string text = std::string(path) + " answered " + std::to_string(status);
  if (status == 401 || status == 403) return text + ": give the server's key with --api-key";
  if (const std::string message = MessageOf(body); !message.empty()) {
    text += ": " + Printable(message, 120);
  }
  return text;
}

bool IsList(const std::string& body) {
  boost::system::error_code error;
  const json::value value = json::parse(body, error);
  return !error && value.is_array();
}

}  // namespace

Result<std::unique_ptr<Client>> Client::Create(ClientOptions options) {
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  std::unique_ptr<Client> client(new Client(std::move(options)));
  std::string url = client->options_.url;
  while (url.ends_with("/")) url.pop_back();
  const bool is_unix = url.starts_with("unix:");
  if (url.find("://") == std::string::npos && !is_unix) url = "http://" + url;
  if (is_unix) {
    client->unix_path_ = url.substr(5);
    if (client->unix_path_.starts_with("//")) client->unix_path_.erase(0, 2);
  }
  const bool known = url.starts_with("http://") || url.starts_with("https://") || is_unix;
  const size_t host = url.find("://") == std::string::npos ? 0 : url.find("://") + 3;
  if (!known || host == url.size() || (is_unix && client->unix_path_.empty())) {
    return Status(StatusCode::kInvalidArgument,
                  "URL: expected http://HOST:PORT, https://HOST:PORT or unix:/PATH, found " +
                      Printable(client->options_.url));
  }
  client->url_ = url;
  client->base_ = is_unix ? "http://localhost" : url;
  client->curl_ = ready == CURLE_OK ? curl_easy_init() : nullptr;
  if (client->curl_ == nullptr) return Status(StatusCode::kOutOfMemory, "libcurl cannot start");
  return client;
}

Client::~Client() { curl_easy_cleanup(curl_); }

std::string Client::Escaped(const std::string& text) const {
  char* escaped = curl_easy_escape(curl_, text.c_str(), static_cast<int>(text.size()));
  std::string out = escaped == nullptr ? "" : escaped;
  curl_free(escaped);
  return out;
}

// The connection stays open from look to look.
Client::Answer Client::Ask(const char* method, const std::string& path) {
  Answer answer;
  const std::string url = base_ + path;
  const auto timeout_ms = static_cast<long>(options_.timeout_s * 1000);
  curl_easy_reset(curl_);
  curl_easy_setopt(curl_, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl_, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl_, CURLOPT_USERAGENT, "sluice-top");
  curl_easy_setopt(curl_, CURLOPT_NOSIGNAL, 1L);
  // The machine itself is not reached through a proxy, which would see the key.
  curl_easy_setopt(curl_, CURLOPT_NOPROXY, "localhost,127.0.0.1,::1");
  curl_easy_setopt(curl_, CURLOPT_TIMEOUT_MS, timeout_ms);
  curl_easy_setopt(curl_, CURLOPT_CONNECTTIMEOUT_MS, timeout_ms);
  curl_easy_setopt(curl_, CURLOPT_WRITEFUNCTION, Append);
  curl_easy_setopt(curl_, CURLOPT_WRITEDATA, &answer.body);
  curl_easy_setopt(curl_, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl_, CURLOPT_XFERINFOFUNCTION, StopIfAsked);
  curl_easy_setopt(curl_, CURLOPT_XFERINFODATA, &stop_);
  if (!unix_path_.empty()) curl_easy_setopt(curl_, CURLOPT_UNIX_SOCKET_PATH, unix_path_.c_str());
  if (options_.insecure) {
    curl_easy_setopt(curl_, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(curl_, CURLOPT_SSL_VERIFYHOST, 0L);
  }
  if (!options_.api_key.empty()) {
    curl_easy_setopt(curl_, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    curl_easy_setopt(curl_, CURLOPT_XOAUTH2_BEARER, options_.api_key.c_str());
  }
  if (std::string_view(method) == "POST") curl_easy_setopt(curl_, CURLOPT_COPYPOSTFIELDS, "");
  const CURLcode code = curl_easy_perform(curl_);
  if (code != CURLE_OK) {
    answer.error = curl_easy_strerror(code);
    return answer;
  }
  long status = 0;
  curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &status);
  answer.status = static_cast<int>(status);
  return answer;
}

Scrape Client::Look() {
  Scrape scrape;
  const Answer metrics = Ask("GET", "/metrics");
  scrape.at_s = Now();
  scrape.error = metrics.error;
  if (metrics.status == 0) return scrape;
  std::vector<std::string> models = {""};
  if (metrics.status == 200) {
    scrape.metrics = MetricsText::Parse(metrics.body);
    const auto running = scrape.metrics.SumBy("vllm:num_requests_running", "model_name");
    if (running.size() > 1) {
      models.clear();
      for (const auto& [name, count] : running) models.push_back(name);
      if (models.size() > kMostModels) models.resize(kMostModels);
    }
  }
  for (const std::string& model : models) {
    Answer slots = Ask("GET", "/slots" + (model.empty() ? "" : "?model=" + Escaped(model)));
    if (slots.status == 200 && IsList(slots.body)) {
      scrape.slots.push_back({model, std::move(slots.body)});
      continue;
    }
    scrape.slots_error = slots.status == 0     ? slots.error
                         : slots.status == 200 ? "/slots answered with no list of slots"
                                               : Refusal("/slots", slots.status, slots.body);
    break;
  }
  if (!scrape.slots.empty() || KindOf(scrape.metrics) != ServerKind::kUnknown) return scrape;
  if (metrics.status == 200) {
    scrape.error = "/metrics answered without metrics of sluice, llama-server or vLLM";
  } else {
    scrape.error = Refusal("/metrics", metrics.status, metrics.body) + "; " + scrape.slots_error;
  }
  return scrape;
}

std::string Client::Cancel(const std::string& request_id) {
  const Answer answer = Ask("POST", "/v1/requests/" + Escaped(request_id) + "/cancel");
  if (answer.status == 200) return "cancelled " + request_id;
  if (answer.status == 404) return request_id + " has ended already";
  return "not cancelled: " +
         (answer.status == 0 ? answer.error : Refusal("it", answer.status, answer.body));
}

}  // namespace sluice::top
