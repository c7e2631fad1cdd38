// What `sluice top` makes of a server's numbers, and the screen it makes of that, without a
// terminal.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "cli/top/columns.h"
#include "cli/top/controls.h"
#include "cli/top/help.h"
#include "cli/top/layout.h"
#include "cli/top/metrics_text.h"
#include "cli/top/state.h"
#include "cli/top/text.h"

namespace sluice::top {
namespace {

using testing::Test;

TEST(MetricsTextTest, ReadsLabelsAndValues) {
  const MetricsText m = MetricsText::Parse(
      "# HELP a Something.\n# TYPE a counter\n"
      "a{x=\"1\",y=\"q\\\"b\\\\n\\n\"} 1.5\n"
      "a{x=\"2\",} 2e3 1700000000\n"
      "  b   7\r\n"
      "c +Inf\nd NaN\ne -Inf\n"
      "a{x=\"1\"} 0.5");
  EXPECT_EQ(m.Sum("a"), 2002.0);
  EXPECT_EQ(m.Largest("a"), 2000.0);
  EXPECT_EQ(m.SumBy("a", "x"), (std::map<std::string, double>{{"1", 2}, {"2", 2000}}));
  EXPECT_TRUE(m.SumBy("a", "y").contains("q\"b\\n\n"));
  EXPECT_EQ(m.Sum("b"), 7.0);
  EXPECT_EQ(m.Sum("c"), HUGE_VAL);
  EXPECT_EQ(m.Sum("d"), std::nullopt);
  EXPECT_EQ(m.Sum("e"), -HUGE_VAL);
  EXPECT_EQ(m.Sum("nothing"), std::nullopt);
  EXPECT_TRUE(m.HasPrefix("a"));
  EXPECT_FALSE(m.HasPrefix("f"));
}

TEST(MetricsTextTest, WhatItCannotReadIsNoSample) {
  const MetricsText m = MetricsText::Parse(
      "a{x=\"1\" 3\na{x} 3\na{x=1} 3\na{\na\na x\n{x=\"1\"} 3\n\"a\" 3\n<html>\na{x=\"\\");
  EXPECT_EQ(m.Sum("a"), std::nullopt);
  std::string noise;
  for (int i = 0; i < 4000; ++i) noise += static_cast<char>(i * 37 + i / 11);
  (void)MetricsText::Parse(noise);  // and comes back
}

// A server of ours after `seconds` of work, with two requests that run and one that waits.
constexpr char kSlots[] = R"([
 {"id": 0, "id_task": 12, "is_processing": true, "next_token": {"n_decoded": 120, "n_remain": 880},
  "sluice": {"request_id": "long-answer-of-somebody", "phase": "decode", "prompt_tokens": 2048,
  "cached_tokens": 1024, "processed_tokens": 2048, "generated_tokens": 120, "queue_s": 0.5,
  "prefill_s": 1.25, "decode_s": 3, "prefill_tok_s": 812.5, "decode_tok_s": 41.25,
  "ceiling_ratio": 0.71}},
 {"id": 1, "id_task": 14, "is_processing": true, "next_token": {"n_decoded": 0, "n_remain": -1},
  "sluice": {"request_id": "big-prompt", "phase": "prefill", "prompt_tokens": 30000,
  "cached_tokens": 0, "processed_tokens": 4096, "generated_tokens": 0, "queue_s": 0,
  "prefill_s": 5, "decode_s": 0, "prefill_tok_s": 819.2, "decode_tok_s": 0, "ceiling_ratio": 0}},
 {"id": 2, "id_task": -1, "is_processing": false},
 {"id": -1, "id_task": 15, "is_processing": false, "sluice": {"request_id": "patient",
  "phase": "queued", "prompt_tokens": 10, "cached_tokens": 0, "processed_tokens": 0,
  "generated_tokens": 0, "queue_s": 75, "prefill_s": 0, "decode_s": 0, "prefill_tok_s": 0,
  "decode_tok_s": 0, "ceiling_ratio": 0}}])";

