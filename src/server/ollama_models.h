// /api/tags, /api/show, /api/ps, /api/delete: models as Ollama's clients see
// them. Request threads.
#ifndef SLUICE_SRC_SERVER_OLLAMA_MODELS_H_
#define SLUICE_SRC_SERVER_OLLAMA_MODELS_H_

#include <boost/json/object.hpp>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"
#include "src/file/gguf.h"
#include "src/server/served_model.h"

namespace sluice {

// "268.1M", "8.0B": parameters as Ollama writes them.
std::string ParameterSize(uint64_t parameters);
boost::json::object OllamaDetails(const Gguf& gguf);

// The details of files, read once for each version of a file: lists are asked for often.
class OllamaDetailsCache {
 public:
  // With empty values for a file that cannot be read.
  boost::json::object Get(const ModelEntry& entry);

 private:
  struct Known {
    uint64_t bytes = 0;
    int64_t modified_s = 0;
    boost::json::object details;
  };
  std::mutex mutex_;
  std::map<std::string, Known> known_;  // by path; guarded by mutex_
};

// What is served and what is in the folder, each under the names that clients use for it.
std::vector<ModelEntry> OllamaEntries(const ModelHost& host);

boost::json::object OllamaTags(const std::vector<ModelEntry>& entries, OllamaDetailsCache& cache);
boost::json::object OllamaPs(const ModelHost& host, OllamaDetailsCache& cache);
// Everything about one file; long arrays (vocabularies) and the tensors only if `verbose`.
// `chat_template`: the one in use, nullopt: the file's.
boost::json::object OllamaShow(const ModelEntry& entry, const Gguf& gguf, bool verbose,
                               const std::optional<std::string>& chat_template);

// The entry that a client means: "a" also as "a:latest", "a-b" also as "a:b"; null: none.
const ModelEntry* FindEntry(const std::vector<ModelEntry>& entries, std::string_view name);

// Removes the file, all parts of a split one, if it lies in `folder` itself. kUnsupported: it does
// not. A link there is removed, what it points to stays.
Status DeleteModelFiles(const ModelEntry& entry, const std::string& folder);

}  // namespace sluice
#endif  // SLUICE_SRC_SERVER_OLLAMA_MODELS_H_
