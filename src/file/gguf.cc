// Opening: one map and one directory per part, joined. Getters are in gguf_values.cc.
#include "src/file/gguf.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "src/base/mapped_file.h"
#include "src/base/printable.h"
#include "src/file/gguf_directory.h"

namespace sluice {
namespace {

struct Part {
  std::unique_ptr<MappedFile> file;
  GgufDirectory directory;
};

class GgufFile final : public Gguf {
 public:
  // Joins parts in order; metadata is that of the first.
  Status Join(std::string path, std::vector<Part> parts);

  const std::string& path() const override { return path_; }
  uint32_t version() const override { return parts_[0].directory.version; }
  uint64_t file_bytes() const override;
  std::vector<FileStamp> stamps() const override;

  size_t metadata_size() const override { return metadata().size(); }
  std::string_view metadata_key(size_t i) const override { return metadata()[i].key; }
  const GgufValue& metadata_value(size_t i) const override { return metadata()[i].value; }
  const GgufValue* Find(std::string_view key) const override;

  std::span<const GgufTensor> tensors() const override { return tensors_; }
  const GgufTensor* FindTensor(std::string_view name) const override;

  void WillNeed(const GgufTensor& tensor) const override;
  void DontNeed(const GgufTensor& tensor) const override;
  uint64_t ResidentBytes() const override;

 private:
  const std::vector<GgufEntry>& metadata() const { return parts_[0].directory.metadata; }
  const MappedFile* FileOf(const GgufTensor& tensor) const;

  std::string path_;
  std::vector<Part> parts_;
  std::vector<GgufTensor> tensors_;
  std::vector<uint32_t> by_key_;   // positions in metadata(), sorted by key
  std::vector<uint32_t> by_name_;  // positions in tensors_, sorted by name
};

Status GgufFile::Join(std::string path, std::vector<Part> parts) {
  path_ = std::move(path);
  parts_ = std::move(parts);
  std::vector<std::string_view> names;
  for (const GgufEntry& entry : metadata()) names.push_back(entry.key);
  ASSIGN_OR_RETURN(by_key_, SortedUnique(names, "metadata key"));
  names.clear();
  for (const Part& part : parts_) {
    const std::vector<GgufTensor>& more = part.directory.tensors;
    tensors_.insert(tensors_.end(), more.begin(), more.end());
  }
  for (const GgufTensor& tensor : tensors_) names.push_back(tensor.name);
  ASSIGN_OR_RETURN(by_name_, SortedUnique(names, "tensor name"));
  return Status();
}

uint64_t GgufFile::file_bytes() const {
  uint64_t bytes = 0;
  for (const Part& part : parts_) bytes += part.file->bytes().size();
  return bytes;
}

std::vector<FileStamp> GgufFile::stamps() const {
  std::vector<FileStamp> stamps;
  for (const Part& part : parts_) stamps.push_back(part.file->stamp());
  return stamps;
}

const GgufValue* GgufFile::Find(std::string_view key) const {
  const auto it = std::lower_bound(
      by_key_.begin(), by_key_.end(), key,
      [&](uint32_t i, std::string_view wanted) { return metadata()[i].key < wanted; });
  return it != by_key_.end() && metadata()[*it].key == key ? &metadata()[*it].value : nullptr;
}

const GgufTensor* GgufFile::FindTensor(std::string_view name) const {
  const auto it = std::lower_bound(
      by_name_.begin(), by_name_.end(), name,
      [&](uint32_t i, std::string_view wanted) { return tensors_[i].name < wanted; });
  return it != by_name_.end() && tensors_[*it].name == name ? &tensors_[*it] : nullptr;
}

const MappedFile* GgufFile::FileOf(const GgufTensor& tensor) const {
  for (const Part& part : parts_) {
    if (part.file->Contains(tensor.data)) return part.file.get();
  }
  return nullptr;  // an empty tensor at the very end of its file
}

void GgufFile::WillNeed(const GgufTensor& tensor) const {
  const MappedFile* file = FileOf(tensor);
  if (file != nullptr) file->WillNeed(tensor.data - file->bytes().data(), tensor.bytes);
}

void GgufFile::DontNeed(const GgufTensor& tensor) const {
  const MappedFile* file = FileOf(tensor);
  if (file != nullptr) file->DontNeed(tensor.data - file->bytes().data(), tensor.bytes);
}

uint64_t GgufFile::ResidentBytes() const {
  uint64_t bytes = 0;
  for (const Part& part : parts_) bytes += part.file->ResidentBytes();
  return bytes;
}

Result<Part> OpenPart(const std::string& path) {
  Part part;
  ASSIGN_OR_RETURN(part.file, MappedFile::Open(path));
  Result<GgufDirectory> directory = ParseGgufDirectory(part.file->bytes());
  if (!directory.ok()) return directory.status().Within(Printable(path, 4096));
  part.directory = *std::move(directory);
  return part;
}

// "<prefix>-00002-of-00003.gguf": one of a split model.
struct SplitName {
  std::string prefix;
  uint64_t number = 0, count = 0;