std::string SluiceMetrics(int seconds) {
  const auto of = [](double value) { return " " + std::to_string(value) + "\n"; };
  const std::string model = "{model_name=\"gemma-3-270m\",engine=\"0\"}";
  const auto stall = [&](const char* cause, double each) {
    return std::string("sluice:stall_seconds_total{model_name=\"gemma-3-270m\",cause=\"") + cause +
           "\"}" + of(each * seconds);
  };
  std::string text;
  text += "vllm:num_requests_running" + model + of(2);
  text += "vllm:num_requests_waiting" + model + of(1);
  text += "vllm:generation_tokens_total" + model + of(41.0 * seconds);
  text += "vllm:prompt_tokens_total" + model + of(800.0 * seconds);
  text += "vllm:prefix_cache_queries_total" + model + of(1000);
  text += "vllm:prefix_cache_hits_total" + model + of(450);
  text += "vllm:num_preemptions_total" + model + of(3);
  text += "sluice:steps_total" + model + of(40.0 * seconds);
  text += "sluice:read_bandwidth_bytes_per_second" + model + of(50e9);
  text += "sluice:decode_read_bytes_total" + model + of(20e9 * seconds);
  text += "sluice:decode_seconds_total" + model + of(0.5 * seconds);
  text += "sluice:kv_pages" + model + of(512) + "sluice:kv_pages_free" + model + of(256);
  text += "sluice:kv_pages_kept" + model + of(128);
  text += "sluice:major_faults_total" + of(7.0 * seconds) + "sluice:resident_bytes" + of(1.25e9);
  text += "sluice:throttled_periods_total" + model + of(0);
  text += stall("weight_stream", 0.7) + stall("compute", 0.2) + stall("page_faults", 0.1);
  return text;
}

std::string NodeMetrics(int nodes) {
  std::string text;
  for (int i = 0; i < nodes; ++i) {
    const std::string labels = "{model_name=\"m\",node=\"" + std::to_string(i) + "\"}";
    text += "sluice:node_read_bytes_per_second" + labels + " 1.5e10\n";
    text += "sluice:node_read_ceiling_bytes_per_second" + labels + " 2.5e10\n";
  }
  return text + "sluice:bandwidth_ceiling_ratio{model_name=\"m\"} 0.6\n" +
         "sluice:compute_ceiling_ratio{model_name=\"m\"} 0.1\n" +
         "sluice:weights_resident_ratio{model_name=\"m\"} 0.5\n";
}

Scrape Look(double at_s, const std::string& metrics, const std::string& slots = "") {
  Scrape scrape;
  scrape.at_s = at_s;
  scrape.metrics = MetricsText::Parse(metrics);
  if (!slots.empty()) scrape.slots = {{"", slots}};
  return scrape;
}

TopState Sluice(const std::string& more = "") {
  TopState state;
  state.Add(Look(100, SluiceMetrics(10) + more, kSlots));
  state.Add(Look(102, SluiceMetrics(12) + more, kSlots));
  return state;
}

TEST(TopStateTest, SluiceFillsEverything) {
  const TopState state = Sluice();
  const View& view = state.view();
  EXPECT_EQ(view.kind, ServerKind::kSluice);
  EXPECT_EQ(view.models, std::vector<std::string>{"gemma-3-270m"});
  EXPECT_EQ(view.running, 2.0);
  EXPECT_EQ(view.waiting, 1.0);
  EXPECT_DOUBLE_EQ(*view.decode_tok_s, 41);
  EXPECT_DOUBLE_EQ(*view.prefill_tok_s, 800);
  EXPECT_DOUBLE_EQ(*view.read_bytes_s, 40e9);
  EXPECT_DOUBLE_EQ(*view.bandwidth, 0.8);
  EXPECT_DOUBLE_EQ(*view.kv_used, 0.25);
  EXPECT_DOUBLE_EQ(*view.kv_kept, 0.25);
  EXPECT_DOUBLE_EQ(*view.cache_hits, 0.45);
  EXPECT_DOUBLE_EQ(*view.major_faults_s, 7);
  EXPECT_EQ(view.throttled_s, 0.0);
  ASSERT_EQ(view.stalls.size(), 3u);
  EXPECT_EQ(view.stalls[0].cause, "weight_stream");
  EXPECT_NEAR(view.stalls[0].share, 0.7, 1e-9);
  ASSERT_EQ(view.requests.size(), 3u);
  const RequestRow& first = view.requests[0];
  EXPECT_EQ(first.request_id, "long-answer-of-somebody");
  EXPECT_EQ(first.max_tokens, 1000.0);
  EXPECT_EQ(first.tok_s(), 41.25);
  EXPECT_EQ(first.cached(), 0.5);
  EXPECT_EQ(first.ceiling, 0.71);
  EXPECT_EQ(first.whole_s(), 4.75);
  EXPECT_EQ(first.model, "gemma-3-270m");
  EXPECT_EQ(view.requests[1].tok_s(), 819.2);
  EXPECT_EQ(view.requests[1].max_tokens, std::nullopt);
  EXPECT_EQ(view.requests[1].ceiling, std::nullopt);
  EXPECT_EQ(view.requests[2].phase, "queued");
  EXPECT_EQ(view.requests[2].tok_s(), std::nullopt);
  EXPECT_EQ(view.requests[2].slot, std::nullopt);
}

