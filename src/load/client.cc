#include "src/load/client.h"

#include <openssl/ssl.h>

#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <utility>

namespace sluice::load {

namespace asio = boost::asio;
using boost::system::error_code;
using StreamSocket = asio::generic::stream_protocol::socket;

namespace {

// The kind by which failures are counted.
const char* KindOf(const error_code& error) {
  if (error == asio::error::connection_refused) return "refused";
  if (error == asio::error::eof) return "closed";
  if (error == asio::error::connection_reset || error == asio::error::broken_pipe) return "reset";
  if (error == asio::error::timed_out) return "timeout";
  if (error.category() == asio::error::get_ssl_category()) return "tls";
  return "network";
}

}  // namespace

std::string Reply::Text() const {
  std::string text;
  for (const StampedBytes& piece : body) text += piece.bytes;
  return text;
}

class Client::Connection {
 public:
  Connection(asio::io_context& io, std::optional<asio::ssl::context>& context) : socket(io) {
    if (context) tls.emplace(socket, *context);
  }
  // Calls f with the stream that carries the bytes.
  template <class F>
  void With(F f) {
    if (tls) {
      f(*tls);
    } else {
      f(socket);
    }
  }

  StreamSocket socket;
  std::optional<asio::ssl::stream<StreamSocket&>> tls;
};

// One request, from Send to its reply. Handlers hold it by shared_ptr.
class Client::Exchange : public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(Client* client, std::string bytes, OnReply done)
      : client_(client), bytes_(std::move(bytes)), done_(std::move(done)), timer_(client->io_) {
    reply_.sent = LoadClock::now();
  }

  void Start() {
    client_->running_.insert(this);
    timer_.expires_at(reply_.sent +
                      std::chrono::duration_cast<LoadClock::duration>(
                          std::chrono::duration<double>(client_->options_.timeout_s)));
    timer_.async_wait([self = shared_from_this()](const error_code& error) {
      if (!error) self->Stop("timeout", "no whole answer in time");
    });
    connection_ = client_->TakeIdle();
    reused_ = connection_ != nullptr;
    if (reused_) {
      Write();
    } else {
      Connect();
    }
  }

  // Ends it from outside its own reads and writes.
  void Stop(const char* kind, const std::string& detail) {
    if (!done_) return;
    Fail(kind, detail);
  }

 private:
  void Connect() {
    reused_ = false;
    reply_.new_connection = true;
    ++client_->connections_;
    connection_ = std::make_unique<Connection>(client_->io_, client_->tls_);
    asio::async_connect(connection_->socket, client_->endpoints_,
                        [self = shared_from_this()](const error_code& error, const auto&) {
                          if (!self->done_) return;
                          if (error)
                            return self->Fail(KindOf(error), "cannot connect: " + error.message());
                          self->Connected();
                        });
  }

  void Connected() {
    error_code ignored;
    if (client_->target_.unix_path.empty()) {
      connection_->socket.set_option(asio::ip::tcp::no_delay(true), ignored);
    }
    if (!connection_->tls) return Write();
    const std::string& host = client_->target_.host;
    SSL_set_tlsext_host_name(connection_->tls->native_handle(), host.c_str());
    if (!client_->options_.insecure) {
      connection_->tls->set_verify_callback(asio::ssl::host_name_verification(host), ignored);
    }
    connection_->tls->async_handshake(
        asio::ssl::stream_base::client, [self = shared_from_this()](const error_code& error) {
          if (!self->done_) return;
          if (error) return self->Fail("tls", "TLS handshake: " + error.message());
          self->Write();
        });
  }

  void Write() {
    connection_->With([this](auto& stream) {
      asio::async_write(stream, asio::buffer(bytes_),
                        [self = shared_from_this()](const error_code& error, size_t) {
                          if (!self->done_) return;
                          if (error) return self->Lost(error);
                          self->Read();
                        });
    });
  }

  void Read() {
    connection_->With([this](auto& stream) {
      stream.async_read_some(asio::buffer(in_),
                             [self = shared_from_this()](const error_code& error, size_t n) {
                               const auto now = LoadClock::now();
                               if (!self->done_) return;
                               self->OnRead(now, error, n);
                             });
    });
  }

