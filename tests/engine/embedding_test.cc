// Embeddings: the states that a model's logits are made of, and what `sluice
// serve` promises of a request, that its bytes depend on nothing else.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <future>

#include "src/engine/engine_service.h"
#include "tests/engine/tiny_engine.h"
#include "tests/text/shared_oracles.h"

namespace sluice {
namespace {

constexpr Pooling kPoolings[] = {Pooling::kNone, Pooling::kMean, Pooling::kCls, Pooling::kLast};

using Floats = std::vector<float>;

// Equal bytes, where -0 is not 0.
bool SameBytes(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

class EmbeddingTest : public TinyEngineTest {
 protected:
  // `spans` of 64 positions for all sequences together.
  void Start(const EngineOptions& options, size_t spans, size_t chunk = 512, int threads = 1) {
    RunnerOptions o = TestOptions(kContext);
    o.chunk = chunk;
    o.threads = threads;
    StartEngine(options, o,
                [&](const ModelRunner& runner) { return runner.PagesOf(kSpan) * spans; });
  }

  Request Embedding(size_t tokens, uint64_t seed, Pooling pooling) const {
    Request r;
    r.prompt = tiny_.Tokens(tokens, seed);
    r.embed = pooling;
    return r;
  }
  // Of every pooling and of lengths around the borders of pages.
  std::vector<Request> Embeddings() const {
    std::vector<Request> requests;
    for (const size_t length : {1, 2, 9, 63, 64, 65, 130, 200}) {
      for (const Pooling p : kPoolings) requests.push_back(Embedding(length, length, p));
    }
    return requests;
  }
  Request Text(size_t tokens, size_t more, uint64_t seed) const {
    Request r;
    r.prompt = tiny_.Tokens(tokens, seed);
    r.max_tokens = more;
    r.ignore_eos = true;
    r.hash_logits = true;
    return r;
  }

  struct Ended {
    std::vector<Floats> vectors;
    std::vector<uint64_t> hashes;
    SequenceStats sum;
  };
  Ended RunAll(const std::vector<Request>& requests) {
    std::vector<Sequence*> all;
    for (const Request& r : requests) {
      Result<Sequence*> s = engine_->Add(r);
      EXPECT_TRUE(s.ok()) << s.status().message();
      all.push_back(*s);
    }
    while (*engine_->Step()) {
    }
    Ended ended;
    for (Sequence* s : all) {
      const bool embeds = s->request().embed.has_value();
      EXPECT_EQ(s->finish_reason(), embeds ? FinishReason::kStop : FinishReason::kLength);
      ended.vectors.push_back(s->embedding());
      ended.hashes.push_back(s->stats().logits_hash);
      ended.sum.preemptions += embeds ? s->stats().preemptions : 0;
      ended.sum.cached_tokens += s->stats().cached_tokens;
      engine_->Remove(s);
    }
    return ended;
  }
  std::vector<Floats> Alone(const std::vector<Request>& requests) {
    Start({}, 8);
    std::vector<Floats> vectors;
    for (const Request& r : requests) vectors.push_back(RunAll({r}).vectors.front());
    return vectors;
  }
  static void ExpectSame(const std::vector<Floats>& found, const std::vector<Floats>& want,
                         const std::string& what) {
    ASSERT_GE(found.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_TRUE(SameBytes(found[i], want[i])) << what << ", embedding " << i;
    }
  }
};

TEST_P(EmbeddingTest, PoolsTheStatesOfItsTokens) {
  const std::vector<Floats> v =
      Alone({Embedding(70, 3, Pooling::kNone), Embedding(70, 3, Pooling::kMean),
             Embedding(70, 3, Pooling::kCls), Embedding(70, 3, Pooling::kLast)});
  const size_t dim = runner_->config().dim;
  ASSERT_EQ(v[0].size(), 70 * dim);
  EXPECT_TRUE(SameBytes(v[2], Floats(v[0].begin(), v[0].begin() + static_cast<ptrdiff_t>(dim))));
  EXPECT_TRUE(SameBytes(v[3], Floats(v[0].end() - static_cast<ptrdiff_t>(dim), v[0].end())));
  for (size_t i = 0; i < dim; ++i) {
    double sum = 0;
    for (size_t t = 0; t < 70; ++t) sum += static_cast<double>(v[0][t * dim + i]);
    EXPECT_FLOAT_EQ(v[1][i], static_cast<float>(sum / 70)) << i;
  }
  // The comparison sees another token at the start (though not in a window of 16), and at the end.
  Request other = Embedding(70, 3, Pooling::kMean);
  ++other.prompt.back();
  EXPECT_FALSE(SameBytes(RunAll({other}).vectors[0], v[1]));
}

TEST_P(EmbeddingTest, ChunksThreadsAndNeighboursDoNotMatter) {
  const std::vector<Request> requests = Embeddings();
  const std::vector<Floats> alone = Alone(requests);
  std::vector<Request> mixed = requests;
  for (size_t i = 0; i < 8; ++i) mixed.push_back(Text(20 + 11 * i, 40, 50 + i));
  std::vector<uint64_t> texts;
  for (size_t i = requests.size(); i < mixed.size(); ++i) {
    texts.push_back(RunAll({mixed[i]}).hashes[0]);
  }
  for (const size_t chunk : {7, 32, 512}) {
    for (const int threads : {1, 2}) {
      const std::string what = "chunk " + std::to_string(chunk) + ", " + std::to_string(threads);
      Start({.max_sequences = 9}, 60, chunk, threads);
      const Ended ended = RunAll(mixed);
      ExpectSame(ended.vectors, alone, what);
      // Nor do they matter to others.
      for (size_t i = 0; i < texts.size(); ++i) {
        EXPECT_EQ(ended.hashes[requests.size() + i], texts[i]) << what;
      }
      EXPECT_EQ(runner_->pool().free_pages(), runner_->pool().total_pages());
    }
  }
}

TEST_P(EmbeddingTest, KeptPrefixesDoNotMatter) {
  const std::vector<Request> requests = Embeddings();
  const std::vector<Floats> alone = Alone(requests);
  Start({.max_sequences = 4, .prefix_cache = true}, 100, 32);
  // What is kept of texts that begin the same has no states for a mean.
  for (const Request& r : requests) {
    Request text = Text(1, 1, 0);
    text.prompt = r.prompt;
    RunAll({text});
  }
  const Ended first = RunAll(requests);
  ExpectSame(first.vectors, alone, "after texts");
  const Ended again = RunAll(requests);
  ExpectSame(again.vectors, alone, "again");
  EXPECT_GT(again.sum.cached_tokens, 0u);
  for (const Pooling p : kPoolings) {
    const size_t cached = RunAll({Embedding(200, 200, p)}).sum.cached_tokens;
    EXPECT_EQ(cached, p == Pooling::kLast ? 199u : 0u) << PoolingName(p);
  }

  // The negative control: were a kept page wrong, this comparison would see it.
  const Request last = Embedding(200, 200, Pooling::kLast);
  const Floats right = RunAll({last}).vectors[0];
  Request text = Text(1, 2, 0);
  text.prompt = last.prompt;
  Result<Sequence*> s = engine_->Add(text);
  ASSERT_TRUE(s.ok());
  ASSERT_TRUE(*engine_->Step());
  std::memset((*s)->kv().page_of(runner_->config().layers - 1, 0, 190), 0,
              runner_->pool().page_bytes());
  while (*engine_->Step()) {
  }
  EXPECT_FALSE(SameBytes(RunAll({last}).vectors[0], right));
}

TEST_P(EmbeddingTest, BeingPutOffDoesNotMatter) {
  for (const Pooling p : kPoolings) {
    const Request embedding = Embedding(250, 4, p);
    const Floats alone = Alone({embedding}).front();
    size_t preemptions = 0;
    for (const size_t spans : {6, 7, 8}) {
      // The texts grow into what the embedding has, which came last, while it is computed in
      // pieces.
      Start({.max_sequences = 8}, spans, 8);
      std::vector<Request> requests{Text(60, 60, 1), Text(61, 60, 2), Text(62, 60, 3), embedding};
      const Ended ended = RunAll(requests);
      EXPECT_TRUE(SameBytes(ended.vectors.back(), alone)) << PoolingName(p) << ", " << spans;
      preemptions += ended.sum.preemptions;
    }
    EXPECT_GT(preemptions, 0u) << PoolingName(p);
  }
}

TEST_P(EmbeddingTest, RefusesWhatCannotBe) {
  Start({}, 8);
  EXPECT_EQ(engine_->Add(Embedding(5, 1, Pooling::kRank)).status().code(),
            StatusCode::kUnsupported);
  EXPECT_EQ(engine_->Add(Embedding(0, 1, Pooling::kLast)).status().code(),
            StatusCode::kInvalidArgument);
  const Status too_long = engine_->Add(Embedding(kContext + 1, 1, Pooling::kMean)).status();
  EXPECT_EQ(too_long.code(), StatusCode::kTooLong);
  EXPECT_NE(too_long.message().find("321"), std::string::npos) << too_long.message();
  EXPECT_NE(too_long.message().find("320"), std::string::npos) << too_long.message();
  EXPECT_EQ(RunAll({Embedding(kContext, 1, Pooling::kMean)}).vectors[0].size(), 64u);
}

TEST_P(EmbeddingTest, ACancelledOneHasNoVector) {
  Start({}, 8, 16);
  Result<Sequence*> s = engine_->Add(Embedding(100, 1, Pooling::kMean));
  ASSERT_TRUE(s.ok());
  ASSERT_TRUE(*engine_->Step());
  (*s)->Cancel();
  while (*engine_->Step()) {
  }
  EXPECT_EQ((*s)->finish_reason(), FinishReason::kCancelled);
  EXPECT_TRUE((*s)->embedding().empty());
  EXPECT_EQ(runner_->pool().free_pages(), runner_->pool().total_pages());
}

INSTANTIATE_TEST_SUITE_P(Models, EmbeddingTest, testing::Values("llama", "gemma3", "moe"),
                         [](const auto& info) { return std::string(info.param); });

// The logits of a model are its states times its output matrix: so are those of every architecture,
// with the scale and the cap that some put behind it.
class StatesTest : public testing::TestWithParam<std::string> {};

TEST_P(StatesTest, MakeTheLogits) {
  const std::string path = (SharedOracles("arch") / (GetParam() + ".gguf")).string();
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "skipped: no shared oracles";
  RunnerOptions o = TestOptions(64);
  o.activations = Activations::kF32;
  const std::unique_ptr<ModelRunner> runner = MakeRunner(path, o);
  ASSERT_TRUE(runner);
  const Config& c = runner->config();
  const std::vector<int32_t> tokens{1, 2, 3, 4, 5};
  const std::vector<int32_t> rows{1, 4};
  const std::unique_ptr<KvSequence> kv = runner->NewSequence();
  ASSERT_TRUE(kv->Reserve(tokens.size()).ok());
  const BatchSegment segment{kv.get(), 0, tokens.size(), 0};
  Floats logits(rows.size() * c.vocab), states(rows.size() * c.dim);
  runner->Forward({tokens, {&segment, 1}, rows, rows}, false, {logits.data()}, states.data());

  const Weight& output = runner->model().weights().output;
  ASSERT_FALSE(output.panels);
  Floats row(c.dim);
  for (size_t i = 0; i < rows.size(); ++i) {
    double largest = 0, worst = 0;
    for (size_t id = 0; id < c.vocab; ++id) {
      output.format->decode(output.data + id * output.format->RowBytes(c.dim), c.dim, row.data());
      double logit = output.bias ? static_cast<double>(output.bias[id]) : 0;
      for (size_t k = 0; k < c.dim; ++k) {
        logit += static_cast<double>(row[k]) * static_cast<double>(states[i * c.dim + k]);
      }
      logit *= static_cast<double>(c.logit_scale);
      const auto cap = static_cast<double>(c.logit_soft_cap);
      if (cap > 0) logit = cap * std::tanh(logit / cap);
      largest = std::max(largest, std::abs(logit));
      worst = std::max(worst, std::abs(logit - static_cast<double>(logits[i * c.vocab + id])));
    }
    EXPECT_GT(largest, 0);
    EXPECT_LT(worst, 1e-4 * largest) << "row " << rows[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Oracles, StatesTest, testing::ValuesIn(OracleNames("arch")),
                         [](const auto& info) { return TestName(info.param); });

// A call of many inputs gives the engine the next one when one has ended.
TEST(EmbeddingServiceTest, ThePlaceOfOneThatEndedIsTakenInAFullHouse) {
  const TempFolder folder;
  const TinyModel tiny;
  ServiceOptions options;
  options.runner = TestOptions(128);
  options.max_queue = 0;
  auto service = EngineService::Create(tiny.Write(folder.path("m.gguf")), options);
  ASSERT_TRUE(service.ok()) << service.status().message();
  std::promise<size_t> done;
  size_t left = 5, vectors = 0;
  std::function<Request()> make = [&] {
    Request r;
    r.prompt = tiny.Tokens(20, left);
    r.embed = Pooling::kMean;
    r.on_finish = [&](const Sequence& s) {
      vectors += s.embedding().size() == 64 ? 1 : 0;
      if (--left == 0) return done.set_value(vectors);
      EXPECT_EQ((*service)->Submit({make()}).status().code(), StatusCode::kBusy);
      EXPECT_TRUE((*service)->SubmitNext(make()).ok());
    };
    return r;
  };
  ASSERT_TRUE((*service)->Submit({make()}).ok());
  std::future<size_t> result = done.get_future();
  ASSERT_EQ(result.wait_for(std::chrono::minutes(1)), std::future_status::ready);
  (*service)->Stop();  // before what its callbacks refer to goes
  EXPECT_EQ(result.get(), 5u);
}

}  // namespace
}  // namespace sluice