TEST(TopStateTest, NodesAreReadAndOrdered) {
  const TopState state = Sluice(NodeMetrics(12));
  const View& view = state.view();
  ASSERT_EQ(view.nodes.size(), 12u);
  EXPECT_EQ(view.nodes[2].node, "2");
  EXPECT_EQ(view.nodes[11].node, "11");
  EXPECT_DOUBLE_EQ(*view.bandwidth, 0.6);
  EXPECT_DOUBLE_EQ(*view.read_bytes_s, 12 * 15e9);
  EXPECT_DOUBLE_EQ(*view.weights_resident, 0.5);
}

TEST(TopStateTest, GaugesOfTheLastWorkAreNothingWhileThereIsNone) {
  TopState state;
  state.Add(Look(1, SluiceMetrics(10) + NodeMetrics(2)));
  state.Add(Look(2, SluiceMetrics(10) + NodeMetrics(2)));
  EXPECT_TRUE(state.view().idle);
  EXPECT_EQ(state.view().bandwidth, 0.0);
  EXPECT_EQ(state.view().compute, 0.0);
  EXPECT_EQ(state.view().read_bytes_s, 0.0);
  EXPECT_TRUE(state.view().stalls.empty());
}

TEST(TopStateTest, RatesBeginAnewWithANewProcess) {
  TopState state;
  state.Add(Look(1, SluiceMetrics(100)));
  EXPECT_FALSE(state.has_rates());
  EXPECT_EQ(state.view().decode_tok_s, std::nullopt);
  state.Add(Look(2, SluiceMetrics(1)));  // counts less than before
  EXPECT_EQ(state.view().decode_tok_s, std::nullopt);
  Scrape nothing;
  nothing.error = "Couldn't connect to server";
  state.Add(nothing);
  EXPECT_EQ(state.error(), nothing.error);
  EXPECT_EQ(state.view().running, 2.0);  // what was known stays to be seen
  state.Add(Look(9, SluiceMetrics(5)));
  EXPECT_TRUE(state.error().empty());
  EXPECT_EQ(state.view().decode_tok_s, std::nullopt);
  state.Add(Look(10, SluiceMetrics(6)));
  EXPECT_DOUBLE_EQ(*state.view().decode_tok_s, 41);
}

