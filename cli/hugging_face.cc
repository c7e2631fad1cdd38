#include "cli/hugging_face.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <map>

#include "cli/download.h"
#include "src/base/printable.h"

namespace sluice {
namespace {

constexpr size_t kMaxListBytes = 32 << 20;

std::string Endpoint() {
  const char* endpoint = std::getenv("SLUICE_HF_ENDPOINT");
  return endpoint != nullptr && *endpoint != '\0' ? endpoint : "https://huggingface.co";
}

bool IsName(const std::string& text) {
  return !text.empty() && text[0] != '.' && std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::strchr("-._", c) != nullptr;
  });
}

struct Spec {
  std::string owner, repository, quant;
};

Result<Spec> ParseSpec(const std::string& text) {
  Spec spec;
  const size_t slash = text.find('/');
  const size_t colon = std::min(text.find(':'), text.size());
  if (slash != std::string::npos && slash < colon) {
    spec.owner = text.substr(0, slash);
    spec.repository = text.substr(slash + 1, colon - slash - 1);
    spec.quant = colon < text.size() ? text.substr(colon + 1) : "";
  }
  const bool quant_good = colon == text.size() || IsName(spec.quant);
  if (IsName(spec.owner) && IsName(spec.repository) && quant_good) return spec;
  return Status(StatusCode::kInvalidArgument,
                "expected hf:owner/repo or hf:owner/repo:quant, found hf:" + Printable(text));
}

std::string Lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::string EncodePath(const std::string& path) {
  std::string out;
  for (size_t begin = 0;;) {
    const size_t slash = path.find('/', begin);
    out += UrlEncode(path.substr(begin, slash == std::string::npos ? slash : slash - begin));
    if (slash == std::string::npos) return out;
    out += '/';
    begin = slash + 1;
  }
}

// "folder/m-Q4_K_M-00001-of-00002.gguf" -> "m-q4_k_m": the files of one model share it.
std::string GroupOf(const std::string& name) {
  std::string stem = Lower(name.substr(0, name.size() - std::strlen(".gguf")));
  constexpr size_t kTail = std::string_view("-00001-of-00002").size();
  if (stem.size() > kTail && stem.compare(stem.size() - 9, 4, "-of-") == 0) {
    stem.resize(stem.size() - kTail);
  }
  return stem;
}

// Whether `quant` is a whole word of the name, so that q4_k does not find q4_k_m.
bool HasQuant(const std::string& group, const std::string& quant) {
  for (size_t at = group.find(quant); at != std::string::npos; at = group.find(quant, at + 1)) {
    const auto is_word = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
    };
    const bool begins = at == 0 || !is_word(group[at - 1]);
    const size_t end = at + quant.size();
    if (begins && (end == group.size() || !is_word(group[end]))) return true;
  }
  return false;
}

using Groups = std::map<std::string, std::vector<RemoteFile>>;

// The .gguf files of the listing, by model. Fields of another shape than expected are passed over:
// the listing belongs to someone else.
Result<Groups> ReadListing(const std::string& listing, const std::string& base) {
  boost::json::error_code error;
  const boost::json::value root = boost::json::parse(listing, error);
  if (error || !root.is_array()) {
    return Status(StatusCode::kCorrupt, base + ": expected a JSON list of files");
  }
  Groups groups;
  for (const boost::json::value& item : root.get_array()) {
    const boost::json::object* object = item.if_object();
    const boost::json::value* path = object != nullptr ? object->if_contains("path") : nullptr;
    if (path == nullptr || !path->is_string()) continue;
    const std::string full(path->get_string());
    const std::string name = full.substr(full.rfind('/') + 1);
    const bool wanted =
        name.ends_with(".gguf") && IsName(name) && !Lower(name).starts_with("mmproj");
    if (!wanted) continue;
    RemoteFile file;
    file.url = base + "/resolve/main/" + EncodePath(full);
    file.name = name;
    if (const boost::json::value* size = object->if_contains("size"); size != nullptr) {
      boost::json::error_code not_a_number;
      const uint64_t bytes = size->to_number<uint64_t>(not_a_number);
      file.bytes = not_a_number ? 0 : bytes;
    }
    const boost::json::value* lfs = object->if_contains("lfs");
    const boost::json::value* oid =
        lfs != nullptr && lfs->is_object() ? lfs->get_object().if_contains("oid") : nullptr;
    if (oid != nullptr && oid->is_string()) file.sha256 = std::string(oid->get_string());
    groups[GroupOf(name)].push_back(std::move(file));
  }
  return groups;
}

Result<std::vector<RemoteFile>> Pick(const Groups& groups, const Spec& spec) {
  const std::string quant = Lower(spec.quant.empty() ? "q4_k_m" : spec.quant);
  std::vector<const std::vector<RemoteFile>*> found;
  std::string names;
  for (const auto& [group, files] : groups) {
    if (HasQuant(group, quant)) found.push_back(&files);
    names += (names.empty() ? "" : ", ") + group;
  }
  if (found.empty() && spec.quant.empty() && groups.size() == 1) {
    found.push_back(&groups.begin()->second);
  }
  if (found.size() == 1) {
    std::vector<RemoteFile> files = *found[0];
    std::sort(files.begin(), files.end(),
              [](const RemoteFile& a, const RemoteFile& b) { return a.name < b.name; });
    return files;
  }
  const std::string where = "hf:" + spec.owner + "/" + spec.repository;
  if (groups.empty()) return Status(StatusCode::kNotFound, where + ": holds no .gguf file");
  return Status(StatusCode::kNotFound, where + ": expected one model of quantisation " + quant +
                                           ", found " + std::to_string(found.size()) + " among " +
                                           Printable(names, 400));
}

}  // namespace

Result<std::vector<RemoteFile>> HuggingFaceFiles(const std::string& text,
                                                 const std::string& token) {
  ASSIGN_OR_RETURN(const Spec spec, ParseSpec(text));
  const std::string repository = spec.owner + "/" + spec.repository;
  ASSIGN_OR_RETURN(const std::string listing,
                   Fetch(Endpoint() + "/api/models/" + repository + "/tree/main?recursive=true",
                         token, kMaxListBytes));
  ASSIGN_OR_RETURN(const Groups groups, ReadListing(listing, Endpoint() + "/" + repository));
  return Pick(groups, spec);
}

}  // namespace sluice
