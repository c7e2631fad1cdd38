// Reading the sentence of a goal.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

#include "src/base/printable.h"
#include "src/engine/advice.h"

namespace sluice {
namespace {

constexpr char kExamples[] =
    "write it like \"TTFT under 2 s at 4k prompts\" or \"10 tok/s for 4 users, 8k context\"";

Status Bad(const std::string& what) {
  return Status(StatusCode::kInvalidArgument, "--advise: " + what + "; " + kExamples);
}

bool Is(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool Digit(char c) { return c >= '0' && c <= '9'; }

// Lower case, without commas and full stops at the end; a number and the unit glued to it are two
// words.
std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words(1);
  for (char c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    std::string& word = words.back();
    if (c == ' ' || c == ',' || c == ';' ||
        std::string_view("\t\n<>=").find(c) != std::string_view::npos) {
      words.emplace_back();
    } else if (!word.empty() && Digit(word[0]) != (Digit(c) || (c == '.' && Digit(word[0])))) {
      words.emplace_back(1, c);
    } else {
      word += c;
    }
  }
  for (std::string& word : words) {
    while (!word.empty() && word.back() == '.') word.pop_back();
  }
  std::erase_if(words, [](const std::string& word) { return word.empty(); });
  return words;
}

class Reader {
 public:
  Result<Goal> Read(const std::string& text) {
    for (const std::string& word : Words(text)) RETURN_IF_ERROR(Take(word));
    if (number_) return Bad("the last number has no unit");
    if (!goal_.ttft_s && !goal_.token_s) {
      return Bad("expected a time to the first token (TTFT) or a speed (tok/s)");
    }
    return goal_;
  }

 private:
  Status Take(const std::string& word) {
    if (Digit(word[0])) {
      char* end = nullptr;
      number_ = std::strtod(word.c_str(), &end);
      if (*end != 0 || !std::isfinite(*number_) || *number_ > 1e9) {
        return Bad("expected a number, found " + Printable(word));
      }
      return Status();
    }
    if (Is(word, {"k", "ki"})) return Scale(1024);
    if (Is(word, {"ttft", "first"})) return Noun("ttft");
    if (Is(word, {"itl", "tpot", "inter-token"})) return Noun("token");
    if (Is(word, {"s", "sec", "second", "seconds"})) return Duration(1);
    if (Is(word, {"ms", "millisecond", "milliseconds"})) return Duration(1e-3);
    if (Is(word, {"tok/s", "tokens/s", "token/s", "t/s", "tps"})) return Rate();
    if (Is(word, {"user", "users", "stream", "streams", "client", "clients", "request", "requests",
                  "sequence", "sequences"})) {
      return Count(&goal_.users);
    }
    if (Is(word, {"prompt", "prompts"})) return Count(&goal_.prompt);
    if (Is(word, {"output", "outputs"})) return Count(&goal_.output);
    if (Is(word, {"context", "contexts", "ctx"})) return Count(&goal_.context);
    if (Is(word, {"under", "below", "within", "at",   "for", "with",       "of",          "and",
                  "in",    "each",  "least",  "per",  "a",   "the",        "token",       "tokens",
                  "to",    "time",  "most",   "<",    "<=",  ">",          ">=",          "than",
                  "less",  "more",  "over",   "long", "-",   "concurrent", "simultaneous"})) {
      return Status();
    }
    return Bad("no meaning for " + Printable(word));
  }

  Status Scale(double factor) {
    if (!number_) return Bad("expected a number before k");
    *number_ *= factor;
    return Status();
  }
  Status Noun(const char* noun) {
    noun_ = noun;
    return Status();
  }
  Status Duration(double unit) {
    if (!number_ || *number_ <= 0) return Bad("expected a number above 0 before s or ms");
    if (noun_.empty()) return Bad("expected TTFT or ITL before a time");
    (noun_ == "ttft" ? goal_.ttft_s : goal_.token_s) = *number_ * unit;
    number_.reset();
    return Status();
  }
  Status Rate() {
    if (!number_ || *number_ <= 0) return Bad("expected a number above 0 before tok/s");
    goal_.token_s = 1 / *number_;
    number_.reset();
    return Status();
  }
  Status Count(std::optional<size_t>* out) {
    if (!number_ || *number_ < 1) return Bad("expected a count of at least 1 before each noun");
    *out = static_cast<size_t>(*number_);
    number_.reset();
    return Status();
  }

  Goal goal_;
  std::optional<double> number_;
  std::string noun_;
};

}  // namespace

double Goal::Distance(const Prediction& p) const {
  double distance = 0;
  if (ttft_s) distance = std::max(distance, p.last_ttft_s / *ttft_s);
  if (token_s) distance = std::max(distance, p.token_s / *token_s);
  return distance;
}

Result<Goal> ParseGoal(const std::string& text) { return Reader().Read(text); }

}  // namespace sluice
