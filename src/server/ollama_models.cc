#include "src/server/ollama_models.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/string.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "src/base/printable.h"
#include "src/file/gguf_json.h"
#include "src/file/summary.h"
#include "src/server/chat_output.h"
#include "src/server/ollama_reply.h"
#include "src/text/chat_template.h"

namespace sluice {

namespace json = boost::json;
namespace fs = std::filesystem;

namespace {

constexpr size_t kFewElements = 32;  // longer arrays are vocabularies
constexpr std::chrono::hours kNever{24 * 365 * 100};

std::string ModifiedAt(const ModelEntry& entry) {
  return Rfc3339(std::chrono::system_clock::time_point(std::chrono::seconds(entry.modified_s)));
}

uint64_t Parameters(const Gguf& gguf) {
  uint64_t parameters = 0;
  for (const GgufTensor& tensor : gguf.tensors()) parameters += tensor.Elements();
  return parameters;
}

json::object EmptyDetails() {
  return {{"parent_model", ""},        {"format", "gguf"},     {"family", ""},
          {"families", json::array()}, {"parameter_size", ""}, {"quantization_level", ""}};
}

// Long arrays are null, as Ollama has them.
json::value InfoValue(const GgufValue& value, uint64_t most) {
  if (value.type != GgufType::kArray) return GgufScalarJson(value);
  if (value.count > most) return nullptr;
  return GgufElementsJson(value, most);
}

json::object ModelInfo(const Gguf& gguf, bool verbose) {
  json::object info;
  for (size_t i = 0; i < gguf.metadata_size(); ++i) {
    const std::string_view key = gguf.metadata_key(i);
    if (key.ends_with(".chat_template")) continue;  // it is the answer's "template"
    info[key] = InfoValue(gguf.metadata_value(i), verbose ? UINT64_MAX : kFewElements);
  }
  info["general.parameter_count"] = Parameters(gguf);
  return info;
}

json::array Tensors(const Gguf& gguf) {
  json::array tensors;
  for (const GgufTensor& tensor : gguf.tensors()) {
    json::array shape(tensor.shape, tensor.shape + tensor.dims);
    tensors.push_back(json::object{
        {"name", tensor.name}, {"type", TensorTypeName(tensor)}, {"shape", std::move(shape)}});
  }
  return tensors;
}

json::array Capabilities(const std::string& chat_template) {
  json::array names{"completion"};
  if (TemplateKnowsTools(chat_template)) names.push_back("tools");
  if (TemplateMarksReasoning(chat_template)) names.push_back("thinking");
  names.push_back("embedding");
  return names;
}

// "m-00001-of-00003.gguf" as {"m-", 3}; {name, 0} for a file that is no part.
std::pair<std::string, unsigned> SplitName(const std::string& file) {
  constexpr size_t kTail = std::string_view("00001-of-00003.gguf").size();
  unsigned part = 0, parts = 0;
  int read = 0;
  if (file.size() > kTail) {
    const std::string tail = file.substr(file.size() - kTail);
    if (std::sscanf(tail.c_str(), "%5u-of-%5u.gguf%n", &part, &parts, &read) == 2 &&
        static_cast<size_t>(read) == kTail) {
      return {file.substr(0, file.size() - kTail), parts};
    }
  }
  return {file, 0};
}

}  // namespace

std::string ParameterSize(uint64_t parameters) {
  const auto n = static_cast<double>(parameters);
  char text[32];
  if (n >= 1e9) {
    std::snprintf(text, sizeof(text), "%.1fB", n / 1e9);
  } else if (n >= 1e6) {
    std::snprintf(text, sizeof(text), "%.2fM", n / 1e6);
  } else if (n >= 1e3) {
    std::snprintf(text, sizeof(text), "%.0fK", n / 1e3);
  } else {
    std::snprintf(text, sizeof(text), "%.0f", n);
  }
  return text;
}

json::object OllamaDetails(const Gguf& gguf) {
  json::object details = EmptyDetails();
  const std::string family = ArchitectureOf(gguf);
  details["family"] = family;
  details["families"] = json::array{json::string(family)};
  details["parameter_size"] = ParameterSize(Parameters(gguf));
  details["quantization_level"] = QuantisationOf(gguf);
  return details;
}

json::object OllamaDetailsCache::Get(const ModelEntry& entry) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = known_.find(entry.path);
    if (it != known_.end() && it->second.bytes == entry.bytes &&
        it->second.modified_s == entry.modified_s) {
      return it->second.details;
    }
  }
  const auto gguf = Gguf::Open(entry.path);
  json::object details = gguf.ok() ? OllamaDetails(**gguf) : EmptyDetails();
  const std::lock_guard<std::mutex> lock(mutex_);
  known_[entry.path] = {entry.bytes, entry.modified_s, details};
  return details;
}

