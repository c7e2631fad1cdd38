// What is no request, or more of one than the limits allow, and requests in pieces.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <random>

#include "src/server/http_reader.h"
#include "tests/server/running_server.h"

namespace sluice {
namespace {

TEST(HttpMalformed, IsRefusedAndTheServerGoesOn) {
  RunningServer s;
  const std::string post = "POST /echo HTTP/1.1\r\n";
  const std::string chunked = post + "Transfer-Encoding: chunked\r\n\r\n";
  const std::pair<const char*, std::string> cases[] = {
      {"no version", "GET /\r\n"},
      {"garbage", "hello there\r\n"},
      {"only garbage bytes", std::string("\x80\xff\xfe garbage")},
      {"a TLS hello", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11)},
      {"NUL in the line", std::string("GET /\0x HTTP/1.1\r\n\r\n", 20)},
      {"NUL in a header", std::string("GET / HTTP/1.1\r\nA: b\0c\r\n\r\n", 26)},
      {"bare LF", "GET / HTTP/1.1\nHost: x\n\n"},
      {"bare CR", "GET / HTTP/1.1\r\nA: b\rc\r\n\r\n"},
      {"folded header", "GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n"},
      {"header without a name", "GET / HTTP/1.1\r\n: b\r\n\r\n"},
      {"header without a colon", "GET / HTTP/1.1\r\nabc\r\n\r\n"},
      {"blank before the colon", "GET / HTTP/1.1\r\nHost : x\r\n\r\n"},
      {"method with a colon", "G:T / HTTP/1.1\r\n\r\n"},
      {"two blanks", "GET  / HTTP/1.1\r\n\r\n"},
      {"blank in the target", "GET /a b HTTP/1.1\r\n\r\n"},
      {"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"},
      {"length and coding",
       post + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"coding and length",
       post + "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"},
      {"two lengths", post + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc"},
      {"the same length twice", post + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"},
      {"a list of lengths", post + "Content-Length: 3, 3\r\n\r\nabc"},
      {"negative length", post + "Content-Length: -1\r\n\r\n"},
      {"signed length", post + "Content-Length: +1\r\n\r\na"},
      {"hex length", post + "Content-Length: 0x3\r\n\r\nabc"},
      {"length with a comma", post + "Content-Length: 1,\r\n\r\na"},
      {"empty length", post + "Content-Length:\r\n\r\n"},
      {"endless length", post + "Content-Length: 99999999999999999999999999\r\n\r\n"},
      {"other coding", post + "Transfer-Encoding: gzip\r\n\r\n"},
      {"list of codings", post + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
      {"chunked of HTTP/1.0", "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"chunk without size", chunked + "\r\nabc\r\n"},
      {"chunk size no number", chunked + "xyz\r\n"},
      {"negative chunk size", chunked + "-1\r\n"},
      {"chunk too long for its size", chunked + "3\r\nabcd\r\n0\r\n\r\n"},
      {"chunk with bare LF", chunked + "3\nabc\n0\n\n"},
      {"control character in extension", chunked + "3;a=\x01\r\nabc\r\n0\r\n\r\n"},
      {"endless chunk line", chunked + "3;" + std::string(5000, 'a')},
  };
  for (const auto& [what, bytes] : cases) {
    const uint64_t before = s.server->counters().bad_requests;
    RawClient client = s.Client();
    const RawAnswer answer = client.Ask(bytes);
    EXPECT_EQ(answer.status, 400) << what;
    EXPECT_EQ(answer.Header("Connection"), "close") << what;
    EXPECT_TRUE(boost::json::parse(answer.body).at("error").at("message").is_string()) << what;
    EXPECT_EQ(client.ReceiveAll(), "") << what;
    EXPECT_TRUE(client.ended()) << what << ": nothing after it is believed";
    EXPECT_EQ(s.server->counters().bad_requests, before + 1) << what;
  }
  EXPECT_EQ(s.Ask("GET / HTTP/2.0\r\n\r\n").status, 505);
  EXPECT_TRUE(s.Healthy());
}

TEST(HttpMalformed, BlankLinesBeforeARequestAreSkipped) {
  RunningServer s;
  EXPECT_EQ(s.Ask("\r\n\r\nGET / HTTP/1.1\r\n\r\n").body, "root");
}

TEST(HttpLimits, Bodies) {
  HttpOptions options;
  options.max_body_bytes = 100;
  RunningServer s(options);
  const std::string post = "POST /echo HTTP/1.1\r\n";
  EXPECT_EQ(s.Ask(post + "Content-Length: 100\r\n\r\n" + std::string(100, 'x')).status, 200);
  for (const std::string& big :
       {std::string("Content-Length: 101\r\n\r\n"),
        std::string("Content-Length: 18446744073709551615\r\n\r\n"),
        std::string("Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n"),
        std::string("Transfer-Encoding: chunked\r\n\r\nfffffffffffffffffffff\r\n"),
        "Transfer-Encoding: chunked\r\n\r\n64\r\n" + std::string(100, 'x') + "\r\n1\r\nx\r\n"}) {
    const RawAnswer answer = s.Ask(post + big);
    EXPECT_EQ(answer.status, 413) << big;
    EXPECT_EQ(answer.Header("Connection"), "close");
  }
  // A client that sends all of it before it reads still gets to know.
  EXPECT_EQ(s.Ask(post + "Content-Length: 3000000\r\n\r\n" + std::string(3000000, 'x')).status,
            413);
  EXPECT_EQ(s.server->counters().body_too_large, 6u);
  EXPECT_TRUE(s.Healthy());
}

TEST(HttpLimits, Headers) {
  HttpOptions options;
  options.max_header_bytes = 1000;
  options.max_header_count = 10;
  RunningServer s(options);
  std::string ten, eleven;
  for (int i = 0; i < 10; ++i) ten += "A" + std::to_string(i) + ": b\r\n";
  eleven = ten + "B: c\r\n";
  EXPECT_EQ(s.Get("/health", ten.substr(ten.find('\n') + 1)).status, 200);  // and Host
  EXPECT_EQ(s.Get("/health", eleven).status, 431);
  EXPECT_EQ(s.Get("/health", "A: " + std::string(900, 'x') + "\r\n").status, 200);
  EXPECT_EQ(s.Get("/health", "A: " + std::string(1000, 'x') + "\r\n").status, 431);
  EXPECT_EQ(s.Get("/" + std::string(1000, 'x')).status, 431);
  EXPECT_EQ(s.Ask(std::string(100000, 'A')).status, 431) << "before a line ends";
  EXPECT_EQ(s.server->counters().headers_too_large, 4u);
  EXPECT_TRUE(s.Healthy());
}

TEST(HttpLimits, Timeouts) {
  HttpOptions options;
  options.header_timeout_s = 0.1;
  options.body_timeout_s = 0.2;
  options.idle_timeout_s = 0.3;
  RunningServer s(options);
  RawClient head = s.Client(), body = s.Client(), silent = s.Client(), kept = s.Client();
  ASSERT_TRUE(head.Send("GET / HTT"));
  ASSERT_TRUE(body.Send("POST /echo HTTP/1.1\r\nContent-Length: 5\r\n\r\nab"));
  EXPECT_EQ(kept.Ask("GET / HTTP/1.1\r\n\r\n").status, 200);
  EXPECT_EQ(head.Answer().status, 408);
  const RawAnswer answer = body.Answer();
  EXPECT_EQ(answer.status, 408);
  EXPECT_EQ(answer.Header("Connection"), "close");
  EXPECT_EQ(silent.ReceiveAll(), "");
  EXPECT_TRUE(silent.ended());
  EXPECT_EQ(kept.ReceiveAll(), "");
  EXPECT_TRUE(kept.ended());
  EXPECT_EQ(s.server->counters().timeouts, 2u);
}

TEST(HttpLimits, DroppingBytesDoesNotExtendTheTimeForHeaders) {
  HttpOptions options;
  options.header_timeout_s = 0.2;
  RunningServer s(options);
  RawClient client = s.Client();
  ASSERT_TRUE(client.Send("GET / HTTP/1.1\r\n"));
  std::string answer;
  for (int i = 0; i < 1000 && answer.empty(); ++i) {
    if (!client.Send("A")) break;
    answer = client.Receive(10);
  }
  EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 408");
}

TEST(HttpLimits, Connections) {
  HttpOptions options;
  options.max_connections = 3;
  RunningServer s(options);
  std::vector<RawClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(s.Client());
    EXPECT_EQ(clients.back().Ask("GET / HTTP/1.1\r\n\r\n").status, 200);
  }
  const RawAnswer refused = s.Get("/health");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.Header("Connection"), "close");
  EXPECT_EQ(boost::json::parse(refused.body).at("error").at("type"), "unavailable_error");
  EXPECT_EQ(s.server->counters().refused_connections, 1u);
  EXPECT_EQ(clients[0].Ask("GET / HTTP/1.1\r\n\r\n").status, 200);
  clients.clear();
  EXPECT_TRUE(Eventually([&] { return s.Healthy(); }));
}

TEST(HttpPieces, RequestsSplitAtEveryByte) {
  RunningServer s;
  const std::string request =
      "POST /echo HTTP/1.1\r\nHost: x\r\nX-Request-Id: split\r\nContent-Length: 5\r\n\r\nhello"
      "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nwo\r\n3;x\r\nrld\r\n0\r\n\r\n";
  RawClient client = s.Client();
  for (size_t at = 1; at < request.size(); ++at) {
    ASSERT_TRUE(client.Send(request.substr(0, at)));
    if (at % 8 == 0) Sleep(1);  // so that some arrive apart for sure
    ASSERT_TRUE(client.Send(request.substr(at)));
    ASSERT_EQ(client.Answer().body, "hello") << at;
    ASSERT_EQ(client.Answer().body, "world") << at;
  }
  for (const char c : request) ASSERT_TRUE(client.Send(std::string(1, c)));
  EXPECT_EQ(client.Answer().body, "hello");
  EXPECT_EQ(client.Answer().body, "world");
}

// The reader as the connection uses it, fed in pieces that end where `cuts` says.
std::string Read(const std::string& bytes, const std::vector<size_t>& cuts) {
  HttpReader reader({1000, 20, 1000});
  std::string input, result;
  size_t from = 0;
  for (const size_t to : cuts) {
    input += bytes.substr(from, to - from);
    from = to;
    while (!input.empty() || result == "head") {
      size_t used = 0;
      const auto step = reader.Next(input, &used);
      input.erase(0, used);
      if (step == HttpReader::Step::kNeedMore) break;
      if (step == HttpReader::Step::kError) return "error " + std::to_string(reader.error_status());
      if (step == HttpReader::Step::kDone) {
        return reader.head().method + reader.head().target + "|" + reader.TakeBody() + "|" + input +
               bytes.substr(from);
      }
      result = "head";
    }
  }
  return "incomplete";
}

TEST(HttpPieces, ByteByByteIsTheSameAsWhole) {
  const std::string requests[] = {
      "GET /a HTTP/1.1\r\n\r\nnext",
      "\r\nGET /a HTTP/1.0\r\nA: b\r\n\r\nnext",
      "POST /a HTTP/1.1\r\nContent-Length: 4\r\n\r\nbodynext",
      "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nnext",
      "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nT: u\r\n\r\nnext",
      "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbodyX\r\n0\r\n\r\nnext",
      "POST /a HTTP/1.1\r\nContent-Length: 4000\r\n\r\nbodynext",
  };
  for (const std::string& bytes : requests) {
    const std::string whole = Read(bytes, {bytes.size()});
    EXPECT_NE(whole, "incomplete");
    std::vector<size_t> every;
    for (size_t i = 1; i <= bytes.size(); ++i) every.push_back(i);
    EXPECT_EQ(Read(bytes, every), whole) << bytes;
    for (size_t i = 1; i < bytes.size(); ++i) EXPECT_EQ(Read(bytes, {i, bytes.size()}), whole);
  }
}

TEST(HttpPieces, ChangedBytesNeverEndTheReader) {
  const std::string requests[] = {
      "POST /a?b=%20 HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, x\r\nContent-Length: "
      "4\r\n\r\nbody",
      "POST /a HTTP/1.1\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n"
      "4;a=b\r\nbody\r\n0\r\nT: u\r\n\r\n",
  };
  std::mt19937 random(7);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = requests[i % 2];
    for (int n = 1 + static_cast<int>(random() % 4); n > 0; --n) {
      const size_t at = random() % bytes.size();
      switch (random() % 3) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 20));
          break;
        default:
          bytes.erase(at, random() % 10);
      }
      if (bytes.empty()) bytes = "x";
    }
    const size_t cut = random() % bytes.size();
    EXPECT_EQ(Read(bytes, {cut, bytes.size()}), Read(bytes, {bytes.size()})) << bytes;
  }
}

}  // namespace
}  // namespace sluice