  void OnRead(LoadClock::time_point now, const error_code& error, size_t n) {
    reader_.Feed(now, {in_.data(), n});
    if (reader_.done() && reader_.error().empty()) return Finish(now);
    if (reader_.error().empty() && !error) return Read();
    if (reader_.error().empty()) {
      if (!reader_.began()) return Lost(error);
      reader_.FeedEnd();
      if (reader_.done()) return Finish(now);
      return Fail("cut off", reader_.error());
    }
    Fail("not HTTP", reader_.error());
  }

  // The connection is gone before a byte of the answer came.
  void Lost(const error_code& error) {
    if (reused_) return Connect();  // it was closed while it was idle
    Fail(KindOf(error), "the connection ended before an answer: " + error.message());
  }

  void Finish(LoadClock::time_point now) {
    if (reader_.keep_alive()) client_->idle_.push_back(std::move(connection_));
    Tell(now);
  }

  void Fail(const char* kind, const std::string& detail) {
    reply_.error = kind;
    reply_.detail = detail;
    Tell(LoadClock::now());
  }

  void Tell(LoadClock::time_point now) {
    client_->running_.erase(this);
    timer_.cancel();
    error_code ignored;
    if (connection_) connection_->socket.close(ignored);  // outstanding handlers come back empty
    reply_.end = now;
    reply_.status = reader_.status();
    reply_.content_type = reader_.content_type();
    reply_.body = std::move(reader_.body());
    std::exchange(done_, nullptr)(std::move(reply_));
  }

  Client* const client_;
  const std::string bytes_;
  OnReply done_;  // empty: told
  asio::steady_timer timer_;
  std::unique_ptr<Connection> connection_;
  bool reused_ = false;
  ReplyReader reader_;
  Reply reply_;
  std::array<char, 16 << 10> in_;
};

Client::Client(asio::io_context& io, Target target, ClientOptions options)
    : io_(io), target_(std::move(target)), options_(std::move(options)) {}

Client::~Client() = default;

Status Client::Resolve() {
  error_code error;
  if (target_.tls) {
    tls_.emplace(asio::ssl::context::tls_client);
    if (options_.insecure) {
      tls_->set_verify_mode(asio::ssl::verify_none, error);
    } else {
      tls_->set_default_verify_paths(error);
      if (error) return Status(StatusCode::kIo, "the system's certificates: " + error.message());
      tls_->set_verify_mode(asio::ssl::verify_peer, error);
    }
  }
  if (!target_.unix_path.empty()) {
    try {
      endpoints_ = {asio::local::stream_protocol::endpoint(target_.unix_path)};
    } catch (const boost::system::system_error&) {
      return Status(StatusCode::kInvalidArgument, target_.url + ": the path is too long");
    }
    return Status();
  }
  asio::ip::tcp::resolver resolver(io_);
  for (const auto& entry : resolver.resolve(target_.host, target_.port, error)) {
    endpoints_.emplace_back(entry.endpoint());
  }
  if (error) {
    return Status(StatusCode::kIo, target_.url + ": the host is not known: " + error.message());
  }
  return Status();
}

std::unique_ptr<Client::Connection> Client::TakeIdle() {
  if (idle_.empty()) return nullptr;
  std::unique_ptr<Connection> last = std::move(idle_.back());
  idle_.pop_back();
  return last;
}

void Client::Send(const LoadRequest& request, OnReply done) {
  std::string bytes = request.method + " " + target_.prefix + request.path +
                      " HTTP/1.1\r\nHost: " + target_.Authority() +
                      "\r\nUser-Agent: sluice-load\r\nAccept: */*\r\n";
  if (!options_.api_key.empty()) bytes += "Authorization: Bearer " + options_.api_key + "\r\n";
  if (request.method == "POST") {
    bytes +=
        "Content-Type: application/json\r\nContent-Length: " + std::to_string(request.body.size()) +
        "\r\n";
  }
  bytes += "\r\n" + request.body;
  std::make_shared<Exchange>(this, std::move(bytes), std::move(done))->Start();
}

Reply Client::Ask(const LoadRequest& request) {
  std::optional<Reply> reply;
  Send(request, [&reply](Reply r) { reply = std::move(r); });
  io_.restart();
  while (!reply && io_.run_one() > 0) {
  }
  return std::move(*reply);
}

void Client::CancelAll() {
  // A reply's receiver may send again, so not while the set is walked.
  std::vector<std::shared_ptr<Exchange>> all;
  for (Exchange* e : running_) all.push_back(e->shared_from_this());
  for (const auto& e : all) e->Stop("interrupted", "ended by this program");
}

}  // namespace sluice::load
