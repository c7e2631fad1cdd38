#include "src/server/http_listener.h"

#include <fcntl.h>
#include <openssl/ssl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <chrono>
#include <cstring>
#include <utility>

#include "src/server/http_connection.h"

namespace sluice {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kRetry = std::chrono::milliseconds(100);  // after accept has failed
// Connections over the limit that are being told so. Beyond it they are only closed.
constexpr size_t kMaxRefusing = 64;

Status IoError(const std::string& what, const error_code& error, const std::string& advice = "") {
  return Status(StatusCode::kIo,
                what + ": " + error.message() + (advice.empty() ? "" : "; ") + advice);
}

// Not inherited by the programs that the server starts.
void CloseOnExec(int fd) { ::fcntl(fd, F_SETFD, FD_CLOEXEC); }

tcp::endpoint TcpEndpoint(const asio::generic::stream_protocol::endpoint& from) {
  tcp::endpoint to;
  if (from.size() > to.capacity()) return to;
  std::memcpy(to.data(), from.data(), from.size());
  to.resize(from.size());
  return to;
}

std::string AddressText(asio::ip::address address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  }
  return address.to_string();
}

std::string Url(const char* scheme, const tcp::endpoint& at) {
  const std::string host = at.address().to_string();
  return std::string(scheme) + "://" + (at.address().is_v6() ? "[" + host + "]" : host) + ":" +
         std::to_string(at.port());
}

Result<std::vector<asio::ip::address>> Resolve(asio::io_context& io, std::string host) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  error_code error;
  const auto address = asio::ip::make_address(host, error);
  if (!error) return std::vector<asio::ip::address>{address};
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(host, "0", tcp::resolver::passive, error);
  if (error) {
    return IoError("--host " + host, error, "expected an address of this machine, or 0.0.0.0");
  }
  std::vector<asio::ip::address> out;
  for (const auto& entry : found) {
    const auto a = entry.endpoint().address();
    if (std::find(out.begin(), out.end(), a) == out.end()) out.push_back(a);
  }
  return out;
}

Status CannotListen(const std::string& address, const error_code& error) {
  return IoError("cannot listen on " + address, error);
}

Result<StreamAcceptor> BindTcp(asio::io_context& io, const tcp::endpoint& at) {
  const std::string what = "cannot listen on " + Url("tcp", at);
  StreamAcceptor acceptor(io);
  error_code error;
  acceptor.open(asio::generic::stream_protocol(at.protocol()), error);
  if (error) return IoError(what, error);
  CloseOnExec(acceptor.native_handle());
  acceptor.set_option(asio::socket_base::reuse_address(true), error);
  // "::" is every address, of IPv4 too.
  if (at.address().is_v6()) acceptor.set_option(asio::ip::v6_only(false), error);
  acceptor.bind(asio::generic::stream_protocol::endpoint(at), error);
  if (error) {
    return IoError(what, error,
                   error == asio::error::address_in_use ? "choose another --port" : "");
  }
  // Else others could bind the address until this one listens.
  acceptor.set_option(asio::socket_base::reuse_address(false), error);
  return acceptor;
}

// A socket file that nobody listens on any more is in the way, and goes.
Status RemoveStale(asio::io_context& io, const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) return Status();
  if (!S_ISSOCK(info.st_mode)) {
    return Status(StatusCode::kIo, path + " is there and is not a socket; choose another path");
  }
  asio::local::stream_protocol::socket socket(io);
  error_code error;
  socket.connect(asio::local::stream_protocol::endpoint(path), error);
  if (error != asio::error::connection_refused) {
    return Status(StatusCode::kIo,
                  path + " is in use by another process; end it or choose another path");
  }
  ::unlink(path.c_str());
  return Status();
}

}  // namespace

Status CheckUnixPath(HttpCore& core) {
  const std::string& path = core.options.unix_path;
  if (path.empty()) return Status();
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return Status(StatusCode::kIo, path + " is too long for a Unix socket: at most " +
                                       std::to_string(sizeof(sockaddr_un::sun_path) - 1) +
                                       " bytes");
  }
  return RemoveStale(core.io, path);
}

Result<std::shared_ptr<HttpListener>> BindUnix(const std::shared_ptr<HttpCore>& core) {
  RETURN_IF_ERROR(CheckUnixPath(*core));
  const std::string& path = core->options.unix_path;
  const asio::local::stream_protocol::endpoint at(path);
  StreamAcceptor acceptor(core->io);
  error_code error;
  acceptor.open(asio::generic::stream_protocol(at.protocol()), error);
  if (error) return CannotListen(path, error);
  CloseOnExec(acceptor.native_handle());
  acceptor.bind(asio::generic::stream_protocol::endpoint(at), error);
  if (error) return CannotListen(path, error);
  return std::make_shared<HttpListener>(core, std::move(acceptor), "unix:" + path);
}