// As a llama-server of late 2026 writes them.
std::string LlamaSlots(int generated) {
  return R"([{"id": 3, "n_ctx": 4096, "is_processing": true, "id_task": 17, "n_prompt_tokens": 160,
  "n_prompt_tokens_processed": 40, "n_prompt_tokens_cache": 10, "next_token": [{"n_decoded": )" +
         std::to_string(generated) +
         R"(, "n_remain": 50}]}, {"id": 0, "n_ctx": 4096, "is_processing": false}])";
}

TEST(TopStateTest, LlamaServerHasLess) {
  TopState state;
  state.Add(Look(1, "", LlamaSlots(20)));  // it has no /metrics unless it is told to
  state.Add(Look(3, "", LlamaSlots(60)));
  const View& view = state.view();
  EXPECT_EQ(view.kind, ServerKind::kLlamaServer);
  EXPECT_EQ(view.running, 1.0);
  ASSERT_EQ(view.requests.size(), 1u);
  const RequestRow& row = view.requests[0];
  EXPECT_EQ(row.name, "task 17");
  EXPECT_TRUE(row.request_id.empty());
  EXPECT_EQ(row.phase, "decode");
  EXPECT_EQ(row.prompt_tokens, 50.0);
  EXPECT_EQ(row.cached(), 0.2);
  EXPECT_EQ(row.max_tokens, 110.0);
  EXPECT_EQ(row.tok_s(), 20.0);
  EXPECT_EQ(row.queue_s, std::nullopt);
  EXPECT_EQ(view.decode_tok_s, 20.0);
  EXPECT_EQ(view.kv_used, std::nullopt);
  state.Add(Look(4, "llamacpp:requests_processing 1\nllamacpp:requests_deferred 4\n"));
  EXPECT_EQ(state.view().waiting, 4.0);
}

TEST(TopStateTest, VllmHasTotals) {
  const auto metrics = [](int tokens) {
    return "vllm:num_requests_running{model_name=\"m\"} 3\nvllm:kv_cache_usage_perc 0.5\n"
           "vllm:generation_tokens_total " +
           std::to_string(tokens) + "\n";
  };
  TopState state;
  state.Add(Look(1, metrics(100)));
  state.Add(Look(2, metrics(150)));
  EXPECT_EQ(state.view().kind, ServerKind::kVllm);
  EXPECT_EQ(state.view().kv_used, 0.5);
  EXPECT_EQ(state.view().decode_tok_s, 50.0);
  EXPECT_FALSE(state.view().lists_requests);
}

TEST(TopStateTest, SlotsThatAreNone) {
  for (const char* body : {"", "{}", "[", "[1, null, [], {}]", R"([{"is_processing": true}])",
                           R"([{"sluice": 5}])", R"([{"sluice": {"phase": 7}}])",
                           R"([{"is_processing": true, "next_token": [], "id": "x"}])"}) {
    TopState state;
    state.Add(Look(1, "", body));
    state.Add(Look(2, SluiceMetrics(1), body));
    Controls controls;
    for (const Line& line : Layout("u", state, controls, {80, 24, true})) {
      EXPECT_LE(line.pieces.size(), 100u);
    }
  }
}

TEST(TopStateTest, AsJson) {
  const TopState state = Sluice(NodeMetrics(1));
  const boost::json::object json = ViewJson(state.view());
  EXPECT_EQ(json.at("server"), "sluice");
  EXPECT_EQ(json.at("requests").as_array().size(), 3u);
  EXPECT_EQ(json.at("running").as_int64(), 2);
  EXPECT_EQ(json.at("requests").at(0).at("request_id"), "long-answer-of-somebody");
  EXPECT_TRUE(json.at("requests").at(1).at("ceiling_ratio").is_null());
  EXPECT_NEAR(json.at("stall_shares").at("weight_stream").to_number<double>(), 0.7, 1e-9);
}

TEST(TopTextTest, Numbers) {
  EXPECT_EQ(CountText(std::nullopt), "-");
  EXPECT_EQ(CountText(99999), "99999");
  EXPECT_EQ(CountText(123456), "123k");
  EXPECT_EQ(CountText(12.34e6), "12.3M");
  EXPECT_EQ(RateText(41.26), "41.3");
  EXPECT_EQ(RateText(12345.6), "12346");
  EXPECT_EQ(PercentText(0.714), "71 %");
  EXPECT_EQ(SecondsText(1.234), "1.23 s");
  EXPECT_EQ(SecondsText(125.9), "2m05");
  EXPECT_EQ(SecondsText(7380), "2h03");
  EXPECT_EQ(PerSecondText(0), "0 /s");
  EXPECT_EQ(Fit("abcdef", 4, true, true), "abc…");
  EXPECT_EQ(Fit("abcdef", 4, true, false), "abc~");
  EXPECT_EQ(Fit("ab", 4, false, true), "  ab");
  EXPECT_EQ(Columns("a…█"), 3u);
  EXPECT_EQ(Ascii("a\x1b[1m\xc3\xa4"), "a?[1m?");
}

// Every line of every pane at every size stays inside, whatever the server says.
void ExpectInside(const TopState& state, Controls controls) {
  for (const size_t width : {1, 39, 40, 61, 80, 100, 132, 200, 400}) {
    for (const size_t height : {1, 9, 10, 15, 24, 50, 120}) {
      for (const Pane pane : {Pane::kList, Pane::kDetail, Pane::kHelp}) {
        for (const bool utf8 : {true, false}) {
          controls.pane = pane;
          const auto lines = Layout("http://host:8080", state, controls, {width, height, utf8});
          EXPECT_LE(lines.size(), height);
          for (const Line& line : lines) {
            std::string text;
            for (const auto& piece : line.pieces) text += piece.first;
            EXPECT_LE(Columns(text), width) << text;
            const bool ascii =
                std::all_of(text.begin(), text.end(), [](char c) { return ' ' <= c && c <= '~'; });
            EXPECT_TRUE(utf8 || ascii) << text;
          }
        }
      }
    }
  }
}

std::string HelpAt(Size size, size_t top) {
  Controls controls;
  controls.pane = Pane::kHelp;
  controls.help_top = top;
  return PlainText(Layout("http://host:8080", Sluice(), controls, size));
}

TEST(TopLayoutTest, TheHelpFitsOrScrolls) {
  const std::string usual = HelpAt({80, 24, true}, 0);
  for (const char* text :
       {"up, down", "this help", "PHASE", "KV pool", "begin alike\n", "q back"}) {
    EXPECT_NE(usual.find(text), std::string::npos) << text << "\n" << usual;
  }
  EXPECT_EQ(usual.find(" more\n"), std::string::npos) << usual;
  EXPECT_EQ(usual.find("scroll\n"), std::string::npos) << usual;

  // On a small screen every line can be reached, and no key goes past the last.
  const Size small{60, 12, true};
  Controls controls;
  controls.pane = Pane::kHelp;
  const TopState state = Sluice();
  std::string seen = HelpAt(small, 0);
  EXPECT_NE(seen.find("up, down scroll"), std::string::npos) << seen;
  EXPECT_EQ(seen.find("KV pool"), std::string::npos) << seen;
  for (int i = 0; i < 100; ++i) {
    (void)controls.Press({Key::kDown}, state.view(), 60, PageRows(state, controls, small));
    seen += HelpAt(small, controls.help_top);
  }
  for (const HelpLine& line : HelpLines(state.view(), 60)) {
    EXPECT_NE(seen.find(line.name), std::string::npos) << line.name;
  }
  EXPECT_EQ(controls.help_top + PageRows(state, controls, small),
            HelpLines(state.view(), 60).size());
  (void)controls.Press({Key::kHome}, state.view(), 60, PageRows(state, controls, small));
  EXPECT_EQ(controls.help_top, 0u);
}

TEST(TopLayoutTest, NothingLeavesTheScreen) {
  Controls controls;
  controls.message = std::string(300, 'm');
  ExpectInside(TopState(), controls);
  ExpectInside(Sluice(NodeMetrics(9)), controls);
  controls.asking = std::string(128, 'x');
  controls.sort = 1;
  ExpectInside(Sluice(), controls);
  TopState odd;
  odd.Add(Look(1, SluiceMetrics(1) + "vllm:num_requests_running{model_name=\"\xc3\xa4\x1b[\"} 1\n",
               R"([{"sluice": {"request_id": "\u001b[31m\u4e2d", "phase": "?", "prompt_tokens":
                   1e300, "generated_tokens": -5, "queue_s": 1e12, "ceiling_ratio": 1e9}}])"));
  Scrape gone;
  gone.error = std::string(500, 'e');
  ExpectInside(odd, Controls());
  odd.Add(gone);
  ExpectInside(odd, Controls());
}

