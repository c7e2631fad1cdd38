#include "src/machine/profile_file.h"

#include <utility>

#include "src/base/atomic_file.h"
#include "src/base/cache_folder.h"
#include "src/base/small_file.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr size_t kMostEntries = 16;
constexpr size_t kMostBytes = 1 << 20;

// The sections, all that are lists; "profiles" is in every file that one of us wrote.
Result<json::object> ReadFile(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, kMostBytes));
  boost::system::error_code error;
  json::value value = json::parse(text, error);
  json::object* o = error ? nullptr : value.if_object();
  json::value* profiles = o == nullptr ? nullptr : o->if_contains("profiles");
  if (profiles == nullptr || !profiles->is_array()) {
    return Status(StatusCode::kCorrupt, path + ": expected machine profiles as JSON, found " +
                                            (error ? error.message() : "something else"));
  }
  return std::move(*o);
}

bool HasKey(const json::value& entry, const json::string& key) {
  const json::object* o = entry.if_object();
  const json::value* k = o == nullptr ? nullptr : o->if_contains("key");
  return k != nullptr && k->is_string() && k->get_string() == key;
}

}  // namespace

Result<std::string> MachineFilePath() {
  ASSIGN_OR_RETURN(const std::string folder, CacheFolder());
  return folder + "/machine.json";
}

Result<json::object> ReadMachineEntry(const std::string& path, const char* section,
                                      const std::string& key) {
  ASSIGN_OR_RETURN(const json::object file, ReadFile(path));
  const json::value* found = file.if_contains(section);
  if (const json::array* entries = found == nullptr ? nullptr : found->if_array()) {
    for (const json::value& entry : *entries) {
      if (HasKey(entry, json::string(key))) return entry.get_object();
    }
  }
  return Status(StatusCode::kNotFound, path + ": no profile of this machine");
}

Status WriteMachineEntry(const std::string& path, const char* section, json::object entry) {
  Result<json::object> read = ReadFile(path);
  json::object file = read.ok() ? *std::move(read) : json::object{{"profiles", json::array()}};
  json::array kept;
  const json::value* old = file.if_contains(section);
  if (const json::array* entries = old == nullptr ? nullptr : old->if_array()) {
    for (const json::value& other : *entries) {
      if (!HasKey(other, entry.at("key").as_string())) kept.push_back(other);
    }
  }
  if (kept.size() >= kMostEntries) kept.erase(kept.begin(), kept.end() - (kMostEntries - 1));
  kept.push_back(std::move(entry));
  file[section] = std::move(kept);
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos) RETURN_IF_ERROR(MakeFolders(path.substr(0, slash)));
  return WriteSmallFile(path, json::serialize(file) + "\n");
}

}  // namespace sluice
