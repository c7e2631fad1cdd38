#include "cli/bench_flags.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <utility>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/model_path.h"
#include "cli/words.h"
#include "src/base/printable.h"
#include "src/file/gguf.h"
#include "src/model/model.h"

namespace sluice {
namespace {

constexpr size_t kMostValues = 1000;
constexpr size_t kMostPositions = size_t{1} << 30;
constexpr size_t kMostRows = 65536;    // of one pass
constexpr size_t kMostThreads = 1024;  // ThreadTeam's limit

Status BadFlag(const std::string& flag, const std::string& what) {
  return Status(StatusCode::kInvalidArgument, flag + ": " + what);
}

std::vector<std::string> SplitAtCommas(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// Takes a number from the front of `text`.
bool TakeNumber(std::string_view* text, size_t* number) {
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *number);
  if (error != std::errc()) return false;
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return true;
}

struct Range {
  size_t first = 0, last = 0, step = 1;
  char op = '+';
};

// first[-last[+step|*factor]]
bool ParseRange(std::string_view text, Range* r) {
  if (!TakeNumber(&text, &r->first)) return false;
  r->last = r->first;
  if (text.empty()) return true;
  if (text[0] != '-') return false;
  text.remove_prefix(1);
  if (!TakeNumber(&text, &r->last) || r->last < r->first) return false;
  if (text.empty()) return true;
  r->op = text[0];
  if (r->op != '+' && r->op != '*') return false;
  text.remove_prefix(1);
  if (!TakeNumber(&text, &r->step) || !text.empty()) return false;
  return r->op == '+' ? r->step > 0 : r->step > 1 && r->first > 0;
}

Status AppendRange(const std::string& flag, const std::string& text, size_t least, size_t most,
                   std::vector<size_t>* values) {
  Range range;
  if (!ParseRange(text, &range)) {
    return BadFlag(flag,
                   "expected N, FIRST-LAST, FIRST-LAST+STEP or FIRST-LAST*FACTOR, or several with "
                   "commas, found " +
                       Printable(text));
  }
  if (range.first < least || range.last > most) {
    return BadFlag(flag, "expected numbers from " + std::to_string(least) + " to " +
                             std::to_string(most) + ", found " + Printable(text));
  }
  // last <= 2^30, so a step or factor that would run over only ends the loop once it is bounded.
  const size_t step = std::min(range.step, kMostPositions);
  for (size_t v = range.first; v <= range.last; v = range.op == '+' ? v + step : v * step) {
    if (values->size() == kMostValues) {
      return BadFlag(flag, "expected at most " + std::to_string(kMostValues) +
                               " values, found more in " + Printable(text));
    }
    values->push_back(v);
  }
  return Status();
}

// Paths of the models: a list splits at commas unless a file has the name as it stands.
Result<std::vector<std::string>> FindModels(const BenchFlags& flags) {
  std::vector<std::string> names, paths;
  for (const auto* list : {&flags.positional_models, &flags.models}) {
    for (const std::string& text : *list) {
      std::error_code ignored;
      if (std::filesystem::exists(text, ignored)) {
        names.push_back(text);
      } else {
        for (std::string& name : SplitAtCommas(text)) names.push_back(std::move(name));
      }
    }
  }
  if (names.empty()) names.emplace_back();  // the default model
  for (const std::string& name : names) {
    ASSIGN_OR_RETURN(std::string path, FindModel(name));
    paths.push_back(std::move(path));
  }
  return paths;
}

Result<std::vector<std::optional<KvType>>> KvTypes(const BenchFlags& flags) {
  if (!flags.value_type.empty() && flags.value_type != flags.kv_type) {
    return BadFlag("-ctv", "keys and values share one type here; expected what -ctk has");
  }
  std::vector<std::optional<KvType>> types;
  for (const std::string& list : flags.kv_type) {
    for (const std::string& word : SplitAtCommas(list)) {
      ASSIGN_OR_RETURN(const std::optional<KvType> type, ParseKvType(word));
      types.push_back(type);
    }
  }
  return types;
}

Result<std::vector<LoadMode>> LoadModes(const BenchFlags& flags) {
  std::vector<LoadMode> modes;
  for (const std::string& list : flags.weights) {
    for (const std::string& word : SplitAtCommas(list)) {
      ASSIGN_OR_RETURN(const LoadMode mode, ParseLoadMode(word));
      modes.push_back(mode);
    }
  }
  return modes;
}

Result<std::vector<std::string>> PageKinds(const BenchFlags& flags) {
  std::vector<std::string> kinds;
  for (const std::string& list : flags.huge_pages) {
    for (std::string& word : SplitAtCommas(list)) {
      if (const auto parsed = ParseHugePages(word); !parsed.ok()) return parsed.status();
      kinds.push_back(std::move(word));
    }
  }
  return kinds;
}

// -pg 512,128: pairs, no ranges.
Result<std::vector<std::pair<size_t, size_t>>> PromptGeneratePairs(const BenchFlags& flags) {
  std::vector<std::pair<size_t, size_t>> pairs;
  for (const std::string& text : flags.prompt_generate) {
    const Result<std::vector<size_t>> numbers = ParseNumbers("-pg", {text}, 0, kMostPositions);
    if (!numbers.ok()) return numbers.status();
    if (numbers->size() != 2 || (*numbers)[0] + (*numbers)[1] == 0) {
      return BadFlag("-pg", "expected PROMPT,GENERATE, as in 512,128, found " + Printable(text));
    }
    pairs.emplace_back((*numbers)[0], (*numbers)[1]);
  }
  return pairs;
}

// Depth by depth: prompts, then generations at each concurrency, then both.
Result<std::vector<BenchTest>> Tests(const BenchFlags& flags) {
  ASSIGN_OR_RETURN(const auto prompts, ParseNumbers("-p", flags.prompt, 0, kMostPositions));
  ASSIGN_OR_RETURN(const auto generates, ParseNumbers("-n", flags.generate, 0, kMostPositions));
  ASSIGN_OR_RETURN(const auto depths, ParseNumbers("-d", flags.depth, 0, kMostPositions));
  ASSIGN_OR_RETURN(const auto concurrencies, ParseNumbers("-np", flags.concurrency, 1, kMostRows));
  ASSIGN_OR_RETURN(const auto pairs, PromptGeneratePairs(flags));
  std::vector<BenchTest> tests;
  for (const size_t depth : depths) {
    for (const size_t prompt : prompts) {
      if (prompt > 0) tests.push_back({prompt, 0, depth, 1});
    }
    for (const size_t generate : generates) {
      for (const size_t m : concurrencies) {
        if (generate > 0) tests.push_back({0, generate, depth, m});
      }
    }
    for (const auto& [prompt, generate] : pairs) {
      for (const size_t m : concurrencies) tests.push_back({prompt, generate, depth, m});
    }
  }
  if (tests.empty()) return BadFlag("-p 0 -n 0", "nothing is left to measure");
  return tests;
}

Result<std::vector<BenchSetup>> Setups(const BenchFlags& flags) {
  ASSIGN_OR_RETURN(const auto weights, LoadModes(flags));
  ASSIGN_OR_RETURN(const auto pages, PageKinds(flags));
  ASSIGN_OR_RETURN(const auto kv_types, KvTypes(flags));
  const bool micro = !flags.micro_batch.empty();
  ASSIGN_OR_RETURN(
      const auto batches,
      ParseNumbers(micro ? "-ub" : "-b", micro ? flags.micro_batch : flags.batch, 1, kMostRows));
  ASSIGN_OR_RETURN(const auto threads, ParseNumbers("-t", flags.threads, 0, kMostThreads));
  ASSIGN_OR_RETURN(const auto prefill, ParseNumbers("-tb", flags.threads_batch, 0, kMostThreads));
  ASSIGN_OR_RETURN(const auto models, FindModels(flags));
  std::vector<BenchSetup> setups(1), more;
  if (flags.portable && flags.relaxed) {
    return BadFlag("--relaxed, --portable", "expected one of them, found both");
  }
  if (const auto parsed = ParseNumaMode(flags.numa); !parsed.ok()) return parsed.status();
  setups[0].relaxed = flags.relaxed;
  setups[0].portable = flags.portable;
  setups[0].mlock = flags.mlock;
  setups[0].numa = flags.numa;
  // Multiplies the setups by the values of one member, which then varies fastest.
  const auto cross = [&](const auto& values, const auto& set) {
    more.clear();
    for (const BenchSetup& setup : setups) {
      for (const auto& value : values) {
        more.push_back(setup);
        set(more.back(), value);
      }
    }
    setups.swap(more);
  };
  cross(models, [](BenchSetup& s, const std::string& v) { s.model = v; });
  cross(weights, [](BenchSetup& s, LoadMode v) { s.weights = v; });
  cross(pages, [](BenchSetup& s, const std::string& v) { s.huge_pages = v; });
  cross(kv_types, [](BenchSetup& s, std::optional<KvType> v) { s.kv_type = v; });
  cross(batches, [](BenchSetup& s, size_t v) { s.batch = v; });
  cross(threads, [](BenchSetup& s, size_t v) { s.threads = static_cast<int>(v); });
  cross(prefill, [](BenchSetup& s, size_t v) { s.threads_batch = static_cast<int>(v); });
  return setups;
}

Status CheckContext(const std::string& path, const std::vector<BenchTest>& tests) {
  ASSIGN_OR_RETURN(const std::unique_ptr<Gguf> gguf, Gguf::Open(path));
  const Result<Config> config = ReadConfig(*gguf);
  if (!config.ok()) return config.status().Within(path);
  for (const BenchTest& t : tests) {
    if (t.positions() <= config->context) continue;
    return Status(StatusCode::kInvalidArgument,
                  Printable(path, 4096) + ": a depth of " + std::to_string(t.depth) + ", " +
                      std::to_string(t.prompt) + " tokens of prompt and " +
                      std::to_string(t.generate) + " generated need " +
                      std::to_string(t.positions()) + " positions, the model was trained for " +
                      std::to_string(config->context) + "; lower -d, -p or -n");
  }
  return Status();
}

// Words at blanks; "..." and '...' keep theirs.
std::vector<std::string> Words(const std::string& text) {
  std::vector<std::string> words;
  char quote = 0;
  bool inside = false;
  for (const char c : text) {
    if (quote != 0 ? c == quote : c == '"' || c == '\'') {
      quote = quote != 0 ? 0 : c;
      if (!inside) words.emplace_back();
      inside = true;
    } else if (quote == 0 && c == ' ') {
      inside = false;
    } else {
      if (!inside) words.emplace_back();
      inside = true;
      words.back() += c;
    }
  }
  return words;
}

}  // namespace

Result<std::vector<size_t>> ParseNumbers(const std::string& flag,
                                         const std::vector<std::string>& lists, size_t least,
                                         size_t most) {
  std::vector<size_t> values;
  for (const std::string& list : lists) {
    for (const std::string& text : SplitAtCommas(list)) {
      RETURN_IF_ERROR(AppendRange(flag, text, least, most, &values));
    }
  }
  return values;
}

void BenchFlags::AddTo(CLI::App& c) {
  // One value a flag: the word after it may be a model.
  const auto list = [&](const char* names, std::vector<std::string>& values, const char* help) {
    return c.add_option(names, values, help)->allow_extra_args(false)->type_name("LIST");
  };
  c.add_option("MODEL", positional_models, ".gguf files, or names in the model folder");
  list("-m,--model", models, "The same as MODEL; several with commas")->type_name("MODEL");
  list("-p,--n-prompt", prompt, "Tokens of a prompt; 0: none")->capture_default_str();
  list("-n,--n-gen", generate, "Tokens generated one by one; 0: none")->capture_default_str();
  list("--pg", prompt_generate, "-pg PROMPT,GENERATE: both, timed together")->type_name("P,N");
  list("-d,--n-depth", depth, "Tokens already in the context")->capture_default_str();
  list("-b,--batch-size", batch, "Rows of one pass of a prompt")->capture_default_str();
  list("--ub,--ubatch-size", micro_batch, "-ub: the same as -b, which it replaces");
  list("-t,--threads", threads, "Decode threads; 0: what measured best")->capture_default_str();
  list("--tb,--threads-batch", threads_batch, "-tb: prefill threads; 0: as -t")
      ->capture_default_str();
  list("--np,--concurrency,--parallel", concurrency,
       "-np: sequences that generate together (prompts alone run one at a time)")
      ->capture_default_str();
  list("--kv-type,--ctk,--cache-type-k", kv_type,
       "Keys and values: auto, f32, f16, bf16, q8 (also q8_0)")
      ->capture_default_str();
  list("--ctv,--cache-type-v", value_type, "-ctv: must be what -ctk has");
  list("--weights", weights, "auto, panels, repack, gguf, as in sluice run")->capture_default_str();
  list("--huge-pages", huge_pages, "auto, on, off, as in sluice run")->capture_default_str();
  c.add_option("--numa", numa, "auto, interleave, off, as in sluice run")
      ->type_name("MODE")
      ->capture_default_str();
  c.add_flag("--mlock", mlock, "Keep weights, keys and values in RAM");
  c.add_flag("--portable", portable, "The same bytes on every CPU, as in sluice run");
  c.add_flag("--relaxed", relaxed, "Prefill may use oneDNN, as in sluice run");
  list("--ngl,--n-gpu-layers,--fa,--flash-attn,--mmp,--mmap", ignored,
       "-ngl, -fa, -mmp: accepted and ignored")
      ->type_name("X");
}

Result<std::vector<BenchPlan>> BenchFlags::Plans() const {
  ASSIGN_OR_RETURN(const std::vector<BenchTest> tests, Tests(*this));
  ASSIGN_OR_RETURN(const std::vector<BenchSetup> setups, Setups(*this));
  std::vector<BenchPlan> plans;
  std::string checked;
  for (const BenchSetup& setup : setups) {
    if (setup.model != checked) RETURN_IF_ERROR(CheckContext(setup.model, tests));
    checked = setup.model;
    for (const BenchTest& test : tests) plans.push_back({setup, test});
  }
  return plans;
}

Result<BenchFlags> BenchFlags::With(const std::string& changes) const {
  BenchFlags flags = *this;
  CLI::App app;
  app.set_help_flag();  // no --help in here
  flags.AddTo(app);
  Result<std::vector<std::string>> arguments = CommandArguments(Words(changes));
  if (!arguments.ok()) return arguments.status().Within("--vs");
  if (arguments->empty()) {
    return BadFlag("--vs", "expected a model, flags of a configuration, or both, found nothing");
  }
  try {
    app.parse(*std::move(arguments));
  } catch (const CLI::ParseError& e) {
    std::string message = e.what();
    std::replace(message.begin(), message.end(), '\n', ' ');
    return BadFlag("--vs", message + "; expected a model, flags of a configuration, or both");
  }
  // A model given here replaces the others, however they were given.
  const bool positional = app.count("MODEL") > 0, named = app.count("--model") > 0;
  if (positional && !named) flags.models.clear();
  if (named && !positional) flags.positional_models.clear();
  return flags;
}

}  // namespace sluice
