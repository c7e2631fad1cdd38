// sluice inspect: what a model file is, whether and how it would run here.
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <vector>

#include "cli/command.h"
#include "cli/dump.h"
#include "cli/metadata_text.h"
#include "cli/model_path.h"
#include "cli/progress.h"
#include "cli/wrap.h"
#include "src/base/printable.h"
#include "src/file/gguf.h"
#include "src/file/panel_file.h"
#include "src/file/summary.h"
#include "src/machine/simd_target.h"
#include "src/model/kv_cache.h"
#include "src/model/model.h"
#include "src/text/json_text.h"
#include "src/text/tokenizer.h"

namespace sluice {
namespace {

struct InspectFlags {
  std::string model, dump;
  bool tensors = false, json = false;
};

// How the weights would be held with --weights auto.
struct LoadPlan {
  LoadMode mode = LoadMode::kRepack;
  std::string panel_file;
  bool panel_file_exists = false;
};

struct TokenizerFacts {
  std::string model, pre;
  size_t vocab = 0;
  std::optional<int32_t> bos, eos;
  bool adds_bos = false;
};

struct Report {
  const Gguf* gguf = nullptr;
  std::vector<ClassSummary> classes;
  uint64_t parameters = 0;
  std::optional<Config> config;
  std::string cannot_run;  // why; empty: it runs
  uint64_t weight_bytes_per_token = 0;
  std::optional<TokenizerFacts> tokenizer;
  std::string tokenizer_error;
  LoadPlan plan;
};

// Whether `path`, or the first of its parents that exists, can be written.
bool CanWriteBelow(std::filesystem::path path) {
  std::error_code ignored;
  while (!path.empty() && !std::filesystem::exists(path, ignored)) {
    const std::filesystem::path parent = path.parent_path();
    if (parent == path) return false;
    path = parent;
  }
  return access(path.empty() ? "." : path.c_str(), W_OK) == 0;
}

LoadPlan PlanLoad(const Gguf& gguf) {
  LoadPlan plan;
  const Result<std::string> path = PanelFile::PathOf(gguf);
  if (!path.ok()) return plan;
  plan.panel_file = *path;
  plan.panel_file_exists = PanelFile::Open(gguf).ok();
  if (plan.panel_file_exists || CanWriteBelow(*path)) plan.mode = LoadMode::kPanels;
  return plan;
}

// Binds the weights where they lie, which checks every tensor and reads none.
void TryToLoad(Report* report) {
  const auto fill = [&]() -> Status {
    ASSIGN_OR_RETURN(report->config, ReadConfig(*report->gguf));
    ASSIGN_OR_RETURN(std::unique_ptr<Gguf> again, Gguf::Open(report->gguf->path()));
    ASSIGN_OR_RETURN(const std::unique_ptr<ThreadTeam> team, ThreadTeam::Create(1));
    ASSIGN_OR_RETURN(const std::unique_ptr<Model> model,
                     Model::Load(std::move(again), LoadMode::kGguf, Activations::kInt8, *team));
    report->weight_bytes_per_token = model->WeightBytesPerToken();
    return Status();
  };
  report->cannot_run = fill().message();
}

void ReadTokenizer(Report* report) {
  const Result<std::unique_ptr<Tokenizer>> t = Tokenizer::Load(*report->gguf);
  if (!t.ok()) {
    report->tokenizer_error = t.status().message();
    return;
  }
  report->tokenizer = TokenizerFacts{std::string((*t)->model()),
                                     std::string((*t)->pre()),
                                     (*t)->vocab_size(),
                                     (*t)->bos(),
                                     (*t)->eos(),
                                     (*t)->adds_bos()};
}

Report MakeReport(const Gguf& gguf) {
  Report report;
  report.gguf = &gguf;
  report.classes = SummariseClasses(gguf);
  for (const ClassSummary& c : report.classes) report.parameters += c.parameters;
  TryToLoad(&report);
  ReadTokenizer(&report);
  report.plan = PlanLoad(gguf);
  return report;
}

size_t WindowedLayers(const Config& config) {
  size_t n = 0;
  for (size_t layer = 0; layer < config.layers; ++layer) n += config.Windowed(layer);
  return n;
}

// ---- JSON ---------------------------------------------------------------------------------------

boost::json::object KvJson(const Config& config) {
  boost::json::object all;
  for (KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kQ8}) {
    all[KvTypeName(type)] =
        boost::json::object{{"full_layers", KvBytesPerToken(config, type, false)},
                            {"sliding_layers", KvBytesPerToken(config, type, true)}};
  }
  return all;
}

boost::json::object ConfigJson(const Config& c) {
  boost::json::object o{{"context", c.context},  {"layers", c.layers},
                        {"dim", c.dim},          {"ffn_dim", c.ffn_dim},
                        {"heads", c.heads},      {"kv_heads", c.kv_heads},
                        {"head_dim", c.key_dim}, {"vocab", c.vocab},
                        {"window", c.window},    {"sliding_layers", WindowedLayers(c)}};
  if (c.moe.experts > 0) {
    o["experts"] = c.moe.experts;
    o["experts_used"] = c.moe.used;
  }
  o["kv_bytes_per_token"] = KvJson(c);
  return o;
}

boost::json::value OptionalId(const std::optional<int32_t>& id) {
  if (!id) return nullptr;
  return *id;
}

boost::json::array ClassesJson(const std::vector<ClassSummary>& classes) {
  boost::json::array list;
  for (const ClassSummary& c : classes) {
    boost::json::object types;
    for (const auto& [type, bytes] : c.bytes_of_type) types[type] = bytes;
    list.push_back(boost::json::object{{"class", TensorClassName(c.tensor_class)},
                                       {"tensors", c.tensors},
                                       {"parameters", c.parameters},
                                       {"bytes", c.bytes},
                                       {"bytes_of_format", std::move(types)}});
  }
  return list;
}

boost::json::array TensorsJson(const Gguf& gguf) {
  boost::json::array list;
  for (const GgufTensor& tensor : gguf.tensors()) {
    list.push_back(
        boost::json::object{{"name", Printable(tensor.name, 65535)},
                            {"format", TensorTypeName(tensor)},
                            {"shape", boost::json::array(tensor.shape, tensor.shape + tensor.dims)},
                            {"bytes", tensor.bytes}});
  }
  return list;
}

void PrintJson(const Report& r, bool tensors) {
  const Gguf& gguf = *r.gguf;
  boost::json::object o{{"file", Printable(gguf.path(), 4096)},
                        {"file_bytes", gguf.file_bytes()},
                        {"gguf_version", gguf.version()},
                        {"name", Printable(NameOf(gguf), 1024)},
                        {"architecture", Printable(ArchitectureOf(gguf))},
                        {"parameters", r.parameters},
                        {"quantisation", QuantisationOf(gguf)},
                        {"runs", r.cannot_run.empty()}};
  if (!r.cannot_run.empty()) o["error"] = r.cannot_run;
  if (r.config) o["config"] = ConfigJson(*r.config);
  if (r.cannot_run.empty()) {
    o["weight_bytes_per_token"] = r.weight_bytes_per_token;
    o["load_mode"] = LoadModeName(r.plan.mode);
    o["panel_file"] = r.plan.panel_file;
    o["panel_file_exists"] = r.plan.panel_file_exists;
    o["target"] = SimdTarget();
  }
  if (!r.tokenizer) o["tokenizer_error"] = r.tokenizer_error;
  if (const auto& t = r.tokenizer) {
    o["tokenizer"] = boost::json::object{{"model", t->model},         {"pre", t->pre},
                                         {"vocab", t->vocab},         {"bos", OptionalId(t->bos)},
                                         {"eos", OptionalId(t->eos)}, {"adds_bos", t->adds_bos}};
  }
  o["tensor_classes"] = ClassesJson(r.classes);
  boost::json::object metadata;
  for (size_t i = 0; i < gguf.metadata_size(); ++i) {
    metadata[Printable(gguf.metadata_key(i), 1024)] = MetadataJson(gguf.metadata_value(i));
  }
  o["metadata"] = std::move(metadata);
  if (tensors) o["tensors"] = TensorsJson(gguf);
  std::printf("%s\n", ToJson(o).c_str());
}

// ---- Text ---------------------------------------------------------------------------------------

// Broken between words on a terminal; lines of their own for programs.
std::string Broken(const std::string& text, size_t indent) {
  return Wrapped(text, indent, ColumnsOf(stdout, 0));
}

void Line(const char* label, const std::string& text) {
  std::printf("%-16s %s\n", label, Broken(text, 17).c_str());
}

std::string Millions(uint64_t n) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f M", static_cast<double>(n) / 1e6);
  return text;
}

