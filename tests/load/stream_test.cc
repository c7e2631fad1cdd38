// What comes over the wire, cut anywhere: HTTP, events, and what the events say.
#include <gtest/gtest.h>

#include <algorithm>

#include "src/load/dialect.h"
#include "src/load/events.h"
#include "src/load/reply.h"
#include "src/load/target.h"

namespace sluice::load {
namespace {

using std::chrono::milliseconds;
const LoadClock::time_point kBegin{};

// Feeds the text in pieces of `size`, a millisecond apart.
template <class Sink>
void InPieces(const std::string& text, size_t size, Sink* sink) {
  for (size_t at = 0, i = 0; at < text.size(); at += size, ++i) {
    sink->Feed(kBegin + milliseconds(i), std::string_view(text).substr(at, size));
  }
}

std::string Body(ReplyReader* reader) {
  std::string body;
  for (const StampedBytes& piece : reader->body()) body += piece.bytes;
  return body;
}

TEST(ReplyTest, HttpCutAnywhere) {
  const std::string chunked =
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
      "Transfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n10\r\n, wonderful worl\r\n1\r\nd\r\n"
      "0\r\nTrailer: x\r\n\r\n";
  const std::string counted = "HTTP/1.1 429 Busy\r\ncontent-length: 4\r\n\r\nbusy";
  for (size_t size = 1; size <= chunked.size(); ++size) {
    ReplyReader a, b;
    InPieces(chunked, size, &a);
    EXPECT_TRUE(a.done()) << size << a.error();
    EXPECT_EQ(a.status(), 200);
    EXPECT_EQ(a.content_type(), "text/event-stream");
    EXPECT_EQ(Body(&a), "hello, wonderful world");
    EXPECT_TRUE(a.keep_alive());
    InPieces(counted, size, &b);
    EXPECT_TRUE(b.done());
    EXPECT_EQ(b.status(), 429);
    EXPECT_EQ(Body(&b), "busy");
  }
}

TEST(ReplyTest, EndsOfConnections) {
  ReplyReader until_end;
  until_end.Feed(kBegin, "HTTP/1.1 200 OK\r\n\r\nall of it");
  EXPECT_FALSE(until_end.done());
  until_end.FeedEnd();
  EXPECT_TRUE(until_end.done());
  EXPECT_FALSE(until_end.keep_alive());
  EXPECT_EQ(Body(&until_end), "all of it");

  ReplyReader cut;
  cut.Feed(kBegin, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf");
  cut.FeedEnd();
  EXPECT_FALSE(cut.done());
  EXPECT_FALSE(cut.error().empty());
  EXPECT_EQ(Body(&cut), "half");

  for (const char* garbage : {"SSH-2.0-x\r\n\r\n", "HTTP/1.1 abc\r\n\r\n",
                              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    ReplyReader reader;
    reader.Feed(kBegin, garbage);
    EXPECT_FALSE(reader.error().empty()) << garbage;
    EXPECT_FALSE(reader.done());
  }
  ReplyReader more;
  more.Feed(kBegin, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab");
  EXPECT_FALSE(more.error().empty());
}

std::vector<std::string> Events(Framing framing, const std::string& text, size_t size) {
  EventSplitter splitter(framing);
  InPieces(text, size, &splitter);
  splitter.End();
  std::vector<std::string> data;
  for (const StreamEvent& e : splitter.events()) data.push_back(e.data);
  return data;
}

TEST(EventsTest, ServerSentEventsCutAnywhere) {
  const std::string text =
      ": ping\n\ndata: one\n\nevent: x\nid: 3\ndata:two\r\ndata: lines\r\n\r\ndata\rdata: \r\r"
      "database: no\n\n\ndata: last";
  const std::vector<std::string> expected = {"one", "two\nlines", "\n", "last"};
  for (size_t size = 1; size <= text.size(); ++size) {
    EXPECT_EQ(Events(Framing::kServerSent, text, size), expected) << size;
  }
}

TEST(EventsTest, LinesCutAnywhere) {
  const std::string text = "{\"a\":1}\n\n{\"b\":\r\n  \n{\"c\":3}";
  const std::vector<std::string> expected = {"{\"a\":1}", "{\"b\":", "{\"c\":3}"};
  for (size_t size = 1; size <= text.size(); ++size) {
    EXPECT_EQ(Events(Framing::kLines, text, size), expected) << size;
  }
}

TEST(EventsTest, AnEventHasTheTimeOfItsLastByte) {
  EventSplitter splitter(Framing::kServerSent);
  splitter.Feed(kBegin + milliseconds(1), "data: a");
  splitter.Feed(kBegin + milliseconds(2), "\n\ndata: b\n");
  splitter.Feed(kBegin + milliseconds(3), "\n");
  splitter.End();
  ASSERT_EQ(splitter.events().size(), 2u);
  EXPECT_EQ(splitter.events()[0].at, kBegin + milliseconds(2));
  EXPECT_EQ(splitter.events()[1].at, kBegin + milliseconds(3));
}

// An answer whose pieces came 10 ms apart, the first after 10.
Reply Answer(const std::vector<std::string>& pieces,
             const std::string& type = "text/event-stream") {
  Reply reply;
  reply.status = 200;
  reply.content_type = type;
  reply.sent = kBegin;
  for (const std::string& piece : pieces) {
    reply.end = kBegin + milliseconds(10 * (reply.body.size() + 1));
    reply.body.push_back({reply.end, piece});
  }
  return reply;
}

void ExpectTwoTokens(Dialect dialect, const Reply& reply) {
  const LoadSample s = ReadAnswer(dialect, kBegin, reply);
  EXPECT_TRUE(s.ok()) << s.error << ": " << s.detail;
  EXPECT_EQ(s.text_s, (std::vector<double>{0.02, 0.03}));
  EXPECT_TRUE(s.counted);
  EXPECT_EQ(s.prompt_tokens, 5u);
  EXPECT_EQ(s.output_tokens, 3u);
  EXPECT_EQ(s.cached_tokens, 4u);
  EXPECT_NEAR(s.tpot_s(), 0.005, 1e-9);
  EXPECT_NEAR(s.ttft_s(), 0.02, 1e-9);
  EXPECT_NEAR(s.e2e_s(), 0.04, 1e-9);
}

TEST(DialectTest, EachSaysTheSame) {
  const std::string usage =
      "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":3,"
      "\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\ndata: [DONE]\n\n";
  ExpectTwoTokens(
      Dialect::kOpenAi,
      Answer({"data: {\"choices\":[{\"text\":\"\"}]}\n\n",
              "data: {\"choices\":[{\"text\":\"a\"}]}\n\n",
              "data: {\"choices\":[{\"text\":\"b\",\"finish_reason\":\"stop\"}]}\n\n", usage}));
  ExpectTwoTokens(
      Dialect::kOpenAiChat,
      Answer({"data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":null}}]}\n\n",
              "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"a\"}}],\"usage\":null}\n\n",
              "data: {\"choices\":[{\"delta\":{\"content\":\"b\"}}]}\n\n", usage}));
  ExpectTwoTokens(
      Dialect::kOllama,
      Answer({"{\"response\":\"\",\"done\":false}\n", "{\"response\":\"a\",\"done\":false}\n",
              "{\"response\":\"b\",\"done\":false}\n",
              "{\"response\":\"\",\"done\":true,\"prompt_eval_count\":5,\"eval_count\":3,"
              "\"prompt_cached_count\":4}\n"},
             "application/x-ndjson"));
  ExpectTwoTokens(Dialect::kLlama,
                  Answer({"data: {\"content\":\"\",\"stop\":false}\n\n",
                          "data: {\"content\":\"a\",\"stop\":false}\n\n",
                          "data: {\"content\":\"b\",\"stop\":false,\"tokens_predicted\":2}\n\n",
                          "data: {\"content\":\"\",\"stop\":true,\"tokens_predicted\":3,"
                          "\"tokens_evaluated\":5,\"timings\":{\"cache_n\":4}}\n\n"}));
}

TEST(DialectTest, NoFailureIsLost) {
  const auto kind = [](const Reply& reply) {
    return ReadAnswer(Dialect::kOpenAi, kBegin, reply).error;
  };
  const std::string token = "data: {\"choices\":[{\"text\":\"a\"}]}\n\n";
  EXPECT_EQ(kind(Answer({token})), "cut off");
  EXPECT_EQ(kind(Answer({token, "data: {\"error\":{\"message\":\"broken\"}}\n\n"})),
            "error in the stream");
  EXPECT_EQ(kind(Answer({token, "data: {nonsense\n\n"})), "not understood");
  EXPECT_EQ(kind(Answer({token, "data: 17\n\n"})), "not understood");
  EXPECT_EQ(kind(Answer({"data: [DONE]\n\n"})), "no text");
  EXPECT_EQ(kind(Answer({"<html>hello"}, "text/html")), "not understood");
  Reply busy = Answer({"{\"error\":{\"message\":\"queue\\nfull\"}}"}, "application/json");
  busy.status = 429;
  EXPECT_EQ(kind(busy), "http 429");
  EXPECT_EQ(ReadAnswer(Dialect::kOpenAi, kBegin, busy).detail, "queue\\x0Afull");
  Reply reset = Answer({token});
  reset.error = "reset";
  EXPECT_EQ(kind(reset), "reset");
}

TEST(DialectTest, RequestsAreWhatTheServersExpect) {
  RequestOptions o;
  o.model = "m";
  LoadPrompt p;
  p.ids = {5, 6};
  p.output_tokens = 3;
  const auto body = [&](Dialect d) {
    o.dialect = d;
    return boost::json::parse(MakeRequest(o, p).body).get_object();
  };
  EXPECT_EQ(body(Dialect::kOpenAi).at("prompt").get_array().size(), 2u);
  EXPECT_EQ(body(Dialect::kOpenAi).at("max_tokens"), 3);
  EXPECT_EQ(body(Dialect::kLlama).at("n_predict"), 3);
  p.ids.clear();
  p.text = "hi";
  EXPECT_EQ(body(Dialect::kOllama).at("options").at("num_predict"), 3);
  EXPECT_EQ(body(Dialect::kOpenAiChat).at("messages").at(0).at("content"), "hi");
  EXPECT_EQ(body(Dialect::kOpenAiChat).at("ignore_eos"), true);
  o.ignore_eos = false;
  o.extra = {{"temperature", 1}, {"seed", 4}};
  EXPECT_EQ(body(Dialect::kOpenAi).count("ignore_eos"), 0u);
  EXPECT_EQ(body(Dialect::kOpenAi).at("temperature"), 1);
  EXPECT_EQ(body(Dialect::kOpenAi).at("seed"), 4);
}

TEST(TargetTest, UrlsAreTakenApart) {
  const auto parsed = [](const std::string& url) {
    const Result<Target> t = ParseTarget(url);
    return t.ok() ? (t->tls ? "tls " : "") + t->host + "|" + t->port + "|" + t->prefix + "|" +
                        t->unix_path
                  : "error";
  };
  EXPECT_EQ(parsed("http://127.0.0.1:8080"), "127.0.0.1|8080||");
  EXPECT_EQ(parsed("http://host/v1/"), "host|80||");
  EXPECT_EQ(parsed("https://host/proxy/v1"), "tls host|443|/proxy|");
  EXPECT_EQ(parsed("localhost:11434"), "localhost|11434||");
  EXPECT_EQ(parsed("http://[::1]:8080/"), "::1|8080||");
  EXPECT_EQ(parsed("unix:/run/s.sock"), "localhost|||/run/s.sock");
  for (const char* bad : {"", "ftp://x", "http://", "http://x:0", "http://x:99999", "http://x:y",
                          "http://a b", "http://u:p@x", "http://x?q=1", "http://[::1", "unix:"}) {
    EXPECT_EQ(parsed(bad), "error") << bad;
  }
}

}  // namespace
}  // namespace sluice::load