std::string At(const TopState& state, size_t width, size_t height,
               const Controls& controls = Controls()) {
  return PlainText(Layout("http://host:8080", state, controls, {width, height, true}));
}

bool Has(const std::string& text, const std::string& what) {
  return text.find(what) != std::string::npos;
}

TEST(TopLayoutTest, AllColumnsWhereThereIsRoom) {
  const std::string wide = At(Sluice(NodeMetrics(2)), 200, 50);
  for (const Column& column : AllColumns()) EXPECT_TRUE(Has(wide, column.title)) << column.title;
  const std::string narrow = At(Sluice(NodeMetrics(2)), 80, 24);
  for (const char* title :
       {"PHASE", "REQUEST", "PROMPT", "CACHED", "OUT", "TOK/S", "CEILING", "QUEUE"}) {
    EXPECT_TRUE(Has(narrow, title)) << title;
  }
  EXPECT_FALSE(Has(narrow, "MODEL"));
  for (const std::string& text : {wide, narrow}) {
    for (const char* said :
         {"gemma-3-270m", "2 running", "1 waiting", "41.0 tok/s", "bandwidth",     "node 0",
          "node 1",       "compute",   "KV pool",   "stalls",     "weight stream", "faults",
          "throttled",    "decode",    "prefill",   "queued",     "50 %",          "71 %",
          "4096/30000",   "75.00 s",   "quit"}) {
      EXPECT_TRUE(Has(text, said)) << said << "\n" << text;
    }
  }
}