Result<std::vector<std::shared_ptr<HttpListener>>> BindPorts(
    const std::shared_ptr<HttpCore>& core) {
  const HttpOptions& options = core->options;
  std::vector<std::shared_ptr<HttpListener>> out;
  std::vector<asio::ip::address> addresses;
  if (!options.ports.empty()) {
    ASSIGN_OR_RETURN(addresses, Resolve(core->io, options.host));
  }
  for (const uint16_t wanted : options.ports) {
    uint16_t port = wanted;
    const size_t before = out.size();
    Status failed;
    for (const auto& address : addresses) {
      auto acceptor = BindTcp(core->io, tcp::endpoint(address, port));
      if (!acceptor.ok()) {
        failed = acceptor.status();
        continue;
      }
      const tcp::endpoint at = TcpEndpoint(acceptor->local_endpoint());
      port = at.port();  // all addresses of a name get the one that was free
      out.push_back(std::make_shared<HttpListener>(core, *std::move(acceptor),
                                                   Url(core->tls ? "https" : "http", at)));
    }
    // A name may stand for addresses that this machine does not have (IPv6 turned off).
    if (out.size() == before) return failed;
  }
  return out;
}

Status HttpListener::Listen() {
  error_code error;
  // As when it was bound: connections of an earlier server may still be ending.
  acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  acceptor_.listen(4096, error);
  return error ? CannotListen(address_, error) : Status();
}

void HttpListener::Accept() {
  if (closed_) return;
  auto peer = std::make_shared<asio::generic::stream_protocol::endpoint>();
  auto socket = std::make_shared<asio::generic::stream_protocol::socket>(core_->io);
  acceptor_.async_accept(*socket, *peer,
                         [self = shared_from_this(), socket, peer](error_code error) {
                           self->OnAccept(error, std::move(*socket), *peer);
                         });
}

void HttpListener::OnAccept(const error_code& error, StreamSocket socket,
                            const asio::generic::stream_protocol::endpoint& peer) {
  if (closed_) return;
  if (error == asio::error::no_descriptors || error == asio::error::no_buffer_space ||
      error == asio::error::no_memory ||
      error == error_code(ENFILE, boost::system::system_category())) {
    // The connection stays in the queue; asking again at once would only spin.
    retry_.expires_after(kRetry);
    retry_.async_wait([self = shared_from_this()](error_code cancelled) {
      if (!cancelled) self->Accept();
    });
    return;
  }
  if (!error) {
    CloseOnExec(socket.native_handle());
    std::string remote = "unix";
    bool secure = false;  // what is said through a Unix socket stays on this machine
    const int family = peer.protocol().family();
    if (family == AF_INET || family == AF_INET6) {
      remote = AddressText(TcpEndpoint(peer).address());
      secure = core_->tls.has_value();
      error_code ignored;
      socket.set_option(tcp::no_delay(true), ignored);
    }
    const size_t open = core_->connections.size();
    if (open < core_->options.max_connections + kMaxRefusing) {
      auto connection =
          std::make_shared<HttpConnection>(core_, std::move(socket), std::move(remote), secure);
      if (open < core_->options.max_connections)
        connection->Start();
      else
        connection->Refuse();
    } else {
      ++core_->counters.refused_connections;
    }
  }
  Accept();
}

void HttpListener::Close() {
  closed_ = true;
  error_code ignored;
  acceptor_.close(ignored);
  retry_.cancel();
}

void UnixSocketFile::Remember(const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) return;
  path_ = path;
  device_ = info.st_dev;
  inode_ = info.st_ino;
}

void UnixSocketFile::Remove() {
  struct stat info;
  const bool ours = !path_.empty() && ::lstat(path_.c_str(), &info) == 0 &&
                    info.st_dev == device_ && info.st_ino == inode_;
  if (ours) ::unlink(path_.c_str());
  path_.clear();
}

Result<asio::ssl::context> LoadTls(const std::string& cert, const std::string& key) {
  if (cert.empty() || key.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  "TLS needs a certificate and its key: give both --tls-cert and --tls-key");
  }
  asio::ssl::context context(asio::ssl::context::tls_server);
  SSL_CTX* const native = context.native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  error_code error;
  // A key with a passphrase is refused; OpenSSL would ask for it on the terminal.
  context.set_password_callback(
      [](size_t, asio::ssl::context::password_purpose) { return std::string(); }, error);
  context.use_certificate_chain_file(cert, error);
  if (error) return IoError("cannot read the certificate in " + cert, error, "expected PEM");
  context.use_private_key_file(key, asio::ssl::context::pem, error);
  if (error) {
    return IoError("cannot read the key in " + key, error,
                   "expected PEM without a passphrase, the one of " + cert);
  }
  if (SSL_CTX_check_private_key(native) != 1) {
    return Status(StatusCode::kIo, key + " is not the key of the certificate in " + cert);
  }
  return context;
}

}  // namespace sluice
