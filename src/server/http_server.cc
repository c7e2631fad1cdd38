#include "src/server/http_server.h"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <mutex>
#include <thread>
#include <utility>

#include "src/server/http_connection.h"
#include "src/server/http_core.h"
#include "src/server/http_listener.h"

namespace sluice {
namespace {

namespace asio = boost::asio;

std::vector<std::shared_ptr<HttpConnection>> Open(const HttpCore& core) {
  std::vector<std::shared_ptr<HttpConnection>> out;
  for (HttpConnection* connection : core.connections) {
    out.push_back(connection->shared_from_this());
  }
  return out;
}

}  // namespace

void HttpCore::AddBusy() {
  const std::lock_guard<std::mutex> lock(busy_mutex_);
  ++busy_;
}

void HttpCore::RemoveBusy() {
  const std::lock_guard<std::mutex> lock(busy_mutex_);
  if (--busy_ == 0) quiet_.notify_all();
}

void HttpCore::SetDraining() {
  draining = true;
  const std::lock_guard<std::mutex> lock(busy_mutex_);
  drain_started_ = true;
  quiet_.notify_all();
}

bool HttpCore::WaitUntilQuiet(double seconds) {
  std::unique_lock<std::mutex> lock(busy_mutex_);
  return quiet_.wait_for(lock, std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e6)),
                         [this] { return drain_started_ && busy_ == 0; });
}

class HttpServer::Impl {
 public:
  Impl(HttpOptions options, std::function<void(const std::string&)> log)
      : core_(std::make_shared<HttpCore>(std::move(options), std::move(log))) {}

  ~Impl() {
    if (!io_thread_.joinable()) return;
    core_->Post([this] {
      BeginDrain();
      CutAll();
    });
    // Handlers that run come to their end, now that their clients have gone; those that wait for a
    // thread are dropped. The I/O thread goes on until then: it is what tells them.
    pool_->stop();
    pool_->join();
    core_->EndPosts();
    work_.reset();
    io_thread_.join();
    core_->pool = nullptr;
  }

  Status TakeAddresses() {
    const HttpOptions& options = core_->options;
    if (taken_) return Status();
    if (!options.tls_cert.empty() || !options.tls_key.empty()) {
      ASSIGN_OR_RETURN(auto context, LoadTls(options.tls_cert, options.tls_key));
      core_->tls.emplace(std::move(context));
    }
    ASSIGN_OR_RETURN(listeners_, BindPorts(core_));
    RETURN_IF_ERROR(CheckUnixPath(*core_));
    if (listeners_.empty() && options.unix_path.empty()) {
      return Status(StatusCode::kInvalidArgument,
                    "nowhere to listen: name a --port or a socket path");
    }
    taken_ = true;
    return Status();
  }

  Status Start(std::vector<Route> routes) {
    if (io_thread_.joinable()) {
      return Status(StatusCode::kInvalidArgument, "the server has been started already");
    }
    RETURN_IF_ERROR(TakeAddresses());
    const std::string& path = core_->options.unix_path;
    if (!path.empty()) {
      ASSIGN_OR_RETURN(std::shared_ptr<HttpListener> unix, BindUnix(core_));
      socket_file_.Remember(path);
      listeners_.push_back(std::move(unix));
    }
    for (const auto& listener : listeners_) RETURN_IF_ERROR(listener->Listen());
    for (const auto& listener : listeners_) addresses_.push_back(listener->address());
    core_->router.emplace(std::move(routes), core_->options);
    pool_.emplace(std::clamp<size_t>(core_->options.request_threads, 1, 256));
    core_->pool = &*pool_;
    work_.emplace(core_->io.get_executor());
    core_->Post([this] {
      for (const auto& listener : listeners_) listener->Accept();
    });
    io_thread_ = std::thread([core = core_.get()] {
      // What escapes a completion (memory that cannot be had) ends that connection, not the server.
      std::string ignored;
      while (!RunSafely([core] { core->io.run(); }, &ignored)) {
      }
    });
    return Status();
  }

  const std::vector<std::string>& addresses() const { return addresses_; }

  void Drain(double seconds) {
    if (!io_thread_.joinable()) return;
    core_->Post([this] { BeginDrain(); });
    if (core_->WaitUntilQuiet(seconds)) return;
    core_->Post([this] { CutAll(); });
    (void)core_->WaitUntilQuiet(5);  // what the I/O thread does now takes no time
  }

  HttpCounters counters() const {
    const HttpCore::Counters& c = core_->counters;
    HttpCounters out;
    out.connections = c.connections;
    out.open_connections = c.open_connections;
    out.requests = c.requests;
    out.refused_connections = c.refused_connections;
    out.body_too_large = c.body_too_large;
    out.headers_too_large = c.headers_too_large;
    out.timeouts = c.timeouts;
    out.slow_readers = c.slow_readers;
    out.bad_requests = c.bad_requests;
    out.unauthorized = c.unauthorized;
    out.disconnects = c.disconnects;
    return out;
  }

 private:
  // I/O thread.
  void BeginDrain() {
    for (const auto& listener : listeners_) listener->Close();
    socket_file_.Remove();
    core_->SetDraining();
    for (const auto& connection : Open(*core_)) connection->CloseIfIdle();
  }
  void CutAll() {
    for (const auto& connection : Open(*core_)) connection->Cut();
  }

  const std::shared_ptr<HttpCore> core_;
  std::vector<std::shared_ptr<HttpListener>> listeners_;
  std::vector<std::string> addresses_;
  UnixSocketFile socket_file_;
  bool taken_ = false;  // the addresses
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> work_;
  std::optional<asio::thread_pool> pool_;
  std::thread io_thread_;
};

HttpServer::HttpServer(HttpOptions options, std::function<void(const std::string&)> log)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(log))) {}

HttpServer::~HttpServer() = default;

Status HttpServer::TakeAddresses() { return impl_->TakeAddresses(); }

Status HttpServer::Start(std::vector<Route> routes) { return impl_->Start(std::move(routes)); }

std::vector<std::string> HttpServer::addresses() const { return impl_->addresses(); }

void HttpServer::Drain(double seconds) { impl_->Drain(seconds); }

HttpCounters HttpServer::counters() const { return impl_->counters(); }

}  // namespace sluice
