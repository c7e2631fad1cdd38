// sluice perplexity: how well a model predicts a text.
#include "src/engine/perplexity.h"

#include <unistd.h>

#include <boost/json.hpp>
#include <cstdio>

#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/words.h"
#include "src/text/json_text.h"
#include "src/text/tokenizer.h"

namespace sluice {
namespace {

struct PerplexityFlags {
  ModelFlags model;
  std::string file;
  std::string save_logits;
  bool kl = false;
  bool json = false;
};

std::string Estimate(const Perplexity& p) {
  char buffer[64];
  std::snprintf(buffer, sizeof(buffer), "PPL %.4f +- %.4f", p.value(), p.error());
  return buffer;
}

std::string Estimate(const Divergence& d) {
  char buffer[96];
  std::snprintf(buffer, sizeof(buffer), "KL %.6f +- %.6f, same top token %.2f %%", d.mean(),
                d.error(), 100 * d.top_share());
  return buffer;
}

boost::json::object Values(const Perplexity& p) {
  return {{"perplexity", p.value()}, {"error", p.error()}, {"nll_sum", p.nll_sum}};
}

boost::json::object Values(const Divergence& d) {
  return {{"kl", d.mean()}, {"kl_error", d.error()}, {"same_top", d.top_share()}};
}

// The model again, without any rounding of ours: the weights' own values, exact products.
Result<std::unique_ptr<ModelRunner>> LoadExact(const ModelFlags& flags) {
  ModelFlags exact = flags;
  exact.activations = exact.kv_type = "f32";
  exact.value_type.clear();
  exact.weights = "gguf";
  exact.relaxed = false;
  return LoadRunner("perplexity", exact);
}

Result<int> Run(const PerplexityFlags& f) {
  ASSIGN_OR_RETURN(const std::string text, ReadAll(f.file));
  ModelFlags model = f.model;
  if (model.context == 0) model.context = 512;
  if (model.context < 4) {
    return Status(StatusCode::kInvalidArgument,
                  "--ctx-size: expected at least 4, found " + std::to_string(model.context));
  }
  ASSIGN_OR_RETURN(std::unique_ptr<ModelRunner> runner, LoadRunner("perplexity", model));
  ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer,
                   Tokenizer::Load(runner->model().gguf()));
  const std::vector<int32_t> tokens = tokenizer->Encode(text, {.add_special = true});
  const std::optional<int32_t> bos = tokenizer->adds_bos() ? tokenizer->bos() : std::nullopt;

  const auto measure = [&](const auto& how) -> Result<int> {
    InterruptGuard interrupt;
    const auto result = [&] {
      Progress bar("perplexity", Progress::Unit::kCount);
      return how([&](const auto& p, size_t windows) {
        bar.Update(p.windows, windows, Estimate(p));
        return !interrupt.interrupted();
      });
    }();
    if (!result.ok()) return result.status();
    const size_t all = tokens.size() / model.context;  // fewer are done after Ctrl-C
    if (f.json) {
      boost::json::object o = Values(*result);
      o["scored_tokens"] = result->scored;
      o["tokens"] = tokens.size();
      o["windows"] = result->windows;
      o["windows_in_text"] = all;
      o["ctx_size"] = model.context;
      std::printf("%s\n", ToJson(o).c_str());
    } else {
      std::printf("%s (%zu of %zu windows of %zu tokens, %zu scored)\n", Estimate(*result).c_str(),
                  result->windows, all, model.context, result->scored);
    }
    return interrupt.interrupted() ? kExitInterrupted : kExitOk;
  };
  if (f.kl) {
    ASSIGN_OR_RETURN(const std::unique_ptr<ModelRunner> exact, LoadExact(model));
    return measure([&](const auto& report) {
      return MeasureDivergence(*runner, *exact, tokens, bos, model.context, report);
    });
  }
  std::unique_ptr<SavedLogits> save;
  if (!f.save_logits.empty()) {
    ASSIGN_OR_RETURN(save, SavedLogits::Create(f.save_logits, runner->config().vocab, model.context,
                                               WindowTokens(tokens, bos, model.context)));
  }
  ASSIGN_OR_RETURN(const int code, measure([&](const auto& report) {
                     return MeasurePerplexity(*runner, tokens, bos, model.context, report,
                                              save.get());
                   }));
  if (save && code == kExitOk) RETURN_IF_ERROR(save->Commit());
  if (save && code != kExitOk) {
    std::fprintf(stderr, "sluice perplexity: interrupted: %s is not written\n",
                 f.save_logits.c_str());
  }
  return code;
}

}  // namespace

void AddPerplexity(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<PerplexityFlags>();
  CLI::App* c = app.add_subcommand("perplexity", "How well a model predicts a text");
  flags->model.context = 512;
  flags->model.AddTo(*c);
  c->add_option("-f,--file", flags->file, "The text; - is stdin")->type_name("FILE")->required();
  c->add_flag("--kl,--kl-divergence", flags->kl,
              "Instead: mean divergence of these flags' logits from exact ones "
              "(--activations f32 --kv-type f32), over the same positions");
  c->add_option("--save-all-logits", flags->save_logits,
                "Also write the scored positions' log-probabilities, as the base that "
                "llama-perplexity --kl-divergence --kl-divergence-base reads")
      ->type_name("FILE")
      ->check(NamesAFile)
      ->excludes("--kl");
  c->add_flag("--json", flags->json, "One JSON object");
  c->footer(
      "Windows of --ctx-size tokens (default 512), the second half of each scored; where the "
      "vocabulary adds BOS, it replaces the first token of each window.\n"
      "Example:\n  sluice perplexity gemma-3-270m -f book.txt");
  c->callback([flags, exit_code] {
    const Result<int> code = Run(*flags);
    *exit_code = code.ok() ? *code : ReportError("perplexity", code.status());
  });
}

}  // namespace sluice
