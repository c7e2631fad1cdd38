// What holding a text to a grammar costs per token: making a mask that nothing
// is known of, and whole documents, walked for the first time and again. The
// vocabulary is made up here: 128k pieces of the kinds that vocabularies have.
//
// AMD EPYC (Zen 3), 2.4 GHz, two cores shared with other work, -O2, CPU time: a mask within a
// string that nothing is known of 2.8 ms, with a bound on its length 5.9 ms; documents of 1,419
// tokens walked for the first time 6.8 us a token (any object) and 12.4 us (the schema), again
// 0.7 and 1.3 us, most of which is reading the clock.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <boost/json.hpp>
#include <random>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/text/grammar/grammar.h"
#include "src/text/unicode.h"

namespace sluice {
namespace {

constexpr size_t kTokens = 128'000;

class MadeUpTokenizer final : public Tokenizer {
 public:
  MadeUpTokenizer() {
    for (int byte = 0; byte < 256; ++byte) Add(std::string(1, static_cast<char>(byte)));
    for (int i = 0; i < 1000; ++i) Add(std::to_string(i));
    for (size_t length = 2; length <= 128; ++length) {
      Add(std::string(length, ' '));
      Add("\n" + std::string(length, ' '));
    }
    for (const char* a :
         {"\"", "\":", "\",", "\"}", "\"]", "},", "],", "{\"", "[\"", "}\n", ",\n"}) {
      for (const char* b : {"", " ", "\"", " \"", "\n", "}", "]", "{", "[", ","})
        Add(std::string(a) + b);
    }
    AddWords();
  }
  // The longest piece at each place, as a tokenizer would mostly have it.
  std::vector<int32_t> Pieces(std::string_view text) const {
    std::vector<int32_t> ids;
    for (size_t at = 0; at < text.size();) {
      size_t length = std::min<size_t>(text.size() - at, 24);
      while (!ids_.contains(std::string(text.substr(at, length)))) --length;
      ids.push_back(ids_.at(std::string(text.substr(at, length))));
      at += length;
    }
    return ids;
  }
  std::vector<int32_t> Encode(std::string_view text, const EncodeOptions&) const override {
    return Pieces(text);
  }
  std::vector<int32_t> EncodeParts(std::span<const Part>, bool) const override { return {}; }
  std::string Decode(std::span<const int32_t>, bool) const override { return {}; }
  std::string Piece(int32_t id) const override { return pieces_[static_cast<size_t>(id)]; }
  size_t vocab_size() const override { return pieces_.size() + 1; }
  std::string_view text(int32_t id) const override { return pieces_[static_cast<size_t>(id)]; }
  TokenType type(int32_t id) const override {
    return IsEnd(id) ? TokenType::kControl : TokenType::kNormal;
  }
  std::string_view model() const override { return "made up"; }
  std::string_view pre() const override { return ""; }
  std::optional<int32_t> bos() const override { return std::nullopt; }
  std::optional<int32_t> eos() const override { return std::nullopt; }
  bool adds_bos() const override { return false; }
  bool drops_leading_blank() const override { return false; }
  bool IsEnd(int32_t id) const override { return static_cast<size_t>(id) == pieces_.size(); }
  std::optional<int32_t> SpecialId(std::string_view) const override { return std::nullopt; }

 private:
  void Add(const std::string& piece) {
    if (ids_.try_emplace(piece, static_cast<int32_t>(pieces_.size())).second)
      pieces_.push_back(piece);
  }
  // Made of syllables, half of them after a blank; some in capitals, some with a mark behind, some
  // in letters of two and three bytes.
  void AddWords() {
    std::mt19937 random(1);
    const std::string vowels = "aeiou", consonants = "bcdfghklmnprstvwz";
    while (pieces_.size() < kTokens) {
      std::string word = random() % 2 == 0 ? " " : "";
      const size_t kind = random() % 10;
      for (size_t syllables = 1 + random() % 4; syllables > 0; --syllables) {
        if (kind == 0) {
          AppendUtf8(0x4E00 + random() % 3000, word);
        } else if (kind == 1) {
          AppendUtf8(0x430 + random() % 32, word);
          AppendUtf8(0x430 + random() % 32, word);
        } else {
          word += consonants[random() % consonants.size()];
          word += vowels[random() % vowels.size()];
          if (random() % 3 == 0) word += consonants[random() % consonants.size()];
        }
      }
      if (kind == 2) word[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(word[0])));
      if (kind == 3) word += "\",.:;)('-_=/"[random() % 12];
      Add(word);
    }
  }
  std::vector<std::string> pieces_;
  std::unordered_map<std::string, int32_t> ids_;
};

const MadeUpTokenizer& Vocabulary() {
  static const MadeUpTokenizer tokenizer;
  return tokenizer;
}

constexpr const char* kSchema = R"({"type":"object","properties":{"people":{"type":"array","items":{
    "type":"object","properties":{"name":{"type":"string"},"note":{"type":"string","maxLength":400},
    "age":{"type":"integer","minimum":0,"maximum":150},"tags":{"type":"array","items":{
    "type":"string"},"maxItems":8},"kind":{"enum":["first","second","third"]}},
    "required":["name","age"]}}},"required":["people"]})";