void PrintConfig(const Config& c) {
  const auto n = [](size_t value) { return std::to_string(value); };
  Line("context", n(c.context));
  Line("shape", n(c.layers) + " layers, dim " + n(c.dim) + ", ffn " + n(c.ffn_dim) + ", heads " +
                    n(c.heads) + ", kv heads " + n(c.kv_heads) + " x " + n(c.key_dim) +
                    ", vocabulary " + n(c.vocab));
  if (c.moe.experts > 0) Line("experts", n(c.moe.used) + " of " + n(c.moe.experts) + " a token");
  const size_t sliding = WindowedLayers(c);
  const KvType type = DefaultKvType(c, false);
  std::string kv;
  if (sliding < c.layers) {
    kv = HumanBytes(KvBytesPerToken(c, type, false)) + " a token in " + n(c.layers - sliding) +
         (sliding == 0 ? " layers" : " full layers");
  }
  if (sliding > 0) {
    kv += (kv.empty() ? "" : ", ") + HumanBytes(KvBytesPerToken(c, type, true)) + " a token in " +
          n(sliding) + " sliding layers (last " + n(c.window) + " tokens)";
  }
  Line(("kv cache (" + std::string(KvTypeName(type)) + ")").c_str(), kv);
}

void PrintTokenizer(const Report& r) {
  if (!r.tokenizer) return Line("tokenizer", "cannot be used: " + r.tokenizer_error);
  const TokenizerFacts& t = *r.tokenizer;
  std::string text = t.model + (t.pre.empty() ? "" : " (" + Printable(t.pre) + ")") + ", " +
                     std::to_string(t.vocab) + " tokens";
  if (t.bos) text += ", BOS " + std::to_string(*t.bos) + (t.adds_bos ? " added" : " not added");
  if (t.eos) text += ", EOS " + std::to_string(*t.eos);
  Line("tokenizer", text);
}

