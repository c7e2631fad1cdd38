// sluice eval: what an outside oracle needs of a model. Logits of the last
// position, argmax and log-probability of each, sum of -ln p, greedy tokens.
#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <cstdio>
#include <vector>

#include "cli/command.h"
#include "simd/vector_ops.h"
#include "src/base/printable.h"
#include "src/engine/evaluate.h"
#include "src/text/json_text.h"

namespace sluice {
namespace {

struct EvalFlags {
  ModelFlags model;
  std::string tokens, file;
  size_t greedy = 0;
  bool json = false;
};

struct Evaluation {
  std::vector<int32_t> argmax;   // after each prefix
  std::vector<double> logprobs;  // of tokens[i + 1]
  double nll_sum = 0;
  std::vector<float> logits_last;
  std::vector<int32_t> greedy;
};

// Ids separated by blanks or commas.
Result<std::vector<int32_t>> ParseIds(const std::string& text) {
  std::vector<int32_t> ids;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == ',' || std::isspace(static_cast<unsigned char>(text[i]))) {
      ++i;
      continue;
    }
    size_t end = i;
    long value = 0;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) &&
           value < (1L << 32)) {
      value = 10 * value + (text[end++] - '0');
    }
    if (end == i || value > INT32_MAX) {
      return Status(StatusCode::kInvalidArgument,
                    "--tokens: expected ids separated by commas or blanks, found " +
                        Printable(text.substr(i, 20)));
    }
    ids.push_back(static_cast<int32_t>(value));
    i = end;
  }
  if (ids.empty())
    return Status(StatusCode::kInvalidArgument, "--tokens: expected at least one id");
  return ids;
}

Result<Evaluation> Evaluate(ModelRunner& runner, const std::vector<int32_t>& tokens,
                            size_t greedy) {
  Evaluation e;
  Evaluator evaluator(runner);
  int32_t next = 0;
  size_t finite = 0;  // positions before the first whose logits are not
  const LogitSink sink = [&](size_t position, std::span<const float> logits) {
    const bool good =
        std::all_of(logits.begin(), logits.end(), [](float l) { return std::isfinite(l); });
    if (good && finite == position) ++finite;
    next = static_cast<int32_t>(ArgMax(logits.data(), logits.size()));
    if (position >= tokens.size()) return;
    e.argmax.push_back(next);
    if (position + 1 < tokens.size()) {
      const double lp = static_cast<double>(logits[static_cast<size_t>(tokens[position + 1])]) -
                        LogSumExp(logits.data(), logits.size());
      e.logprobs.push_back(lp);
      e.nll_sum -= lp;
    } else {
      e.logits_last.assign(logits.begin(), logits.end());
    }
  };
  RETURN_IF_ERROR(evaluator.Append(tokens, 0, sink));
  for (size_t i = 0; i < greedy; ++i) {
    const int32_t token = next;
    e.greedy.push_back(token);
    if (i + 1 < greedy) RETURN_IF_ERROR(evaluator.Append({&token, 1}, evaluator.length(), sink));
  }
  if (finite != evaluator.length()) {
    return Status(StatusCode::kCorrupt, "the logits of position " + std::to_string(finite) +
                                            " are not finite: the weights are damaged, or their "
                                            "types are not what the file says");
  }
  return e;
}

template <class T>
boost::json::array ToArray(const std::vector<T>& values) {
  boost::json::array a;
  a.reserve(values.size());
  for (T v : values) a.emplace_back(static_cast<double>(v));
  return a;
}

boost::json::array ToArray(const std::vector<int32_t>& values) {
  return boost::json::array(values.begin(), values.end());
}

void Print(const Evaluation& e, bool json) {
  if (json) {
    const boost::json::object o{{"logits_last", ToArray(e.logits_last)},
                                {"argmax", ToArray(e.argmax)},
                                {"logprobs", ToArray(e.logprobs)},
                                {"nll_sum", e.nll_sum},
                                {"greedy", ToArray(e.greedy)}};
    std::printf("%s\n", ToJson(o).c_str());
    return;
  }
  std::printf("tokens      %zu\n", e.argmax.size());
  std::printf("nll sum     %.6f\n", e.nll_sum);
  if (!e.logprobs.empty()) {
    std::printf("perplexity  %.4f\n", std::exp(e.nll_sum / static_cast<double>(e.logprobs.size())));
  }
  std::printf("next        %d (logit %.6f)\n", e.argmax.back(),
              static_cast<double>(e.logits_last[static_cast<size_t>(e.argmax.back())]));
  if (!e.greedy.empty()) {
    std::printf("greedy     ");
    for (int32_t id : e.greedy) std::printf(" %d", id);
    std::printf("\n");
  }
}

Status Run(const EvalFlags& f) {
  std::string text = f.tokens;
  if (!f.file.empty()) {
    ASSIGN_OR_RETURN(text, ReadAll(f.file));
  }
  ASSIGN_OR_RETURN(const std::vector<int32_t> tokens, ParseIds(text));
  ModelFlags model = f.model;
  if (model.context == 0) model.context = tokens.size() + f.greedy;
  ASSIGN_OR_RETURN(std::unique_ptr<ModelRunner> runner, LoadRunner("eval", model));
  ASSIGN_OR_RETURN(const Evaluation e, Evaluate(*runner, tokens, f.greedy));
  Print(e, f.json);
  return Status();
}

}  // namespace

void AddEval(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<EvalFlags>();
  // Judges the model, not the rounding of its inputs; --activations int8 --kv-type auto is what
  // `run` computes.
  flags->model.kv_type = "f32";
  flags->model.activations = "f32";
  CLI::App* c = app.add_subcommand("eval", "Logits and log-probabilities of given token ids");
  flags->model.AddTo(*c);
  auto* tokens =
      c->add_option("--tokens", flags->tokens, "Ids separated by commas")->type_name("IDS");
  c->add_option("-f,--file", flags->file, "File of ids separated by blanks or commas; - is stdin")
      ->type_name("FILE")
      ->excludes(tokens);
  c->add_option("--greedy", flags->greedy, "Greedy tokens to add; an end token does not stop them")
      ->check(CLI::Range(0, 1 << 24));
  c->add_flag("--json", flags->json, "One JSON object");
  c->footer(
      "No BOS is added.\nExample:\n  sluice eval gemma-3-270m --tokens 2,818,5279 --greedy 8 "
      "--json");
  c->callback([flags, exit_code] {
    if (Status s = Run(*flags); !s.ok()) *exit_code = ReportError("eval", s);
  });
}

}  // namespace sluice
