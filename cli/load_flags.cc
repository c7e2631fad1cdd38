#include "cli/load_flags.h"

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "cli/command.h"
#include "cli/words.h"
#include "src/base/printable.h"
#include "src/load/arrivals.h"

namespace sluice::load {
namespace {

constexpr size_t kUsualRequests = 100;
constexpr double kSweepSeconds = 30;  // of a rate

Status Wrong(const std::string& text) { return Status(StatusCode::kInvalidArgument, text); }

uint64_t NewSeed() {
  return static_cast<uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
}

Result<double> ParseRate(const std::string& text) {
  if (text == "inf") return kAllAtOnce;
  char* end = nullptr;
  const double rate = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0' || !(rate >= 1e-6 && rate <= 1e6)) {
    return Wrong("--rate: expected requests a second from 1e-6 to 1e6, or inf; found " +
                 Printable(text));
  }
  return rate;
}

Result<std::optional<Dialect>> ParseDialect(const std::string& word) {
  if (word == "auto") return std::optional<Dialect>();
  for (const Dialect d :
       {Dialect::kOpenAi, Dialect::kOpenAiChat, Dialect::kOllama, Dialect::kLlama}) {
    if (word == DialectName(d)) return std::optional<Dialect>(d);
  }
  return Wrong("--dialect: expected one of auto, openai, openai-chat, ollama, llama; found " +
               word);
}

}  // namespace

void LoadFlags::AddTo(CLI::App& c) {
  const auto add = [&](const char* names, auto& value, const char* help, const char* group) {
    return c.add_option(names, value, help)->group(group);
  };
  add("URL,--url", url, "Where the server is: http://HOST:PORT, https://, or unix:/PATH", "Server")
      ->type_name("URL");
  add("--dialect", dialect,
      "auto, openai, openai-chat, ollama or llama (llama-server's /completion)", "Server")
      ->type_name("NAME")
      ->capture_default_str();
  add("--model", model, "The name of the model; by default the first that the server lists",
      "Server")
      ->type_name("NAME");
  add("--api-key", api_key, "Sent as a bearer token", "Server")->type_name("KEY");
  add("--api-key-file", api_key_file, "A file whose first line is the key", "Server")
      ->type_name("FILE");
  add("--timeout", timeout_s, "Seconds that a request may take", "Server")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  c.add_flag("--insecure", insecure, "Take any TLS certificate")->group("Server");

  add("--rate,--request-rate", rates,
      "Open loop: requests a second, or inf: all at once; several with commas are steps", "Load")
      ->type_name("LIST")
      ->delimiter(',')
      ->allow_extra_args(false);
  add("--arrivals", arrivals, "Gaps between them: poisson or constant", "Load")
      ->type_name("KIND")
      ->check(CLI::IsMember({"poisson", "constant"}))
      ->capture_default_str();
  add("--burstiness", burstiness,
      "Shape of their gamma distribution: 1 is Poisson, less is burstier", "Load")
      ->check(CLI::Range(0.01, 1000.0))
      ->capture_default_str();
  add("--trace", trace,
      "Open loop at the times of a file: seconds, or JSON lines with timestamp (ms), input_length, "
      "output_length, hash_ids",
      "Load")
      ->type_name("FILE")
      ->check(NamesAFile);
  add("--concurrency,--max-concurrency", concurrency,
      "Closed loop: clients that each wait for their answer; several with commas are steps. With "
      "--rate: the most requests in flight",
      "Load")
      ->type_name("LIST")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::Range(1, 100000));
  c.add_flag("--sweep", sweep,
             "Raise the rate until the server no longer keeps up, or breaks the SLO; name the knee")
      ->group("Load");
  add("--sweep-factor", sweep_factor, "From one rate to the next", "Load")
      ->check(CLI::Range(1.05, 100.0))
      ->capture_default_str();
  add("--requests,--num-prompts,-n", requests,
      "Requests of a step; default 100, all of a trace or of --prompts, as many as fit --duration",
      "Load")
      ->check(CLI::Range(1, 10000000));
  add("--duration", duration_s, "Seconds in which a step sends requests", "Load")
      ->check(CLI::Range(0.001, 1e6));
  add("--warmup,--num-warmups", warm_up, "Requests before, which do not count", "Load")
      ->check(CLI::Range(0, 100000))
      ->capture_default_str();

  add("--prompt-tokens,--input-len", prompt_tokens,
      "N, uniform:FIRST:LAST, normal:MEAN:SD or lognormal:MEAN:SD", "Prompts")
      ->type_name("LENGTHS")
      ->capture_default_str();
  add("--output-tokens,--output-len", output_tokens, "The same, of the answers", "Prompts")
      ->type_name("LENGTHS")
      ->capture_default_str();
  add("--shared-prefix", shared_prefix, "Tokens that all prompts begin with, beside their own",
      "Prompts")
      ->check(CLI::Range(0, 1 << 20));
  add("--prefix-groups", prefix_groups, "Different shared prefixes", "Prompts")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  add("--prompts", prompts,
      "JSON lines with prompt or messages, and perhaps output_tokens, instead of random tokens",
      "Prompts")
      ->type_name("FILE")
      ->check(NamesAFile);
  add("--seed", seed,
      "Of arrivals, lengths and texts; without it these are as with 1, and the texts new ones, "
      "which no prefix cache knows from an earlier run",
      "Prompts");
  add("--temperature,--temp", temperature, "Of the sampling", "Prompts")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  c.add_flag("--no-ignore-eos", no_ignore_eos, "Let answers end where the model ends them")
      ->group("Prompts");
  add("--extra-body", extra_body, "A JSON object that goes into every request", "Prompts")
      ->type_name("JSON");

  add("--slo,--goodput", slo,
      "What a good answer keeps, such as ttft=2s,tpot=100ms (also itl, e2e)", "Report")
      ->type_name("LIST");
  add("--slo-attainment", attainment, "% of the requests that must keep it, for --sweep", "Report")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str();
  add("-o,--output", outputs, "Into a file: .json, .csv, .html or .svg; may be repeated", "Report")
      ->type_name("FILE")
      ->allow_extra_args(false);
  c.add_flag("--json", json, "One JSON object on standard output")->group("Report");
  add("--compare", compare, "Two results of --output FILE.json: B by A; no load is sent", "Report")
      ->expected(2)
      ->type_name("A.json B.json");
}