void PrintRunning(const Report& r) {
  if (!r.cannot_run.empty()) return Line("runs", "no: " + r.cannot_run);
  Line("read per token", TrafficBytes(static_cast<double>(r.weight_bytes_per_token)) +
                             " of weights, plus the kv cache");
  Line("simd target", SimdTarget());
  const std::string where =
      r.plan.panel_file_exists ? ", " + r.plan.panel_file : ", written at the first run";
  Line("weights", std::string(LoadModeName(r.plan.mode)) +
                      (r.plan.mode == LoadMode::kPanels ? where : ", no cache folder to write to"));
}

void PrintClasses(const std::vector<ClassSummary>& classes) {
  if (classes.empty()) return;  // a vocabulary
  std::printf("\n%-12s %8s %12s %12s  %s\n", "tensors", "count", "parameters", "bytes", "formats");
  for (const ClassSummary& c : classes) {
    std::string types;
    for (const auto& [type, bytes] : c.bytes_of_type) {
      types += (types.empty() ? "" : ", ") + type + " " + HumanBytes(bytes);
    }
    std::printf("%-12s %8llu %12s %12s  %s\n", TensorClassName(c.tensor_class),
                static_cast<unsigned long long>(c.tensors), Millions(c.parameters).c_str(),
                HumanBytes(c.bytes).c_str(), Broken(types, 49).c_str());
  }
}