  std::string PathOf(uint64_t n) const {
    char tail[40];
    std::snprintf(tail, sizeof(tail), "-%05llu-of-%05llu.gguf", static_cast<unsigned long long>(n),
                  static_cast<unsigned long long>(count));
    return prefix + tail;
  }
};

std::optional<SplitName> ParseSplitName(const std::string& path) {
  constexpr size_t kTail = std::string_view("-00001-of-00003.gguf").size();
  if (path.size() <= kTail) return std::nullopt;
  const std::string tail = path.substr(path.size() - kTail);
  SplitName name;
  name.prefix = path.substr(0, path.size() - kTail);
  for (size_t i = 1; i <= 5; ++i) {
    if (tail[i] < '0' || tail[i] > '9' || tail[i + 9] < '0' || tail[i + 9] > '9') {
      return std::nullopt;
    }
    name.number = name.number * 10 + static_cast<uint64_t>(tail[i] - '0');
    name.count = name.count * 10 + static_cast<uint64_t>(tail[i + 9] - '0');
  }
  if (name.PathOf(name.number) != path) return std::nullopt;
  return name;
}

// An unsigned key of one part; 0 if absent.
Result<uint64_t> SplitValue(const Part& part, std::string_view key) {
  for (const GgufEntry& entry : part.directory.metadata) {
    if (entry.key != key) continue;
    Result<uint64_t> value = UnsignedValue(key, entry.value);
    if (!value.ok()) return value.status().Within(Printable(part.file->path(), 4096));
    return value;
  }
  return uint64_t{0};
}

// Opens the other parts of the split that `first`, already open, belongs to.
Status OpenSplit(const std::string& path, uint64_t count, std::vector<Part>* parts) {
  const auto fail = [](const std::string& where, const std::string& what) {
    return Status(StatusCode::kCorrupt, Printable(where, 4096) + ": " + what);
  };
  const std::optional<SplitName> name = ParseSplitName(path);
  if (!name || name->count != count) {
    return fail(path, "is part of a split model: expected a name that ends in \"" +
                          SplitName{"", 1, count}.PathOf(1) + "\"");
  }
  uint64_t tensors = 0;
  Part given = std::move((*parts)[0]);
  parts->clear();
  for (uint64_t n = 1; n <= count; ++n) {
    const std::string part_path = name->PathOf(n);
    if (n == name->number) {
      parts->push_back(std::move(given));
    } else {
      ASSIGN_OR_RETURN(Part part, OpenPart(part_path));
      parts->push_back(std::move(part));
    }
    const Part& part = parts->back();
    ASSIGN_OR_RETURN(const uint64_t part_count, SplitValue(part, "split.count"));
    ASSIGN_OR_RETURN(const uint64_t part_no, SplitValue(part, "split.no"));
    if (part_count != count || part_no != n - 1) {
      return fail(part_path, "expected part " + std::to_string(n) + " of " + std::to_string(count) +
                                 ", found part " + std::to_string(part_no + 1) + " of " +
                                 std::to_string(part_count));
    }
    tensors += part.directory.tensors.size();
  }
  ASSIGN_OR_RETURN(const uint64_t expected, SplitValue((*parts)[0], "split.tensors.count"));
  if (expected != tensors) {
    return fail(path, "split.tensors.count says " + std::to_string(expected) +
                          " tensors, the parts hold " + std::to_string(tensors));
  }
  return Status();
}

}  // namespace

Result<std::unique_ptr<Gguf>> Gguf::Open(const std::string& path) {
  std::vector<Part> parts;
  ASSIGN_OR_RETURN(Part first, OpenPart(path));
  parts.push_back(std::move(first));
  ASSIGN_OR_RETURN(const uint64_t split_count, SplitValue(parts[0], "split.count"));
  if (split_count > 1) RETURN_IF_ERROR(OpenSplit(path, split_count, &parts));
  auto file = std::make_unique<GgufFile>();
  const Status joined = file->Join(path, std::move(parts));
  if (!joined.ok()) return joined.Within(Printable(path, 4096));
  return std::unique_ptr<Gguf>(std::move(file));
}

}  // namespace sluice