Result<LoadPlan> LoadFlags::Plan() const {
  LoadPlan plan;
  if (url.empty()) return Wrong("no URL given; such as sluice load http://127.0.0.1:8080");
  ASSIGN_OR_RETURN(plan.target, ParseTarget(url));
  ASSIGN_OR_RETURN(plan.dialect, ParseDialect(dialect));
  plan.client.api_key = api_key;
  if (!api_key_file.empty()) {
    ASSIGN_OR_RETURN(std::string key, ReadAll(api_key_file));
    plan.client.api_key = key.substr(0, key.find_first_of("\r\n"));
  }
  if (plan.client.api_key.find_first_of("\r\n") != std::string::npos) {
    return Wrong("--api-key: expected one line");
  }
  plan.client.insecure = insecure;
  plan.client.timeout_s = timeout_s;
  plan.request.model = model;
  plan.request.ignore_eos = !no_ignore_eos;
  plan.request.temperature = temperature;
  if (!extra_body.empty()) {
    boost::system::error_code error;
    boost::json::value extra = boost::json::parse(extra_body, error);
    if (error || !extra.is_object()) {
      return Wrong("--extra-body: expected a JSON object, found " + Printable(extra_body));
    }
    plan.request.extra = std::move(extra.get_object());
  }

  PromptPlan& p = plan.prompts;
  ASSIGN_OR_RETURN(p.prompt, ParseLengths("--prompt-tokens", prompt_tokens));
  ASSIGN_OR_RETURN(p.output, ParseLengths("--output-tokens", output_tokens));
  p.shared_prefix = shared_prefix;
  p.prefix_groups = prefix_groups;
  p.seed = seed.value_or(1);
  p.text_seed = seed.value_or(NewSeed());
  plan.description = "prompts of " + p.prompt.Text() + " random tokens";
  if (shared_prefix > 0) {
    plan.description += " behind " + std::to_string(shared_prefix) + " shared ones";
    if (prefix_groups > 1) plan.description += " (" + std::to_string(prefix_groups) + " kinds)";
  }
  if (!prompts.empty()) {
    if (!trace.empty()) return Wrong("--prompts and --trace: expected one of them");
    ASSIGN_OR_RETURN(const std::string text, ReadAll(prompts));
    ASSIGN_OR_RETURN(p.texts, ParsePrompts(prompts, text));
    plan.description = std::to_string(p.texts.size()) + " prompts of " + Printable(prompts);
  }
  if (!trace.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadAll(trace));
    ASSIGN_OR_RETURN(p.trace, ParseTrace(trace, text));
    if (p.trace[0].prompt_tokens > 0) {
      plan.description = "prompts and answers as long as " + Printable(trace) + " says";
    }
  }
  plan.description += ", answers of " + p.output.Text() + " tokens";
  if (seed) plan.description += ", seed " + std::to_string(*seed);

  if (!slo.empty()) {
    ASSIGN_OR_RETURN(plan.slo, ParseSlo(slo));
  }
  plan.burstiness = arrivals == "constant" ? std::numeric_limits<double>::infinity() : burstiness;
  plan.warm_up = warm_up;
  plan.sweep = sweep;
  plan.sweep_factor = sweep_factor;
  plan.attainment = attainment / 100;
  std::vector<double> all;
  for (const std::string& text : rates) {
    ASSIGN_OR_RETURN(const double rate, ParseRate(text));
    all.push_back(rate);
  }
  if (!trace.empty()) {
    if (!all.empty() || sweep)
      return Wrong("--trace: has its own times; leave --rate and --sweep out");
    all.push_back(0);
  }
  if (!all.empty() && concurrency.size() > 1) {
    return Wrong("--concurrency: expected one number beside --rate or --trace, found " +
                 std::to_string(concurrency.size()));
  }
  if (sweep) {
    if (all.size() > 1) return Wrong("--sweep: expected one --rate to begin with, or none");
    if (!all.empty()) plan.sweep_first = all[0];
    if (!std::isfinite(plan.sweep_first)) return Wrong("--sweep: expected a --rate that is finite");
    if (!concurrency.empty()) return Wrong("--sweep: is an open loop; leave --concurrency out");
  } else if (!all.empty()) {
    const size_t most = concurrency.empty() ? 0 : concurrency[0];
    for (const double rate : all) plan.shapes.push_back({true, rate, most});
  } else {
    for (const size_t n : concurrency.empty() ? std::vector<size_t>{1} : concurrency) {
      plan.shapes.push_back({false, 0, n});
    }
  }

  plan.requests = requests;
  plan.duration_s = duration_s;
  if (requests == 0 && !p.trace.empty()) plan.requests = p.trace.size();
  const bool unbounded = plan.requests == 0 && duration_s == 0;
  if (unbounded && sweep) plan.duration_s = kSweepSeconds;
  if (unbounded && !sweep) plan.requests = p.texts.empty() ? kUsualRequests : p.texts.size();
  for (const double rate : all) {
    if (std::isinf(rate) && plan.requests == 0) {
      return Wrong("--rate inf: expected --requests, since all are sent at once");
    }
  }

  plan.settings = {{"prompt-tokens", p.prompt.Text()},
                   {"output-tokens", p.output.Text()},
                   {"shared-prefix", shared_prefix},
                   {"prompts", prompts},
                   {"trace", trace},
                   {"arrivals", arrivals},
                   {"temperature", temperature}};
  return plan;
}

}  // namespace sluice::load