void PrintTensors(const Gguf& gguf) {
  size_t longest = 0;
  for (const GgufTensor& tensor : gguf.tensors()) {
    longest = std::max(longest, Printable(tensor.name).size());
  }
  const int name = static_cast<int>(std::min<size_t>(longest, 40));
  std::printf("\n%-*s %-9s %12s  %s\n", name, "tensor", "format", "bytes", "shape");
  for (const GgufTensor& tensor : gguf.tensors()) {
    std::string shape;
    for (uint32_t d = 0; d < tensor.dims; ++d) {
      shape += (d == 0 ? "" : " x ") + std::to_string(tensor.shape[d]);
    }
    std::printf("%-*s %-9s %12llu  %s\n", name, Printable(tensor.name).c_str(),
                TensorTypeName(tensor).c_str(), static_cast<unsigned long long>(tensor.bytes),
                shape.c_str());
  }
}

void PrintText(const Report& r, bool tensors) {
  const Gguf& gguf = *r.gguf;
  Line("file", Printable(gguf.path(), 4096) + ", " + HumanBytes(gguf.file_bytes()) +
                   ", GGUF version " + std::to_string(gguf.version()));
  Line("name", Printable(NameOf(gguf)));
  Line("architecture", Printable(ArchitectureOf(gguf)));
  if (!r.classes.empty()) {
    Line("parameters", Millions(r.parameters));
    Line("quantisation", QuantisationOf(gguf));
  }
  if (r.config) PrintConfig(*r.config);
  PrintTokenizer(r);
  PrintRunning(r);
  PrintClasses(r.classes);
  std::printf("\nmetadata\n");
  for (size_t i = 0; i < gguf.metadata_size(); ++i) {
    const std::string text =
        Printable(gguf.metadata_key(i)) + " = " + MetadataText(gguf.metadata_value(i));
    std::printf("  %s\n", Broken(text, 4).c_str());
  }
  if (tensors) PrintTensors(gguf);
}

Status Inspect(const InspectFlags& flags) {
  ASSIGN_OR_RETURN(const std::string path, FindModel(flags.model));
  ASSIGN_OR_RETURN(const std::unique_ptr<Gguf> gguf, Gguf::Open(path));
  if (!flags.dump.empty()) {
    if (isatty(STDOUT_FILENO) == 1) {
      return Status(StatusCode::kInvalidArgument,
                    "--dump: stdout is a terminal, expected a file or a pipe");
    }
    return DumpTensor(*gguf, flags.dump, stdout);
  }
  const Report report = MakeReport(*gguf);
  flags.json ? PrintJson(report, flags.tensors) : PrintText(report, flags.tensors);
  return Status();
}

}  // namespace

void AddInspect(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<InspectFlags>();
  CLI::App* c = app.add_subcommand("inspect", "Show what a model file holds and how it would run");
  AddModel(*c, &flags->model);
  c->add_flag("--tensors", flags->tensors, "List every tensor");
  auto* json = c->add_flag("--json", flags->json, "One JSON object");
  c->add_option("--dump", flags->dump, "Write this tensor to stdout as little-endian float32")
      ->type_name("TENSOR")
      ->excludes(json);
  c->footer(
      "Example:\n  sluice inspect gemma-3-270m --tensors\n"
      "  sluice inspect model.gguf --dump output_norm.weight > norm.f32");
  c->callback([flags, exit_code] {
    if (Status s = Inspect(*flags); !s.ok()) *exit_code = ReportError("inspect", s);
  });
}

}  // namespace sluice
