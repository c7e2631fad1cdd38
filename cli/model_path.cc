#include "cli/model_path.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "src/base/printable.h"

namespace sluice {
namespace {

namespace fs = std::filesystem;

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

bool IsDigits(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "m-00002-of-00003" -> "m"; other names stay.
std::string WithoutPart(const std::string& stem) {
  constexpr size_t kTail = std::string_view("-00002-of-00003").size();
  if (stem.size() <= kTail) return stem;
  const std::string tail = stem.substr(stem.size() - kTail);
  const bool is_part = tail[0] == '-' && IsDigits(tail.substr(1, 5)) &&
                       tail.substr(6, 4) == "-of-" && IsDigits(tail.substr(10));
  return is_part ? stem.substr(0, stem.size() - kTail) : stem;
}

bool IsSeparator(char c) { return c == '-' || c == '.' || c == '_'; }

Status NotFound(const std::string& name) {
  const std::string where = ModelFolder();
  const std::string help = name == kDefaultModelName
                               ? std::string("`sluice pull ") + kDefaultModelName + "` fetches it"
                               : "`sluice models` lists what is there";
  return Status(StatusCode::kNotFound,
                "model \"" + Printable(name) + "\": no such file, and none in " +
                    (where.empty() ? "the model folder" : where) + "; " + help);
}

}  // namespace

std::string ModelFolder() {
  if (const std::string models = Environment("SLUICE_MODELS"); !models.empty()) return models;
  if (const std::string data = Environment("XDG_DATA_HOME"); !data.empty()) {
    return data + "/sluice/models";
  }
  const std::string home = Environment("HOME");
  return home.empty() ? "" : home + "/.local/share/sluice/models";
}

std::vector<ModelFile> ListModels() {
  std::map<std::string, ModelFile> by_name;
  std::error_code error;
  for (fs::directory_iterator it(ModelFolder(), error), end; !error && it != end;
       it.increment(error)) {
    std::error_code ignored;
    const fs::path& path = it->path();
    if (path.extension() != ".gguf" || !it->is_regular_file(ignored)) continue;
    ModelFile& model = by_name[WithoutPart(path.stem().string())];
    model.name = WithoutPart(path.stem().string());
    if (model.path.empty() || path.string() < model.path) model.path = path.string();
    model.bytes += it->file_size(ignored);
  }
  std::vector<ModelFile> models;
  for (auto& [name, model] : by_name) models.push_back(std::move(model));
  return models;
}

Result<std::string> FindModel(const std::string& name) {
  if (name.empty()) return FindModel(kDefaultModelName);
  std::error_code ignored;
  if (fs::exists(name, ignored)) return name;

  std::string wanted = Lower(name);
  std::replace(wanted.begin(), wanted.end(), ':', '-');
  if (wanted.ends_with(".gguf")) wanted.resize(wanted.size() - 5);
  const std::vector<ModelFile> models = ListModels();
  std::vector<const ModelFile*> begins;
  for (const ModelFile& model : models) {
    const std::string have = Lower(model.name);
    if (have == wanted) return model.path;
    const bool default_file = name == kDefaultModelName && have + ".gguf" == kDefaultModelFile;
    if (default_file) return model.path;
    if (have.size() > wanted.size() && have.starts_with(wanted) &&
        IsSeparator(have[wanted.size()])) {
      begins.push_back(&model);
    }
  }
  if (begins.size() == 1) return begins[0]->path;
  if (begins.empty()) return NotFound(name);
  std::string list;
  for (const ModelFile* model : begins) list += (list.empty() ? "" : ", ") + Printable(model->name);
  return Status(StatusCode::kNotFound,
                "model \"" + Printable(name) + "\" could be any of " + list + ": name one of them");
}

}  // namespace sluice