// Fits the schema, and is an object.
std::string Document() {
  std::mt19937 random(2);
  const auto words = [&](size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i) {
      const std::string piece =
          Vocabulary().Piece(static_cast<int32_t>(10'000 + random() % 100'000));
      if (piece.find('"') == std::string::npos) text += piece;
    }
    return text;
  };
  std::string text = "{\n  \"people\": [";
  for (int i = 0; i < 20; ++i) {
    text += std::string(i > 0 ? "," : "") + "\n    {\n      \"name\": \"" + words(3) +
            "\",\n      \"note\": \"" + words(25) +
            "\",\n      \"age\": " + std::to_string(random() % 150) + ",\n      \"tags\": [\"" +
            words(1) + "\", \"" + words(1) + "\"],\n      \"kind\": \"second\"\n    }";
  }
  return text + "\n  ]\n}";
}

// CPU time of this thread: what others do on the machine does not count.
double Now() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// One walk: the mask and the step of every token.
void Walk(TokenConstraint& constraint, const std::vector<int32_t>& ids, benchmark::State& state) {
  double total = 0, worst = 0;
  for (const int32_t id : ids) {
    const double start = Now();
    const std::span<const uint64_t> mask = constraint.Allowed();
    if (!(mask[static_cast<size_t>(id) / 64] >> (id % 64) & 1)) {
      return state.SkipWithError("the document does not fit");
    }
    constraint.Accept(id);
    const double seconds = Now() - start;
    total += seconds;
    worst = std::max(worst, seconds);
  }
  state.SetIterationTime(total);
  state.counters["tokens"] = static_cast<double>(ids.size());
  state.counters["us_per_token"] = total / static_cast<double>(ids.size()) * 1e6;
  state.counters["us_worst"] = worst * 1e6;
}

std::shared_ptr<const Grammar> MakeGrammar(bool schema) {
  return schema ? *Grammar::FromJsonSchema(boost::json::parse(kSchema)) : Grammar::JsonObject();
}

void DocumentWalk(benchmark::State& state, bool schema, bool warm) {
  const std::vector<int32_t> ids = Vocabulary().Pieces(Document());
  const auto grammar = MakeGrammar(schema);
  auto vocabulary = MakeGrammarVocabulary(Vocabulary());
  if (warm) Walk(*grammar->Start(vocabulary), ids, state);
  for (auto _ : state) {
    if (!warm) vocabulary = MakeGrammarVocabulary(Vocabulary());
    Walk(*grammar->Start(vocabulary), ids, state);
  }
}

// The mask within a string, the one with nearly all tokens, when nothing is known.
void StringMask(benchmark::State& state, bool schema) {
  const std::string before = schema ? R"({"people":[{"name":"ab","note":"so)" : R"({"a":"so)";
  const auto grammar = MakeGrammar(schema);
  for (auto _ : state) {
    const auto constraint = grammar->Start(MakeGrammarVocabulary(Vocabulary()));
    for (const int32_t id : Vocabulary().Pieces(before)) constraint->Accept(id);
    const double start = Now();
    benchmark::DoNotOptimize(constraint->Allowed().data());
    state.SetIterationTime(Now() - start);
  }
}

void Compile(benchmark::State& state) {
  const boost::json::value schema = boost::json::parse(kSchema);
  for (auto _ : state) benchmark::DoNotOptimize(Grammar::FromJsonSchema(schema).ok());
}

void MakeVocabulary(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(MakeGrammarVocabulary(Vocabulary()).get());
}

BENCHMARK(MakeVocabulary)->Unit(benchmark::kMillisecond);
BENCHMARK(Compile)->Unit(benchmark::kMillisecond);
#define WALK(...) \
  BENCHMARK_CAPTURE(__VA_ARGS__)->UseManualTime()->Unit(benchmark::kMillisecond)->Iterations(10)
WALK(StringMask, any_object, false);
WALK(StringMask, schema, true);
WALK(DocumentWalk, any_object_first, false, false);
WALK(DocumentWalk, any_object_again, false, true);
WALK(DocumentWalk, schema_first, true, false);
WALK(DocumentWalk, schema_again, true, true);

}  // namespace
}  // namespace sluice

BENCHMARK_MAIN();
