// Ports, addresses, Unix sockets, TLS.
#include <gtest/gtest.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/base/temp_folder.h"
#include "tests/server/running_server.h"

namespace sluice {
namespace {

const char kHealth[] = "GET /health HTTP/1.1\r\n\r\n";

bool HasIpv6() {
  const int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const bool has = fd >= 0 && bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  if (fd >= 0) close(fd);
  return has;
}

uint16_t PortOf(const std::string& url) {
  return static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
}

TEST(HttpListen, EveryPortOfTheList) {
  HttpOptions options;
  options.ports = {0, 0, 0};
  RunningServer s(options);
  const auto addresses = s.server->addresses();
  ASSERT_EQ(addresses.size(), 3u);
  for (const std::string& address : addresses) {
    EXPECT_EQ(address.rfind("http://127.0.0.1:", 0), 0u) << address;
    EXPECT_EQ(RawClient(PortOf(address)).Ask(kHealth).body, "ok") << address;
  }
}

TEST(HttpListen, Ipv6AndNames) {
  if (!HasIpv6()) GTEST_SKIP() << "no IPv6 here";
  for (const char* host : {"::1", "[::1]"}) {
    HttpOptions options;
    options.host = host;
    RunningServer s(options);
    EXPECT_EQ(s.server->addresses()[0], "http://[::1]:" + std::to_string(s.port));
    EXPECT_EQ(RawClient(s.port, true).Ask(kHealth).body, "ok");
    EXPECT_NE(s.LogWith("/health").find(" ip=::1"), std::string::npos);
  }
  HttpOptions all;
  all.host = "::";
  RunningServer s(all);
  EXPECT_EQ(RawClient(s.port, true).Ask(kHealth).body, "ok");
  EXPECT_EQ(RawClient(s.port, false).Ask(kHealth).body, "ok") << "IPv4 reaches :: too";
  EXPECT_NE(s.LogWith(" ip=127.0.0.1"), "");
}

TEST(HttpListen, WhatCannotBeHad) {
  RunningServer s;
  HttpOptions options;
  options.ports = {s.port};
  HttpServer taken(options, nullptr);
  const Status status = taken.Start({});
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_NE(status.message().find(std::to_string(s.port)), std::string::npos) << status.message();
  options.ports = {0};
  options.host = "192.0.2.1";  // documentation's, nobody's
  EXPECT_EQ(HttpServer(options, nullptr).Start({}).code(), StatusCode::kIo);
  options.ports.clear();
  EXPECT_EQ(HttpServer(options, nullptr).Start({}).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(s.Healthy());
}

TEST(HttpListen, AddressesAreTakenBeforeTheStart) {
  RunningServer s;
  HttpOptions options;
  options.ports = {s.port};
  EXPECT_EQ(HttpServer(options, nullptr).TakeAddresses().code(), StatusCode::kIo);

  TempFolder folder;
  options.ports = {0};
  options.unix_path = folder.path() + "/sluice.sock";
  {
    HttpServer never_started(options, nullptr);
    ASSERT_TRUE(never_started.TakeAddresses().ok());
    EXPECT_TRUE(never_started.addresses().empty()) << "nobody listens there yet";
    EXPECT_FALSE(std::filesystem::exists(options.unix_path));
  }
  HttpServer server(options, nullptr);
  ASSERT_TRUE(server.TakeAddresses().ok());
  ASSERT_TRUE(server.Start({}).ok());
  EXPECT_EQ(server.addresses().size(), 2u);
  HttpServer other(options, nullptr);
  EXPECT_EQ(other.TakeAddresses().code(), StatusCode::kIo) << "a server listens on the socket";
  EXPECT_EQ(RawClient(options.unix_path).Ask("GET / HTTP/1.1\r\nHost: x\r\n\r\n").status, 404);
}

// Two servers that load at once: the second is told so before its load.
TEST(HttpListen, AnAddressIsTakenOnce) {
  HttpOptions options;
  {
    RunningServer s;  // whose port is free afterwards
    options.ports = {s.port, s.port};
  }
  EXPECT_EQ(HttpServer(options, nullptr).TakeAddresses().code(), StatusCode::kIo);
  options.ports.resize(1);
  HttpServer first(options, nullptr);
  ASSERT_TRUE(first.TakeAddresses().ok());
  EXPECT_EQ(HttpServer(options, nullptr).TakeAddresses().code(), StatusCode::kIo);
  EXPECT_TRUE(first.Start({}).ok());
}

// A name for every address of IPv4 and of IPv6, which includes IPv4's.
TEST(HttpListen, EveryAddressOfAName) {
  HttpOptions options;
  options.host = "";
  RunningServer s(options);
  EXPECT_EQ(RawClient(s.port, false).Ask(kHealth).body, "ok");
}

TEST(HttpListen, UnixSocket) {
  TempFolder folder;
  const std::string path = folder.path() + "/sluice.sock";
  HttpOptions options;
  options.unix_path = path;
  {
    RunningServer s(options);
    EXPECT_EQ(s.server->addresses().back(), "unix:" + path);
    EXPECT_EQ(RawClient(path).Ask(kHealth).body, "ok");
    EXPECT_NE(s.LogWith(" ip=unix"), "");
    HttpServer second(options, nullptr);
    EXPECT_EQ(second.Start({}).code(), StatusCode::kIo) << "in use";
    EXPECT_EQ(RawClient(path).Ask(kHealth).body, "ok");
  }
  EXPECT_FALSE(std::filesystem::exists(path)) << "removed at the end";
  // One that a server left behind when it was killed.
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  close(fd);
  options.ports.clear();
  {
    RunningServer s(options);
    EXPECT_EQ(RawClient(path).Ask(kHealth).body, "ok");
    EXPECT_EQ(s.server->addresses().size(), 1u);
  }
  std::ofstream(path) << "a file that matters";
  EXPECT_EQ(HttpServer(options, nullptr).Start({}).code(), StatusCode::kIo);
  EXPECT_TRUE(std::filesystem::exists(path));
  options.unix_path = folder.path() + "/" + std::string(120, 'x');
  EXPECT_EQ(HttpServer(options, nullptr).Start({}).code(), StatusCode::kIo);
}

// A key and a certificate that it has signed itself, as PEM files.
class Certificate {
 public:
  explicit Certificate(const std::string& folder)
      : cert(folder + "/cert.pem"), key(folder + "/key.pem") {
    EVP_PKEY* const pkey = EVP_EC_gen("P-256");
    X509* const x509 = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
    X509_gmtime_adj(X509_getm_notBefore(x509), -60);
    X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
    X509_set_pubkey(x509, pkey);
    X509_NAME* const name = X509_get_subject_name(x509);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("localhost"), -1, -1, 0);
    X509_set_issuer_name(x509, name);
    X509_sign(x509, pkey, EVP_sha256());
    FILE* file = fopen(cert.c_str(), "w");
    PEM_write_X509(file, x509);
    fclose(file);
    file = fopen(key.c_str(), "w");
    PEM_write_PrivateKey(file, pkey, nullptr, nullptr, 0, nullptr, nullptr);
    fclose(file);
    X509_free(x509);
    EVP_PKEY_free(pkey);
  }
  const std::string cert, key;
};

class TlsClient {
 public:
  explicit TlsClient(uint16_t port, int max_version = 0)
      : raw_(port), context_(SSL_CTX_new(TLS_client_method())) {
    SSL_CTX_set_cipher_list(context_, "ALL:@SECLEVEL=0");  // to be able to offer old versions
    if (max_version != 0) {
      SSL_CTX_set_min_proto_version(context_, max_version);
      SSL_CTX_set_max_proto_version(context_, max_version);
    }
    ssl_ = SSL_new(context_);
    SSL_set_fd(ssl_, raw_.fd());
    const timeval limit{10, 0};
    setsockopt(raw_.fd(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    connected_ = SSL_connect(ssl_) == 1;
  }
  ~TlsClient() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
    ERR_clear_error();
  }
  bool connected() const { return connected_; }
  std::string version() const { return SSL_get_version(ssl_); }
  bool Send(const std::string& text) {
    return SSL_write(ssl_, text.data(), static_cast<int>(text.size())) ==
           static_cast<int>(text.size());
  }
  // Until `end` has come, or the connection has ended.
  std::string ReceiveUntil(const std::string& end) {
    std::string text;
    char buffer[16384];
    while (end.empty() || text.find(end) == std::string::npos) {
      const int n = SSL_read(ssl_, buffer, sizeof(buffer));
      if (n <= 0) {
        error_ = SSL_get_error(ssl_, n);
        break;
      }
      text.append(buffer, static_cast<size_t>(n));
    }
    return text;
  }
  int error() const { return error_; }
  RawClient& raw() { return raw_; }

 private:
  RawClient raw_;
  SSL_CTX* context_;
  SSL* ssl_;
  bool connected_ = false;
  int error_ = 0;
};

class HttpTls : public testing::Test {
 protected:
  HttpTls() : certificate_(folder_.path()) {
    options_.tls_cert = certificate_.cert;
    options_.tls_key = certificate_.key;
  }
  TempFolder folder_;
  Certificate certificate_;
  HttpOptions options_;
};

TEST_F(HttpTls, AnswersAndStreams) {
  RunningServer s(options_);
  EXPECT_EQ(s.server->addresses()[0].rfind("https://127.0.0.1:", 0), 0u);
  TlsClient client(s.port);
  ASSERT_TRUE(client.connected());
  EXPECT_EQ(client.version(), "TLSv1.3");
  ASSERT_TRUE(client.Send("GET /stream HTTP/1.1\r\n\r\nGET /get?q=7 HTTP/1.1\r\n\r\n"));
  const std::string text = client.ReceiveUntil("got 7");
  EXPECT_NE(text.find("data: 4\n\n\r\n0\r\n\r\n"), std::string::npos);
  // A body of many records, and a proper goodbye after it.
  const std::string body(300000, 'b');
  std::thread sender([&] {
    client.Send("POST /echo HTTP/1.1\r\nConnection: close\r\nContent-Length: 300000\r\n\r\n" +
                body);
  });
  sender.join();
  const std::string echoed = client.ReceiveUntil("");
  EXPECT_EQ(echoed.substr(echoed.find("\r\n\r\n") + 4), body);
  EXPECT_EQ(client.error(), SSL_ERROR_ZERO_RETURN) << "close_notify";
}

TEST_F(HttpTls, VersionsFrom12On) {
  RunningServer s(options_);
  EXPECT_EQ(TlsClient(s.port, TLS1_2_VERSION).version(), "TLSv1.2");
  EXPECT_TRUE(TlsClient(s.port, TLS1_2_VERSION).connected());
  EXPECT_FALSE(TlsClient(s.port, TLS1_1_VERSION).connected());
  EXPECT_TRUE(TlsClient(s.port).connected());
}

TEST_F(HttpTls, ClientsThatGoAwayAreNoticed) {
  RunningServer s(options_);
  for (int i = 1; i <= 4; ++i) {
    TlsClient client(s.port);
    ASSERT_TRUE(
        client.Send(i % 2 ? "GET /endless HTTP/1.1\r\n\r\n" : "GET /silent HTTP/1.1\r\n\r\n"));
    if (i % 2)
      ASSERT_NE(client.ReceiveUntil("tick"), "");
    else
      ASSERT_TRUE(
          Eventually([&] { return s.server->counters().requests == static_cast<unsigned>(i); }));
    Sleep(10);
    if (i > 2)
      client.raw().Reset();
    else
      client.raw().Close();
    EXPECT_TRUE(Eventually([&] { return s.gone == i; })) << i;
  }
  EXPECT_EQ(s.server->counters().disconnects, 4u);
}

TEST_F(HttpTls, PlainBytesAndSilentHandshakes) {
  options_.header_timeout_s = 0.1;
  RunningServer s(options_);
  EXPECT_EQ(s.Get("/health").status, 0);
  EXPECT_EQ(s.server->counters().bad_requests, 1u);
  RawClient silent = s.Client();
  EXPECT_EQ(silent.ReceiveAll(), "");
  EXPECT_TRUE(silent.ended());
  EXPECT_EQ(s.server->counters().timeouts, 1u);
  EXPECT_TRUE(TlsClient(s.port).connected());
}

TEST_F(HttpTls, DrainAndEnd) {
  auto s = std::make_unique<RunningServer>(options_);
  TlsClient idle(s->port), stream(s->port), handshake_only(s->port);
  ASSERT_TRUE(stream.Send("GET /endless HTTP/1.1\r\n\r\n"));
  ASSERT_NE(stream.ReceiveUntil("tick"), "");
  s->server->Drain(0.05);
  EXPECT_TRUE(Eventually([&] { return s->gone == 1; }));
  s.reset();
}

TEST_F(HttpTls, NotThroughAUnixSocket) {
  options_.unix_path = folder_.path() + "/sluice.sock";
  RunningServer s(options_);
  EXPECT_EQ(RawClient(options_.unix_path).Ask(kHealth).body, "ok");
  EXPECT_TRUE(TlsClient(s.port).connected());
}

TEST_F(HttpTls, FilesThatCannotBeUsed) {
  const auto start = [&] { return HttpServer(options_, nullptr).Start({}); };
  options_.ports = {0};
  options_.tls_key.clear();
  EXPECT_EQ(start().code(), StatusCode::kInvalidArgument);
  options_.tls_key = folder_.path() + "/nothing.pem";
  EXPECT_EQ(start().code(), StatusCode::kIo);
  std::filesystem::create_directory(folder_.path() + "/other");
  const Certificate other(folder_.path() + "/other");
  options_.tls_key = other.key;
  const Status status = start();
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_NE(status.message().find(other.key), std::string::npos) << status.message();
  options_.tls_cert = other.key;
  EXPECT_EQ(start().code(), StatusCode::kIo);
}

}  // namespace
}  // namespace sluice