TEST(TopLayoutTest, ManyNodesLeaveRoomForTheRest) {
  const std::string text = At(Sluice(NodeMetrics(16)), 80, 24);
  for (const char* said : {"node 0", "nodes more", "KV pool", "stalls", "faults", "patient"}) {
    EXPECT_TRUE(Has(text, said)) << said << "\n" << text;
  }
}

TEST(TopLayoutTest, TinyTerminalsAreTold) {
  EXPECT_TRUE(Has(At(Sluice(), 38, 8), "at least 40x10"));
  EXPECT_TRUE(Has(At(Sluice(), 40, 10), "TOK/S"));
}

TEST(TopLayoutTest, OnAPipeEveryRequestAndNoKeys) {
  const std::string text = At(Sluice(), 120, 0);
  EXPECT_TRUE(Has(text, "patient"));
  EXPECT_FALSE(Has(text, "quit"));
  EXPECT_FALSE(Has(text, "every"));
}

TEST(TopLayoutTest, ServersWithLessHaveFewerColumns) {
  TopState state;
  state.Add(Look(1, "", LlamaSlots(20)));
  state.Add(Look(2, "", LlamaSlots(60)));
  const std::string text = At(state, 200, 50);
  for (const char* said : {"llama-server", "task 17", "TOK/S", "40.0", "CACHED"}) {
    EXPECT_TRUE(Has(text, said)) << said;
  }
  for (const char* unsaid : {"CEILING", "QUEUE", "stalls", "bandwidth"}) {
    EXPECT_FALSE(Has(text, unsaid)) << unsaid;
  }
}

TEST(TopLayoutTest, SaysThatNobodyAnswers) {
  TopState state = Sluice();
  Scrape gone;
  gone.error = "Couldn't connect to server";
  state.Add(gone);
  const std::string text = At(state, 80, 24);
  EXPECT_TRUE(Has(text, "no answer from http://host:8080, trying again"));
  EXPECT_TRUE(Has(text, "patient"));
}

Controls::Outcome Type(Controls& controls, const View& view, const std::string& keys) {
  Controls::Outcome outcome;
  for (char c : keys) outcome = controls.Press({Key::kLetter, c}, view, 80, 10);
  return outcome;
}
void Press(Controls& controls, const View& view, Key::Kind kind) {
  (void)controls.Press({kind}, view, 80, 10);
}

TEST(TopControlsTest, CancelAsksFirst) {
  const TopState state = Sluice();
  Controls controls;
  EXPECT_EQ(Type(controls, state.view(), "k").action, Controls::Action::kNone);
  EXPECT_TRUE(Has(At(state, 80, 24, controls), "cancel long-answer-of-somebody? y/n"));
  EXPECT_EQ(Type(controls, state.view(), "n").action, Controls::Action::kNone);
  EXPECT_TRUE(controls.asking.empty());
  Press(controls, state.view(), Key::kDown);
  const Controls::Outcome outcome = Type(controls, state.view(), "cy");
  EXPECT_EQ(outcome.action, Controls::Action::kCancel);
  EXPECT_EQ(outcome.request_id, "big-prompt");
  EXPECT_EQ(Type(controls, state.view(), "y").action, Controls::Action::kNone);

  TopState llama;
  llama.Add(Look(1, "", LlamaSlots(20)));
  (void)Type(controls, llama.view(), "k");
  EXPECT_TRUE(controls.asking.empty());
  EXPECT_TRUE(Has(controls.message, "llama-server"));
  const TopState empty;
  (void)Type(controls, empty.view(), "k");
  EXPECT_TRUE(controls.asking.empty());
}