std::vector<ModelEntry> OllamaEntries(const ModelHost& host) {
  std::vector<ModelEntry> entries;
  for (ModelEntry& entry : host.List()) {
    if (!entries.empty()) {
      entries.push_back(std::move(entry));
      continue;
    }
    for (const std::string& alias : host.names()) {  // the first is the one with aliases
      entries.push_back(entry);
      entries.back().name = alias;
    }
  }
  return entries;
}

json::object OllamaTags(const std::vector<ModelEntry>& entries, OllamaDetailsCache& cache) {
  json::array models;
  for (const ModelEntry& entry : entries) {
    models.push_back(json::object{{"name", entry.name},
                                  {"model", entry.name},
                                  {"modified_at", ModifiedAt(entry)},
                                  {"size", entry.bytes},
                                  {"digest", ModelDigest(entry)},
                                  {"details", cache.Get(entry)}});
  }
  json::object tags;
  tags["models"] = std::move(models);
  return tags;
}

json::object OllamaPs(const ModelHost& host, OllamaDetailsCache& cache) {
  const std::vector<ModelEntry> entries = OllamaEntries(host);
  const auto now = std::chrono::system_clock::now();
  json::array models;
  for (const LoadedModel& one : host.Loaded()) {
    ModelEntry entry = one.model->entry();
    for (const ModelEntry& listed : entries) {
      if (listed.path != entry.path) continue;
      entry = listed;
      break;
    }
    // There is no word for never; clients call what is decades away "Forever".
    const auto left = one.expires_in_s < 0
                          ? std::chrono::duration_cast<std::chrono::nanoseconds>(kNever)
                          : std::chrono::nanoseconds(Nanoseconds(one.expires_in_s));
    models.push_back(json::object{
        {"name", entry.name},
        {"model", entry.name},
        {"size", entry.bytes},
        {"digest", ModelDigest(entry)},
        {"details", cache.Get(entry)},
        {"expires_at",
         Rfc3339(std::chrono::time_point_cast<std::chrono::system_clock::duration>(now + left))},
        {"size_vram", 0},  // what makes clients print "100% CPU"
        {"context_length", one.model->context()}});
  }
  json::object ps;
  ps["models"] = std::move(models);
  return ps;
}

json::object OllamaShow(const ModelEntry& entry, const Gguf& gguf, bool verbose,
                        const std::optional<std::string>& chat_template) {
  std::string source = chat_template.value_or("");
  if (!chat_template) {
    Result<std::string> found = ChatTemplateOf(gguf, false);
    if (found.ok()) source = *std::move(found);
  }
  const auto license = gguf.String("general.license");
  json::object show;
  show["license"] = license.ok() && license->has_value() ? std::string(**license) : "";
  // The name stands where Ollama writes a path: paths of this machine are nobody's business.
  show["modelfile"] = "# Served by sluice from a GGUF file.\nFROM " + entry.name +
                      (source.empty() ? "" : "\nTEMPLATE \"\"\"" + source + "\"\"\"") + "\n";
  show["parameters"] = "";
  show["template"] = source;
  show["details"] = OllamaDetails(gguf);
  show["model_info"] = ModelInfo(gguf, verbose);
  if (verbose) show["tensors"] = Tensors(gguf);
  show["capabilities"] = Capabilities(source);
  show["modified_at"] = ModifiedAt(entry);
  return show;
}

const ModelEntry* FindEntry(const std::vector<ModelEntry>& entries, std::string_view name) {
  std::string wanted(name);
  if (wanted.ends_with(":latest")) wanted.resize(wanted.size() - 7);
  std::string dashed = wanted;
  std::replace(dashed.begin(), dashed.end(), ':', '-');
  for (const ModelEntry& entry : entries) {
    if (!wanted.empty() && (entry.name == wanted || entry.name == dashed)) return &entry;
  }
  return nullptr;
}

Status DeleteModelFiles(const ModelEntry& entry, const std::string& folder) {
  const std::string whose = "model '" + Printable(entry.name, 200) + "'";
  const fs::path path(entry.path);
  std::error_code error;
  const fs::path home = fs::canonical(folder, error);
  const fs::path lies_in = error ? fs::path() : fs::canonical(path.parent_path(), error);
  if (error || folder.empty() || lies_in != home || path.extension() != ".gguf") {
    return Status(StatusCode::kUnsupported,
                  whose + ": its file is not in the model folder, remove it by hand");
  }
  const auto [begin, parts] = SplitName(path.filename().string());
  std::vector<fs::path> files;
  for (unsigned part = 1; part <= parts; ++part) {
    char tail[48];
    std::snprintf(tail, sizeof(tail), "%05u-of-%05u.gguf", part, parts);
    files.push_back(home / (begin + tail));
  }
  if (parts == 0) files.push_back(home / path.filename());
  for (const fs::path& file : files) {
    fs::remove(file, error);
    if (error) {
      return Status(StatusCode::kIo, whose + ": cannot remove its file: " + error.message());
    }
  }
  return Status();
}

}  // namespace sluice
