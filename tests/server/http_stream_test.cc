// Streams, clients that go away in the middle, slow readers, the end of the server.
#include <gtest/gtest.h>

#include <boost/json.hpp>

#include "tests/server/running_server.h"

namespace sluice {
namespace {

const char kEndless[] = "GET /endless HTTP/1.1\r\n\r\n";

TEST(HttpStream, OneWriteIsOneChunkAndOneSend) {
  RunningServer s({}, {{"GET", "/paced", [](auto x) {
                          x->StartStream(200, "text/event-stream");
                          for (int i = 0; i < 4; ++i) {
                            Sleep(40);
                            x->Write("event " + std::to_string(i));
                            x->Write("");  // not the end
                          }
                          Sleep(40);
                          x->End();
                        }}});
  RawClient client = s.Client();
  ASSERT_TRUE(client.Send("GET /paced HTTP/1.1\r\n\r\n"));
  std::vector<std::string> pieces;
  while (pieces.empty() || pieces.back() != "0\r\n\r\n") {
    pieces.push_back(client.Receive());
    ASSERT_NE(pieces.back(), "");
  }
  // The pauses keep what is sent apart; a loaded machine may still join two, but splits none.
  std::string all;
  for (const std::string& piece : pieces) {
    all += piece;
    EXPECT_EQ(piece.substr(piece.size() - 2), "\r\n");
  }
  const std::string body = all.substr(all.find("\r\n\r\n") + 4);
  EXPECT_EQ(body, "7\r\nevent 0\r\n7\r\nevent 1\r\n7\r\nevent 2\r\n7\r\nevent 3\r\n0\r\n\r\n");
  EXPECT_EQ(client.Ask("GET /health HTTP/1.1\r\n\r\n").body, "ok") << "the connection goes on";
}

TEST(HttpStream, Http10IsEndedByClosing) {
  RunningServer s;
  RawClient client = s.Client();
  const RawAnswer answer = client.Ask("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(answer.Header("Transfer-Encoding"), "");
  EXPECT_EQ(answer.Header("Connection"), "close");
  EXPECT_EQ(answer.body, "data: 0\n\ndata: 1\n\ndata: 2\n\ndata: 3\n\ndata: 4\n\n");
  EXPECT_TRUE(answer.whole);
}

TEST(HttpStream, WritesFromManyThreadsStayWhole) {
  RunningServer s({}, {{"GET", "/many", [](auto x) {
                          x->StartStream(200, "text/plain");
                          std::vector<std::thread> threads;
                          for (int t = 0; t < 4; ++t) {
                            threads.emplace_back([x, t] {
                              for (int i = 0; i < 250; ++i) {
                                x->Write(std::string(1, static_cast<char>('a' + t)) + "\n");
                              }
                            });
                          }
                          for (std::thread& t : threads) t.join();
                          x->End();
                        }}});
  const RawAnswer answer = s.Get("/many");
  EXPECT_TRUE(answer.whole);
  EXPECT_EQ(answer.body.size(), 2000u);
  EXPECT_EQ(std::count(answer.body.begin(), answer.body.end(), 'c'), 250);
}

TEST(HttpStream, PostRunsOnTheIoThreadInOrder) {
  std::atomic<bool> same{false};
  std::string order;
  RunningServer s({}, {{"GET", "/post", [&](auto x) {
                          auto id = std::make_shared<std::thread::id>();
                          x->Post([&order, id] {
                            *id = std::this_thread::get_id();
                            order += "1";
                          });
                          x->Post([] { throw std::runtime_error("not the server's end"); });
                          x->Post([&, id, x] {
                            same = *id == std::this_thread::get_id();
                            order += "2";
                            HttpResponse response;
                            response.body = order;
                            x->Respond(response);
                          });
                        }}});
  EXPECT_EQ(s.Get("/post").body, "12");
  EXPECT_TRUE(same);
}

TEST(HttpStream, ClientsThatGoAwayAreNoticed) {
  RunningServer s;
  int expected = 0;
  for (const char* path : {"/endless", "/silent"}) {
    for (int way = 0; way < 3; ++way) {
      RawClient client = s.Client();
      ASSERT_TRUE(client.Send(std::string("GET ") + path + " HTTP/1.1\r\n\r\n"));
      if (path[1] == 'e')
        ASSERT_NE(client.Receive(), "");
      else
        Sleep(20);
      if (way == 0) client.Close();
      if (way == 1) client.Reset();
      if (way == 2) client.HalfClose();
      ++expected;
      EXPECT_TRUE(Eventually([&] { return s.gone == expected; })) << path << " " << way;
      const auto log = s.LogWith(path);
      EXPECT_NE(log.find(path[1] == 'e' ? " 200 " : " 499 "), std::string::npos) << log;
      EXPECT_NE(log.find(" ended=client_gone"), std::string::npos) << log;
    }
  }
  EXPECT_EQ(s.server->counters().disconnects, 6u);
  EXPECT_TRUE(Eventually([&] { return s.server->counters().open_connections == 0; }));
}

TEST(HttpStream, DisconnectIsToldAtOnceWhereItHasHappened) {
  std::atomic<bool> told{false};
  RunningServer s({}, {{"GET", "/late", [&](auto x) {
                          Sleep(100);
                          x->OnDisconnect([&] { told = true; });
                          x->Respond(HttpResponse());
                        }}});
  RawClient client = s.Client();
  ASSERT_TRUE(client.Send("GET /late HTTP/1.1\r\n\r\n"));
  Sleep(20);
  client.Reset();
  EXPECT_TRUE(Eventually([&] { return told.load(); }));
}

TEST(HttpStream, NoDisconnectAfterTheEnd) {
  std::atomic<int> told{0};
  RunningServer s({}, {{"GET", "/done", [&](auto x) {
                          x->OnDisconnect([&] { ++told; });
                          x->Respond(HttpResponse());
                          x->OnDisconnect([&] { ++told; });
                        }}});
  RawClient client = s.Client();
  EXPECT_EQ(client.Ask("GET /done HTTP/1.1\r\n\r\n").status, 200);
  client.Reset();
  EXPECT_TRUE(Eventually([&] { return s.server->counters().open_connections == 0; }));
  EXPECT_EQ(told, 0);
  EXPECT_EQ(s.server->counters().disconnects, 0u);
}

TEST(HttpStream, ManyResetsInMidStream) {
  HttpOptions options;
  options.request_threads = 16;
  RunningServer s(options);
  for (int round = 0; round < 3; ++round) {
    std::vector<RawClient> clients;
    for (int i = 0; i < 16; ++i) {
      clients.push_back(s.Client());
      ASSERT_TRUE(clients.back().Send(kEndless));
    }
    for (RawClient& client : clients) ASSERT_NE(client.Receive(), "");
    for (RawClient& client : clients) client.Reset();
    ASSERT_TRUE(Eventually([&] { return s.gone == 16 * (round + 1); }));
  }
  EXPECT_TRUE(s.Healthy());
}

TEST(HttpStream, HandlerThatFailsInMidStreamCutsIt) {
  RunningServer s({}, {{"GET", "/half",
                        [](auto x) {
                          x->StartStream(200, "text/plain");
                          x->Write("half");
                          Sleep(30);
                          throw std::runtime_error("no more");
                        }},
                       {"GET", "/forgotten", [](auto x) {
                          x->StartStream(200, "text/plain");
                          x->Write("half");
                          Sleep(30);
                        }}});
  for (const char* path : {"/half", "/forgotten"}) {
    const RawAnswer answer = s.Get(path);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body, "half");
    EXPECT_FALSE(answer.whole) << "the client can tell";
  }
  EXPECT_TRUE(s.Healthy());
}

// Writes as fast as it can until the client is gone or `most` bytes are out.
Route Flood(std::atomic<int>& gone, size_t most) {
  return {"GET", "/flood", [&gone, most](auto x) {
            auto over = std::make_shared<std::atomic<bool>>(false);
            x->OnDisconnect([&gone, over] {
              *over = true;
              ++gone;
            });
            x->StartStream(200, "text/plain");
            for (size_t sent = 0; sent < most && !*over; sent += 65536) {
              x->Write(std::string(65536, 'x'));
              Sleep(1);
            }
            while (!*over) Sleep(1);
          }};
}

TEST(HttpStream, SlowReaderWithTooMuchWaiting) {
  HttpOptions options;
  options.max_write_bytes = 1 << 20;
  std::atomic<int> gone{0};
  RunningServer s(options, {Flood(gone, size_t{1} << 30)});
  RawClient client(s.port, false, 4096);
  ASSERT_TRUE(client.Send("GET /flood HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(Eventually([&] { return gone == 1; }));
  EXPECT_EQ(s.server->counters().slow_readers, 1u);
  EXPECT_EQ(s.server->counters().disconnects, 0u);
  EXPECT_NE(s.LogWith("/flood").find("ended=slow_reader"), std::string::npos);
}

TEST(HttpStream, SlowReaderWithoutProgress) {
  HttpOptions options;
  options.max_write_bytes = size_t{1} << 30;
  options.write_timeout_s = 0.2;
  std::atomic<int> gone{0};
  RunningServer s(options, {Flood(gone, size_t{16} << 20)});
  RawClient client(s.port, false, 4096);
  ASSERT_TRUE(client.Send("GET /flood HTTP/1.1\r\n\r\n"));
  EXPECT_TRUE(Eventually([&] { return gone == 1; }));
  EXPECT_EQ(s.server->counters().slow_readers, 1u);
}

TEST(HttpStream, ASlowReaderDelaysNobody) {
  HttpOptions options;
  options.request_threads = 4;
  std::atomic<int> gone{0};
  RunningServer s(options, {Flood(gone, size_t{2} << 20)});
  RawClient slow(s.port, false, 4096);
  ASSERT_TRUE(slow.Send("GET /flood HTTP/1.1\r\n\r\n"));
  for (int i = 0; i < 50; ++i) {
    ASSERT_EQ(s.Get("/stream").body, "data: 0\n\ndata: 1\n\ndata: 2\n\ndata: 3\n\ndata: 4\n\n");
  }
}

TEST(HttpStream, LargeAnswersAreNotSlowReaders) {
  HttpOptions options;
  options.max_write_bytes = 1000;
  RunningServer s(options);
  RawClient client = s.Client();
  std::thread sender([&] {
    client.Send("POST /echo HTTP/1.1\r\nContent-Length: 1000000\r\n\r\n" +
                std::string(1000000, 'y'));
  });
  EXPECT_EQ(client.Answer().body.size(), 1000000u);
  sender.join();
}

TEST(HttpStream, AHalfClosedClientGetsWhatIsOnTheWay) {
  RunningServer s;
  RawClient client = s.Client();
  ASSERT_TRUE(client.Send("GET /health HTTP/1.1\r\n\r\n"));
  ASSERT_EQ(client.Answer().body, "ok");
  client.HalfClose();
  EXPECT_EQ(client.ReceiveAll(), "");
  EXPECT_TRUE(client.ended());
}

TEST(HttpDrain, RunningRequestsFinishAndIdleOnesClose) {
  std::atomic<bool> go{false};
  RunningServer s({}, {{"GET", "/wait", [&](auto x) {
                          while (!go) Sleep(1);
                          HttpResponse response;
                          response.body = "finished";
                          x->Respond(response);
                        }}});
  RawClient idle = s.Client(), busy = s.Client();
  EXPECT_EQ(idle.Ask("GET /health HTTP/1.1\r\n\r\n").status, 200);
  ASSERT_TRUE(busy.Send("GET /wait HTTP/1.1\r\n\r\n"));
  ASSERT_TRUE(Eventually([&] { return s.server->counters().requests == 2; }));
  std::atomic<bool> drained{false};
  std::thread drain([&] {
    s.server->Drain(10);
    drained = true;
  });
  EXPECT_EQ(idle.ReceiveAll(), "");
  EXPECT_TRUE(idle.ended());
  EXPECT_FALSE(drained);
  EXPECT_FALSE(RawClient(s.port).connected()) << "nobody new";
  go = true;
  const RawAnswer answer = busy.Answer();
  EXPECT_EQ(answer.body, "finished");
  EXPECT_EQ(answer.Header("Connection"), "close");
  drain.join();
  s.server->Drain(1);  // again: nothing to do
}

TEST(HttpDrain, WhatDoesNotFinishIsCut) {
  HttpOptions options;
  options.request_threads = 4;
  RunningServer s(options);
  RawClient stream = s.Client(), silent = s.Client(), half = s.Client();
  ASSERT_TRUE(stream.Send(kEndless));
  ASSERT_NE(stream.Receive(), "");
  ASSERT_TRUE(silent.Send("GET /silent HTTP/1.1\r\n\r\n"));
  ASSERT_TRUE(half.Send("GET /silent HTT"));
  ASSERT_TRUE(Eventually([&] { return s.server->counters().requests == 2; }));
  Sleep(20);
  s.server->Drain(0.05);
  EXPECT_TRUE(Eventually([&] { return s.gone == 2; }));
  EXPECT_EQ(s.server->counters().open_connections, 0u);
  EXPECT_EQ(s.server->counters().disconnects, 0u) << "it was not the client";
}

TEST(HttpDrain, DestructionUnderLoad) {
  for (int round = 0; round < 10; ++round) {
    std::vector<RawClient> clients;
    HttpOptions options;
    options.request_threads = 3;
    RunningServer s(options);
    for (int i = 0; i < 12; ++i) {
      clients.push_back(s.Client());
      const char* paths[] = {"/endless", "/silent", "/stream", "/health"};
      ASSERT_TRUE(clients.back().Send(std::string("GET ") + paths[i % 4] + " HTTP/1.1\r\n\r\n"));
    }
    Sleep(round);
  }
}

TEST(HttpDrain, ExchangesMayOutliveTheServer) {
  std::shared_ptr<Exchange> kept;
  {
    std::atomic<bool> has{false};
    RunningServer s({}, {{"GET", "/keep", [&](auto x) {
                            kept = x;
                            has = true;
                          }}});
    RawClient client = s.Client();
    ASSERT_TRUE(client.Send("GET /keep HTTP/1.1\r\n\r\n"));
    ASSERT_TRUE(Eventually([&] { return has.load(); }));
  }
  bool called = false;
  kept->OnDisconnect([&] { called = true; });
  kept->StartStream(200, "text/plain");
  kept->Write("to nobody");
  kept->End();
  kept->Post([&] { called = true; });
  EXPECT_EQ(kept->request().path, "/keep");
  kept.reset();
  EXPECT_FALSE(called);
}

TEST(HttpDrain, OfAServerThatNeverStarted) {
  HttpServer server({}, nullptr);
  server.Drain(1);
  EXPECT_TRUE(server.addresses().empty());
}

}  // namespace
}  // namespace sluice