TEST(TopControlsTest, TheCursorStaysWithItsRequest) {
  const TopState state = Sluice();
  const View& view = state.view();
  Controls controls;
  EXPECT_EQ(controls.Selected(view)->request_id, "long-answer-of-somebody");
  Press(controls, view, Key::kEnd);
  EXPECT_EQ(controls.Selected(view)->request_id, "patient");
  Press(controls, view, Key::kDown);
  EXPECT_EQ(controls.Selected(view)->request_id, "patient");
  // Largest first: the queue's time puts it on top, and the cursor goes along.
  while (controls.sort == kNoColumn || AllColumns()[controls.sort].title != std::string("QUEUE")) {
    Press(controls, view, Key::kRight);
  }
  EXPECT_EQ(SortedRows(view, controls.sort, false)[0]->request_id, "patient");
  EXPECT_EQ(controls.Selected(view)->request_id, "patient");
  (void)Type(controls, view, "r");
  EXPECT_EQ(SortedRows(view, controls.sort, true)[2]->request_id, "patient");
  Press(controls, view, Key::kUp);
  EXPECT_NE(controls.Selected(view)->request_id, "patient");
  Press(controls, view, Key::kHome);
  Press(controls, view, Key::kPageDown);
  EXPECT_EQ(controls.Selected(view)->request_id, "patient");
}

TEST(TopControlsTest, SortGoesThroughWhatIsSeen) {
  const TopState state = Sluice();
  Controls controls;
  std::set<size_t> seen;
  const size_t columns = PlaceColumns(state.view(), 80).size();
  for (size_t i = 0; i < columns; ++i) {
    (void)Type(controls, state.view(), "s");
    seen.insert(controls.sort);
  }
  EXPECT_EQ(seen.size(), columns);
  EXPECT_FALSE(seen.contains(kNoColumn));
  (void)Type(controls, state.view(), "s");
  EXPECT_EQ(controls.sort, kNoColumn);
  Press(controls, state.view(), Key::kLeft);
  EXPECT_EQ(controls.sort, PlaceColumns(state.view(), 80).back().index);
}

TEST(TopControlsTest, PanesPauseAndInterval) {
  const TopState state = Sluice();
  const View& view = state.view();
  Controls controls;
  Press(controls, view, Key::kEnter);
  const std::string detail = At(state, 80, 24, controls);
  for (const char* said : {"long-answer-of-somebody", "120 of 1000", "1024 cached", "812.5"}) {
    EXPECT_TRUE(Has(detail, said)) << said << "\n" << detail;
  }
  EXPECT_EQ(Type(controls, view, "q").action, Controls::Action::kNone);  // back first
  EXPECT_EQ(controls.pane, Pane::kList);
  (void)Type(controls, view, "h");
  EXPECT_TRUE(Has(At(state, 80, 24, controls), "cancel the chosen request"));
  Press(controls, view, Key::kEscape);
  (void)Type(controls, view, " ");
  EXPECT_TRUE(controls.paused);
  EXPECT_TRUE(Has(At(state, 80, 24, controls), "PAUSED"));
  (void)Type(controls, view, " +");
  EXPECT_EQ(controls.interval_s, 2);
  (void)Type(controls, view, "---");
  EXPECT_EQ(controls.interval_s, 0.2);
  (void)Type(controls, view, "-----");
  EXPECT_EQ(controls.interval_s, 0.1);
  EXPECT_TRUE(Has(At(state, 80, 24, controls), "every 0.1 s"));
  EXPECT_EQ(Type(controls, view, "q").action, Controls::Action::kQuit);
}

}  // namespace
}  // namespace sluice::top
