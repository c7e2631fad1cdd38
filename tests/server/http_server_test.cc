// Routes, keys, CORS, request ids, keep-alive, the log: what a well-behaved client sees.
#include "src/server/http_server.h"

#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <condition_variable>
#include <future>
#include <set>

#include "tests/server/running_server.h"

namespace sluice {
namespace {

TEST(HttpServer, AnswersAndKeepsTheConnection) {
  RunningServer s;
  RawClient client = s.Client();
  for (int i = 0; i < 3; ++i) {
    const RawAnswer answer = client.Ask("GET /get?q=a%20b+c HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "got a b c");
    EXPECT_EQ(answer.Header("Content-Type"), "text/plain");
    EXPECT_EQ(answer.Header("Connection"), "");
    EXPECT_NE(answer.Header("Date"), "");
  }
  EXPECT_EQ(s.server->counters().connections, 1u);
  EXPECT_EQ(s.server->counters().requests, 3u);
}

TEST(HttpServer, ClosesWhenAsked) {
  RunningServer s;
  RawClient client = s.Client();
  EXPECT_EQ(client.Ask("GET / HTTP/1.1\r\nConnection: close\r\n\r\n").Header("Connection"),
            "close");
  EXPECT_EQ(client.ReceiveAll(), "");
  EXPECT_TRUE(client.ended());
}

TEST(HttpServer, Http10ClosesUnlessKept) {
  RunningServer s;
  RawClient client = s.Client();
  EXPECT_EQ(client.Ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n").Header("Connection"),
            "keep-alive");
  EXPECT_EQ(client.Ask("GET / HTTP/1.0\r\n\r\n").body, "root");
  EXPECT_EQ(client.ReceiveAll(), "");
  EXPECT_TRUE(client.ended());
}

TEST(HttpServer, HeadHasNoBody) {
  RunningServer s;
  RawClient client = s.Client();
  const RawAnswer head = client.Ask("HEAD /get HTTP/1.1\r\nHost: x\r\n\r\n", true);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.Header("Content-Length"), "4");
  EXPECT_EQ(client.Ask("HEAD /stream HTTP/1.1\r\n\r\n", true).Header("Transfer-Encoding"),
            "chunked");
  EXPECT_EQ(client.Ask("HEAD /nowhere HTTP/1.1\r\n\r\n", true).status, 404);
  EXPECT_EQ(client.Ask("GET / HTTP/1.1\r\n\r\n").body, "root");
}

TEST(HttpServer, PipelinedRequestsAreAnsweredInOrder) {
  // The first is slow and the second quick: they must not overtake each other.
  RunningServer s({}, {{"GET", "/slow", [](auto x) {
                          Sleep(50);
                          HttpResponse response;
                          response.body = "slow";
                          x->Respond(response);
                        }}});
  RawClient client = s.Client();
  std::string requests = "GET /slow HTTP/1.1\r\n\r\nGET /health HTTP/1.1\r\n\r\n";
  requests += "POST /echo HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc";
  requests += "GET /stream HTTP/1.1\r\n\r\n";
  for (int i = 0; i < 300; ++i) requests += "GET /get?q=" + std::to_string(i) + " HTTP/1.1\r\n\r\n";
  ASSERT_TRUE(client.Send(requests));
  EXPECT_EQ(client.Answer().body, "slow");
  EXPECT_EQ(client.Answer().body, "ok");
  EXPECT_EQ(client.Answer().body, "abc");
  EXPECT_EQ(client.Answer().body, "data: 0\n\ndata: 1\n\ndata: 2\n\ndata: 3\n\ndata: 4\n\n");
  for (int i = 0; i < 300; ++i) ASSERT_EQ(client.Answer().body, "got " + std::to_string(i));
}

TEST(HttpServer, LargeBodiesComeThrough) {
  RunningServer s;
  std::string body(5 << 20, 'x');
  for (size_t i = 0; i < body.size(); i += 977) body[i] = static_cast<char>('a' + i % 26);
  RawClient client = s.Client();
  // Sent from a thread: the server reads and answers while it still comes.
  std::thread sender([&] {
    client.Send("POST /echo HTTP/1.1\r\nContent-Length: " + std::to_string(body.size()) +
                "\r\n\r\n");
    client.Send(body);
  });
  const RawAnswer answer = client.Answer();
  sender.join();
  EXPECT_EQ(answer.status, 200);
  EXPECT_TRUE(answer.body == body);
}

TEST(HttpServer, ChunkedRequestBodies) {
  RunningServer s;
  const RawAnswer answer = s.Ask(
      "POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n0A;name=value\r\n0123456789\r\n0\r\nTrailer: ignored\r\n\r\n");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "abc0123456789");
}

TEST(HttpServer, Expect100Continue) {
  RunningServer s;
  RawClient client = s.Client();
  const std::string head =
      "POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n";
  EXPECT_EQ(client.Ask(head).status, 100);
  EXPECT_EQ(client.Ask("hi").body, "hi");
  // One that will be refused is not asked for its body.
  RawClient other = s.Client();
  const RawAnswer refused =
      other.Ask("POST /nowhere HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(refused.status, 404);
  EXPECT_EQ(refused.Header("Connection"), "close");
}

TEST(HttpServer, RoutesAndCaptures) {
  RunningServer s;
  EXPECT_EQ(s.Get("/slots/7").body, "slot 7");
  EXPECT_EQ(s.Get("/slots/a%2Fb%20c").body, "slot a/b c");
  EXPECT_EQ(s.Get("/slots/all").body, "all slots") << "a literal segment wins";
  EXPECT_EQ(s.Get("http://example.org/slots/9?x=y").body, "slot 9") << "as a proxy sends it";
  EXPECT_EQ(s.Get("/").body, "root");
  for (const char* path : {"/slots", "/slots/", "/slots/1/2", "/GET", "//", "/get/", "*"}) {
    EXPECT_EQ(s.Get(path).status, 404) << path;
  }
  for (const char* path : {"/%zz", "/get?q=%f", "/a%00b", "/%ff", "/get?q=%c3", "nopath"}) {
    EXPECT_EQ(s.Get(path).status, 400) << path;
  }
}

TEST(HttpServer, ErrorsHaveTheShapeOfTheirApi) {
  RunningServer s;
  const auto openai = boost::json::parse(s.Get("/v1/nothing").body).at("error");
  EXPECT_EQ(openai.at("type"), "not_found_error");
  EXPECT_TRUE(openai.at("message").is_string());
  EXPECT_TRUE(openai.at("param").is_null());
  EXPECT_TRUE(openai.at("code").is_null());
  EXPECT_TRUE(boost::json::parse(s.Get("/api/nothing").body).at("error").is_string());
  const RawAnswer method = s.Get("/echo");
  EXPECT_EQ(method.status, 405);
  EXPECT_EQ(method.Header("Allow"), "POST, OPTIONS");
  EXPECT_EQ(s.Ask("BREW /get HTTP/1.1\r\n\r\n").Header("Allow"), "GET, HEAD, OPTIONS");
  const RawAnswer ollama = s.Get("/api/delete");
  EXPECT_EQ(ollama.status, 405);
  EXPECT_TRUE(boost::json::parse(ollama.body).at("error").is_string());
}

TEST(HttpServer, ErrorBodyIsValidJson) {
  const std::string body =
      ErrorBody(ErrorShape::kOpenAi, 400, "quote \" line\n\xff bad", "max_tokens", "too_long");
  const auto error = boost::json::parse(body).at("error");
  EXPECT_EQ(error.at("message"), "quote \" line\n\xEF\xBF\xBD bad");
  EXPECT_EQ(error.at("type"), "invalid_request_error");
  EXPECT_EQ(error.at("param"), "max_tokens");
  EXPECT_EQ(error.at("code"), "too_long");
  const std::pair<int, const char*> types[] = {
      {401, "authentication_error"}, {403, "permission_error"},  {429, "rate_limit_error"},
      {500, "server_error"},         {503, "unavailable_error"}, {413, "invalid_request_error"}};
  for (const auto& [status, type] : types) {
    EXPECT_EQ(
        boost::json::parse(ErrorBody(ErrorShape::kOpenAi, status, "m")).at("error").at("type"),
        type);
  }
}

TEST(HttpServer, Keys) {
  HttpOptions options;
  options.api_keys = {"first", "second"};
  options.metrics_key = "scrape";
  RunningServer s(options);
  EXPECT_EQ(s.Get("/health").status, 200);
  const RawAnswer none = s.Get("/key");
  EXPECT_EQ(none.status, 401);
  EXPECT_EQ(none.Header("WWW-Authenticate"), "Bearer realm=\"sluice\"");
  EXPECT_EQ(boost::json::parse(none.body).at("error").at("type"), "authentication_error");
  EXPECT_EQ(s.Get("/key", "Authorization: Bearer first\r\n").body, "0");
  EXPECT_EQ(s.Get("/key", "authorization: bearer  second\r\n").body, "1");
  EXPECT_EQ(s.Get("/key", "X-Api-Key: second\r\n").body, "1");
  for (const char* wrong : {"Bearer firs", "Bearer firstx", "Bearer ", "Bearer", "first",
                            "Basic first", "Bearer scrape"}) {
    EXPECT_EQ(s.Get("/key", std::string("Authorization: ") + wrong + "\r\n").status, 401) << wrong;
  }
  EXPECT_EQ(s.Get("/metrics").status, 401);
  EXPECT_EQ(s.Get("/metrics", "Authorization: Bearer scrape\r\n").body, "metrics");
  EXPECT_EQ(s.Get("/metrics", "Authorization: Bearer first\r\n").body, "metrics");
  const std::string manage = "DELETE /api/delete HTTP/1.1\r\n";
  EXPECT_EQ(s.Ask(manage + "\r\n").status, 401);
  EXPECT_EQ(s.Ask(manage + "x-api-key: first\r\n\r\n").status, 200);
  EXPECT_EQ(s.Get("/nowhere").status, 404);
  EXPECT_EQ(s.server->counters().unauthorized, 10u);
}

TEST(HttpServer, WithoutKeysManagingNeedsAFlag) {
  RunningServer s;
  const RawAnswer refused = s.Ask("DELETE /api/delete HTTP/1.1\r\n\r\n");
  EXPECT_EQ(refused.status, 403);
  EXPECT_NE(refused.body.find("--allow-manage"), std::string::npos);
  EXPECT_EQ(s.Get("/key").body, "-1");
  EXPECT_EQ(s.Get("/metrics").status, 200);
  HttpOptions options;
  options.allow_manage = true;
  options.metrics_key = "scrape";
  RunningServer open(options);
  EXPECT_EQ(open.Ask("DELETE /api/delete HTTP/1.1\r\n\r\n").body, "deleted");
  EXPECT_EQ(open.Get("/metrics").status, 401);
}

TEST(HttpServer, WithoutAMetricsKeyNoneIsNeeded) {
  HttpOptions options;
  options.api_keys = {"k"};
  RunningServer s(options);
  EXPECT_EQ(s.Get("/metrics").status, 200);
  EXPECT_EQ(s.Get("/metrics", "x-api-key: k\r\n").status, 200);
}

TEST(HttpServer, RefusalsReadTheBodyAndKeepTheConnection) {
  HttpOptions options;
  options.api_keys = {"k"};
  RunningServer s(options);
  RawClient client = s.Client();
  EXPECT_EQ(
      client.Ask("POST /echo HTTP/1.1\r\nContent-Length: 30\r\n\r\n" + std::string(30, 'x')).status,
      401);
  EXPECT_EQ(client.Ask("POST /echo HTTP/1.1\r\nx-api-key: k\r\nContent-Length: 2\r\n\r\nhi").body,
            "hi");
}

TEST(HttpServer, CorsForEverybody) {
  HttpOptions options;
  options.api_keys = {"k"};
  RunningServer s(options);
  const RawAnswer preflight = s.Ask(
      "OPTIONS /echo HTTP/1.1\r\nOrigin: https://page.example\r\n"
      "Access-Control-Request-Method: POST\r\n"
      "Access-Control-Request-Headers: authorization, x-own\r\n\r\n");
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.Header("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(preflight.Header("Access-Control-Allow-Methods"), "POST, OPTIONS");
  EXPECT_EQ(preflight.Header("Access-Control-Allow-Headers"), "authorization, x-own");
  EXPECT_NE(preflight.Header("Access-Control-Max-Age"), "");
  EXPECT_EQ(preflight.Header("Content-Length"), "");
  EXPECT_EQ(s.Get("/health").Header("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(s.Get("/key").Header("Access-Control-Allow-Origin"), "*") << "errors too";
}

TEST(HttpServer, CorsForSome) {
  HttpOptions options;
  options.cors_origins = {"https://a.example", "https://b.example"};
  RunningServer s(options);
  const RawAnswer b = s.Get("/health", "Origin: https://b.example\r\n");
  EXPECT_EQ(b.Header("Access-Control-Allow-Origin"), "https://b.example");
  EXPECT_EQ(b.Header("Vary"), "Origin");
  EXPECT_EQ(s.Get("/health", "Origin: https://c.example\r\n").Header("Access-Control-Allow-Origin"),
            "");
  const RawAnswer preflight = s.Ask("OPTIONS /echo HTTP/1.1\r\nOrigin: https://c.example\r\n\r\n");
  EXPECT_EQ(preflight.status, 204);
  EXPECT_EQ(preflight.Header("Access-Control-Allow-Methods"), "");
}

TEST(HttpServer, RequestIds) {
  RunningServer s;
  EXPECT_EQ(s.Get("/health", "X-Request-Id: my-id.7\r\n").Header("X-Request-Id"), "my-id.7");
  EXPECT_EQ(s.Get("/no", "x-request-id: my-id.7\r\n").Header("X-Request-Id"), "my-id.7");
  std::set<std::string> ours;
  for (const std::string& bad :
       {std::string(129, 'x'), std::string("a b"), std::string("\xc3\xa4")}) {
    ours.insert(s.Get("/health", "X-Request-Id: " + bad + "\r\n").Header("X-Request-Id"));
  }
  EXPECT_EQ(ours.size(), 3u);
  for (const std::string& id : ours) EXPECT_EQ(id.size(), 32u) << id;
}

TEST(HttpServer, HandlersThatFail) {
  RunningServer s;
  RawClient client = s.Client();
  const RawAnswer thrown = client.Ask("GET /throw HTTP/1.1\r\n\r\n");
  EXPECT_EQ(thrown.status, 500);
  EXPECT_EQ(boost::json::parse(thrown.body).at("error").at("type"), "server_error");
  const RawAnswer dropped = client.Ask("GET /drop HTTP/1.1\r\n\r\n");
  EXPECT_EQ(dropped.status, 500);
  EXPECT_EQ(client.Ask("GET /health HTTP/1.1\r\n\r\n").status, 200) << "the connection goes on";
}

TEST(HttpServer, HeadersOfHandlersCannotSplitAnswers) {
  RunningServer s({}, {{"GET", "/evil", [](auto x) {
                          HttpResponse response;
                          response.headers = {
                              {"X-A", "1\r\nX-B: 2"}, {"X C", "bad name"}, {"Content-Length", "1"}};
                          response.body = "body";
                          x->Respond(response);
                        }}});
  const RawAnswer answer = s.Get("/evil");
  EXPECT_EQ(answer.Header("X-A"), "1  X-B: 2");
  EXPECT_EQ(answer.Header("X-B"), "");
  EXPECT_EQ(answer.head.find("X C"), std::string::npos);
  EXPECT_EQ(answer.body, "body");
}

TEST(HttpServer, AnswersFromAnotherThreadAndOnlyOnce) {
  std::vector<std::thread> threads;
  RunningServer s({}, {{"GET", "/late", [&](auto x) {
                          threads.emplace_back([x] {
                            Sleep(10);
                            HttpResponse response;
                            response.body = "late";
                            x->Respond(response);
                            response.body = "twice";
                            x->Respond(response);
                            x->Write("nothing");
                            x->End();
                          });
                        }}});
  RawClient client = s.Client();
  EXPECT_EQ(client.Ask("GET /late HTTP/1.1\r\n\r\n").body, "late");
  EXPECT_EQ(client.Ask("GET /health HTTP/1.1\r\n\r\n").body, "ok");
  for (std::thread& t : threads) t.join();
}

TEST(HttpServer, LogLines) {
  RunningServer s({}, {{"POST", "/model", [](auto x) {
                          RequestLog log;
                          log.model = "tiny model\n";
                          log.prompt_tokens = 7;
                          log.cached_tokens = 3;
                          log.generated_tokens = 2;
                          log.queue_s = 0.001;
                          log.decode_per_s = 12.5;
                          log.finish = "stop";
                          x->SetLog(log);
                          x->Respond(HttpResponse());
                        }}});
  s.Ask("POST /model?secret=1 HTTP/1.1\r\nX-Request-Id: id7\r\nContent-Length: 0\r\n\r\n");
  const std::string line = s.LogWith("/model");
  EXPECT_EQ(line.find("POST /model 200 "), 0u) << line;
  EXPECT_NE(line.find("ms id=id7 ip=127.0.0.1 model=tiny\\x20model\\x0A "), std::string::npos)
      << line;
  EXPECT_NE(line.find(" prompt=7 cached=3 generated=2 queue_ms=1.0 "), std::string::npos) << line;
  EXPECT_NE(line.find(" decode_tok_s=12.50 finish=stop"), std::string::npos) << line;
  EXPECT_EQ(line.find("secret"), std::string::npos) << line;
  EXPECT_EQ(line.find('\n'), std::string::npos);
  s.Get("/no\xc2\x9b%0aGET");  // U+009B begins a terminal's control sequence
  const std::string escaped = s.LogWith("/no");
  EXPECT_NE(escaped.find("\\x"), std::string::npos) << escaped;
  EXPECT_EQ(escaped.find('\x9b'), std::string::npos);
  s.Get("/get");
  EXPECT_EQ(s.LogWith("/get").find("model="), std::string::npos);
}

TEST(HttpServer, PolledRoutesAreLoggedWhenTheyFail) {
  Route route;
  route.method = "GET";
  route.path = "/watched";
  route.polled = true;
  route.handler = [](const auto& x) {
    HttpResponse response;
    if (!x->request().Query("fail").empty()) response.status = 503;
    x->Respond(std::move(response));
  };
  RunningServer s({}, {std::move(route)});
  EXPECT_EQ(s.Get("/watched").status, 200);
  EXPECT_EQ(s.Get("/watched?fail=1").status, 503);
  EXPECT_NE(s.LogWith(" 503 ").find("/watched"), std::string::npos);
  EXPECT_EQ(s.lines().size(), 1u);
}

TEST(HttpServer, TwoHundredConnectionsAtOnce) {
  RunningServer s;
  std::vector<RawClient> clients;
  for (int i = 0; i < 200; ++i) clients.push_back(s.Client());
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 200; ++i) {
      ASSERT_TRUE(clients[i].Send("GET /get?q=" + std::to_string(i) + " HTTP/1.1\r\n\r\n"));
    }
    for (int i = 199; i >= 0; --i) {
      ASSERT_EQ(clients[i].Answer().body, "got " + std::to_string(i));
    }
  }
  EXPECT_EQ(s.server->counters().open_connections, 200u);
  clients.clear();
  EXPECT_TRUE(Eventually([&] { return s.server->counters().open_connections == 0; }));
}

}  // namespace
}  // namespace sluice
