// Layout, little endian:
//   Header | directory: per tensor { u64 length, name, EntryRecord } | data, each tensor at a
//   multiple of 4096. The header's hash covers itself and the directory; a tensor's hash is
//   XXH3 over the XXH3 of each of its panels, so that threads can hash what they convert.
//
// Written in blocks of 4 MB of the file, each with one call, whatever tensors begin or end in it:
// Linux (ext4 since 6.16, XFS) then keeps it in the page cache in pieces of 2 MB, which it can map
// by one entry each. Written 1 MB at a time, the same file was mapped by small pages until the
// next reboot: reading it with one thread of a Zen 4 was 10-15 % slower.
#include "src/file/panel_file.h"

#define XXH_STATIC_LINKING_ONLY  // the state as a plain member
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <optional>

#include "src/base/atomic_file.h"
#include "src/base/cache_folder.h"
#include "src/base/checked_math.h"
#include "src/base/printable.h"
#include "src/base/small_file.h"
#include "src/file/byte_reader.h"
#include "src/file/panel_rows.h"

namespace sluice {
namespace {

constexpr char kMagic[8] = {'S', 'L', 'U', 'P', 'A', 'N', 'E', 'L'};
constexpr uint64_t kTensorAlignment = 4096;  // a page: hints and NUMA moves touch one tensor only
constexpr uint64_t kBlockBytes = 4 << 20;    // of the file, that a thread fills at a time
constexpr size_t kVerifyBytes = 4 << 20;     // of panels a thread checks at a time

struct Key {
  uint64_t low = 0, high = 0;
  bool operator==(const Key&) const = default;
};

struct Header {
  char magic[8];
  uint32_t layout_version;
  uint32_t entries;
  Key key;
  uint64_t file_bytes;
  uint64_t directory_bytes;
  uint64_t hash;  // of this header with hash 0, then the directory
};
static_assert(sizeof(Header) == 56);

struct EntryRecord {
  uint32_t format;  // GGUF type number
  uint32_t padding;
  uint64_t rows, k, experts;
  uint64_t offset, bytes;
  uint64_t hash;
};
static_assert(sizeof(EntryRecord) == 56);

// Streams values into one 128-bit hash.
class Hasher {
 public:
  Hasher() { XXH3_128bits_reset(&state_); }

  void Add(const void* bytes, size_t n) { XXH3_128bits_update(&state_, bytes, n); }
  template <class T>
  void AddNumber(T value) {
    Add(&value, sizeof(value));
  }
  void AddText(std::string_view text) {
    AddNumber(text.size());
    Add(text.data(), text.size());
  }
  Key Finish() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(&state_);
    return {hash.low64, hash.high64};
  }

 private:
  XXH3_state_t state_;
};

// What the GGUF is, without reading all of it.
struct Identity {
  Key name;     // of the sidecar
  Key content;  // in its header: a sidecar of this name with another one is written again
};

// The name: which file it is, when its content last changed by its own account, all metadata, the
// whole tensor table, and pages of each tensor's data, the first and the last among them (each
// costs a random disk read when the file is cold; 2000 of them: 1 s). A file under another name
// finds it, a copy has its own.
//
// Two files of one size and time that differ in a few rows have different inodes. The same file
// edited in place with its time put back (or by a map that never set it) has another time of
// change, which no program can set, and so has one that took over the inode of a deleted file. That
// time is not in the name because renaming or linking moves it too: the sidecar is then written
// again in its place, once, instead of beside the old one. Not caught: a clock that was set back to
// the very tick, and file systems that keep no time of change, where edits that keep the time count
// only on sampled pages. The device is left out: its number may be another one after every boot.
Identity IdentityOf(const Gguf& gguf) {
  constexpr uint64_t kSampleBytes = 4096, kSamples = 512;
  Hasher hasher;
  hasher.AddNumber(gguf.file_bytes());
  const std::vector<FileStamp> stamps = gguf.stamps();
  for (const FileStamp& stamp : stamps) {
    hasher.AddNumber(stamp.inode);
    hasher.AddNumber(stamp.modified_ns);
  }
  for (size_t i = 0; i < gguf.metadata_size(); ++i) {
    const GgufValue& value = gguf.metadata_value(i);
    hasher.AddText(gguf.metadata_key(i));
    hasher.AddNumber(value.type);
    hasher.AddNumber(value.bytes.size());
    hasher.Add(value.bytes.data(), value.bytes.size());
  }
  const uint64_t samples =
      std::clamp<uint64_t>(kSamples / std::max<size_t>(gguf.tensors().size(), 1), 2, 64);
  for (const GgufTensor& tensor : gguf.tensors()) {
    hasher.AddText(tensor.name);
    hasher.AddNumber(tensor.type_id);
    hasher.Add(tensor.shape, sizeof(tensor.shape));
    if (tensor.bytes <= samples * kSampleBytes) {
      hasher.Add(tensor.data, tensor.bytes);
      continue;
    }
    const uint64_t step = (tensor.bytes - kSampleBytes) / (samples - 1);
    for (uint64_t s = 0; s + 1 < samples; ++s) hasher.Add(tensor.data + s * step, kSampleBytes);
    hasher.Add(tensor.data + tensor.bytes - kSampleBytes, kSampleBytes);
  }
  Identity identity;
  identity.name = hasher.Finish();
  for (const FileStamp& stamp : stamps) hasher.AddNumber(stamp.changed_ns);
  identity.content = hasher.Finish();
  return identity;
}

Result<std::string> PathFor(const Key& key) {
  ASSIGN_OR_RETURN(const std::string folder, CacheFolder());
  static const char kHex[] = "0123456789abcdef";
  std::string name;
  for (uint64_t word : {key.high, key.low}) {
    for (int shift = 60; shift >= 0; shift -= 4) name += kHex[word >> shift & 15];
  }
  return folder + "/panels/" + name + "-v" + std::to_string(kPanelLayoutVersion) + ".panels";
}

uint64_t HeaderHash(Header header, std::span<const uint8_t> directory) {
  header.hash = 0;
  Hasher hasher;
  hasher.AddNumber(header);
  hasher.Add(directory.data(), directory.size());
  return hasher.Finish().low;
}

// ---- Writing ------------------------------------------------------------------------------------

struct Planned {
  const GgufTensor* tensor;
  PanelShape shape;
  uint64_t offset = 0;
  std::vector<uint64_t> panel_hashes;
};

struct Plan {
  Key name;
  Header header{};
  uint64_t data_bytes = 0;       // panels, without padding
  std::vector<Planned> tensors;  // by name, and so by offset
};

Result<Plan> MakePlan(const Gguf& gguf, std::span<const GgufTensor* const> tensors) {
  Plan plan;
  for (const GgufTensor* tensor : tensors) {
    const std::optional<PanelShape> shape = PanelShapeOf(*tensor);
    if (!shape) continue;
    plan.tensors.push_back({tensor, *shape, 0, std::vector<uint64_t>(shape->panels())});
  }
  // Find() searches by name.
  std::sort(plan.tensors.begin(), plan.tensors.end(),
            [](const Planned& a, const Planned& b) { return a.tensor->name < b.tensor->name; });
  const auto same = [](const Planned& a, const Planned& b) { return a.tensor == b.tensor; };
  plan.tensors.erase(std::unique(plan.tensors.begin(), plan.tensors.end(), same),
                     plan.tensors.end());
  for (const Planned& planned : plan.tensors) {
    plan.header.directory_bytes +=
        sizeof(uint64_t) + planned.tensor->name.size() + sizeof(EntryRecord);
  }
  std::optional<uint64_t> end = sizeof(Header) + plan.header.directory_bytes;
  for (Planned& planned : plan.tensors) {
    const PanelShape& shape = planned.shape;
    end = CheckedRoundUp(*end, kTensorAlignment);
    if (end) planned.offset = *end;
    if (end) end = CheckedAdd(*end, shape.bytes());
    if (!end) return Status(StatusCode::kUnsupported, "its panels would not fit in a file");
    plan.data_bytes += shape.bytes();
  }
  std::memcpy(plan.header.magic, kMagic, sizeof(kMagic));
  plan.header.layout_version = kPanelLayoutVersion;
  plan.header.entries = static_cast<uint32_t>(plan.tensors.size());
  const Identity identity = IdentityOf(gguf);
  plan.name = identity.name;
  plan.header.key = identity.content;
  plan.header.file_bytes = *end;
  return plan;
}

// Fills and writes blocks of the file, on any threads; each block once.
class BlockWriter {
 public:
  BlockWriter(AtomicFile& file, Plan& plan) : file_(file), plan_(plan) {}

  size_t blocks() const { return (plan_.header.file_bytes + kBlockBytes - 1) / kBlockBytes; }
  // Converts, hashes and writes block `index`; *data_bytes: of panels in it.
  Status Write(size_t index, uint64_t* data_bytes) {
    const uint64_t begin = index * kBlockBytes;
    const uint64_t end = std::min(begin + kBlockBytes, plan_.header.file_bytes);
    std::vector<uint8_t> block = TakeBuffer();
    std::fill(block.begin(), block.end(), 0);  // between tensors; the head is written last
    *data_bytes = 0;
    for (Planned& planned : plan_.tensors) {
      const uint64_t from = std::max(begin, planned.offset);
      const uint64_t to = std::min(end, planned.offset + planned.shape.bytes());
      if (from >= to) continue;
      Fill(planned, from - planned.offset, to - planned.offset, block.data() + (from - begin));
      *data_bytes += to - from;
    }
    const Status status = file_.WriteAt(begin, std::span(block).first(end - begin));
    GiveBuffer(std::move(block));
    return status;
  }

 private:
  // Bytes [from, to) of the tensor's panels. A panel that lies in two blocks is made in both; the
  // block where it begins hashes it.
  static void Fill(Planned& planned, uint64_t from, uint64_t to, uint8_t* out) {
    const PanelShape& shape = planned.shape;
    const size_t bytes = shape.panel_bytes;
    std::vector<uint8_t> cut;
    for (size_t panel = from / bytes; panel * bytes < to;) {
      const uint64_t at = panel * bytes;
      if (at >= from && at + bytes <= to) {
        const size_t count = (to - at) / bytes;
        uint8_t* const whole = out + (at - from);
        MakePanels(*planned.tensor, shape, panel, count, whole);
        for (size_t i = 0; i < count; ++i) {
          planned.panel_hashes[panel + i] = XXH3_64bits(whole + i * bytes, bytes);
        }
        panel += count;
        continue;
      }
      cut.resize(bytes);
      MakePanels(*planned.tensor, shape, panel, 1, cut.data());
      if (at >= from) planned.panel_hashes[panel] = XXH3_64bits(cut.data(), bytes);
      const uint64_t first = std::max(at, from), last = std::min(at + bytes, to);
      std::memcpy(out + (first - from), cut.data() + (first - at), last - first);
      ++panel;
    }
  }

  // Buffers are kept: memory new to the process costs more to get than to fill.
  std::vector<uint8_t> TakeBuffer() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (buffers_.empty()) return std::vector<uint8_t>(kBlockBytes);
    std::vector<uint8_t> buffer = std::move(buffers_.back());
    buffers_.pop_back();
    return buffer;
  }
  void GiveBuffer(std::vector<uint8_t> buffer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    buffers_.push_back(std::move(buffer));
  }

  AtomicFile& file_;
  Plan& plan_;
  std::mutex mutex_;
  std::vector<std::vector<uint8_t>> buffers_;
};

Status Interrupted() {
  return Status(StatusCode::kCancelled, "interrupted while its panels were written");
}

Status WriteBlocks(AtomicFile& file, Plan& plan, const PanelFile::ParallelFor& parallel_for,
                   const PanelFile::Progress& progress) {
  BlockWriter writer(file, plan);
  std::atomic<uint64_t> done{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  Status first_error;
  parallel_for(writer.blocks(), [&](size_t i) {
    if (failed.load(std::memory_order_relaxed)) return;
    uint64_t bytes = 0;
    const Status status = writer.Write(i, &bytes);
    if (!status.ok()) {
      const std::lock_guard<std::mutex> lock(mutex);
      if (!failed.exchange(true)) first_error = status;
      return;
    }
    const uint64_t now = done.fetch_add(bytes) + bytes;
    if (progress && !progress(now, plan.data_bytes) && !failed.exchange(true)) {
      const std::lock_guard<std::mutex> lock(mutex);
      first_error = Interrupted();
    }
  });
  return first_error;
}

std::vector<uint8_t> HeadOf(Plan& plan) {
  std::vector<uint8_t> directory;
  const auto append = [&](const void* bytes, size_t n) {
    const uint8_t* p = static_cast<const uint8_t*>(bytes);
    directory.insert(directory.end(), p, p + n);
  };
  for (const Planned& planned : plan.tensors) {
    const PanelShape& shape = planned.shape;
    const std::string_view name = planned.tensor->name;
    const uint64_t length = name.size();
    const uint64_t hash =
        XXH3_64bits(planned.panel_hashes.data(), planned.panel_hashes.size() * sizeof(uint64_t));
    const EntryRecord record = {
        planned.tensor->type_id, 0,   shape.rows, shape.k, shape.experts, planned.offset,
        shape.bytes(),           hash};
    append(&length, sizeof(length));
    append(name.data(), name.size());
    append(&record, sizeof(record));
  }
  plan.header.hash = HeaderHash(plan.header, directory);
  std::vector<uint8_t> head(sizeof(Header));
  std::memcpy(head.data(), &plan.header, sizeof(Header));
  head.insert(head.end(), directory.begin(), directory.end());
  return head;
}

}  // namespace

Result<std::string> PanelFile::PathOf(const Gguf& gguf) { return PathFor(IdentityOf(gguf).name); }

Status PanelFile::Write(const Gguf& gguf, std::span<const GgufTensor* const> tensors,
                        const ParallelFor& parallel_for, const Progress& progress) {
  ASSIGN_OR_RETURN(Plan plan, MakePlan(gguf, tensors));
  ASSIGN_OR_RETURN(const std::string path, PathFor(plan.name));
  const std::string folder = path.substr(0, path.rfind('/'));
  RETURN_IF_ERROR(MakeFolders(folder));
  AtomicFile::RemoveLeftovers(folder);
  // Before there is anything to leave behind: whoever catches signals for this begins here.
  if (progress && !progress(0, plan.data_bytes)) return Interrupted();
  ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file, AtomicFile::Create(path));
  RETURN_IF_ERROR(file->Resize(plan.header.file_bytes));
  RETURN_IF_ERROR(WriteBlocks(*file, plan, parallel_for, progress));
  RETURN_IF_ERROR(file->WriteAt(0, HeadOf(plan)));
  return file->Commit();
}

// ---- Reading ------------------------------------------------------------------------------------

Result<std::unique_ptr<PanelFile>> PanelFile::Open(const Gguf& gguf) {
  const Identity identity = IdentityOf(gguf);
  ASSIGN_OR_RETURN(const std::string path, PathFor(identity.name));
  std::unique_ptr<PanelFile> panels(new PanelFile);
  ASSIGN_OR_RETURN(panels->file_, MappedFile::Open(path));
  ByteReader reader(panels->file_->bytes());
  Header header;
  std::span<const uint8_t> directory;
  const bool good = reader.Read(&header) &&
                    std::memcmp(header.magic, kMagic, sizeof(kMagic)) == 0 &&
                    header.layout_version == kPanelLayoutVersion &&
                    header.key == identity.content && header.file_bytes == panels->bytes() &&
                    reader.ReadBytes(header.directory_bytes, &directory) &&
                    HeaderHash(header, directory) == header.hash;
  if (!good) {
    return Status(StatusCode::kCorrupt,
                  path +
                      ": panel file is damaged, cut short or of an earlier state of the model, " +
                      std::to_string(panels->bytes()) + " bytes");
  }
  RETURN_IF_ERROR(panels->ReadDirectory(gguf, directory, header.entries));
  return panels;
}

// The hash vouches for damage, not for intent: every entry is still checked against the GGUF and
// the file.
Status PanelFile::ReadDirectory(const Gguf& gguf, std::span<const uint8_t> directory,
                                uint64_t entries) {
  ByteReader reader(directory);
  for (uint64_t i = 0; i < entries; ++i) {
    Entry entry;
    EntryRecord record;
    if (!reader.ReadString(&entry.name) || !reader.Read(&record)) {
      return Status(StatusCode::kCorrupt, path() + ": panel file ends inside its directory");
    }
    const GgufTensor* tensor = gguf.FindTensor(entry.name);
    const std::optional<PanelShape> shape = tensor ? PanelShapeOf(*tensor) : std::nullopt;
    const bool fits = shape && record.format == tensor->type_id && record.rows == shape->rows &&
                      record.k == shape->k && record.experts == shape->experts &&
                      record.bytes == shape->bytes() && record.offset % kTensorAlignment == 0 &&
                      record.offset <= bytes() && record.bytes <= bytes() - record.offset;
    if (!fits || (i > 0 && entries_.back().name >= entry.name)) {
      return Status(StatusCode::kCorrupt, path() + ": panels of tensor \"" + Printable(entry.name) +
                                              "\" do not match the model");
    }
    entry.offset = record.offset;
    entry.bytes = record.bytes;
    entry.panel_bytes = shape->panel_bytes;
    entry.hash = record.hash;
    entries_.push_back(entry);
  }
  return Status();
}

const uint8_t* PanelFile::Find(std::string_view tensor) const {
  const auto it =
      std::lower_bound(entries_.begin(), entries_.end(), tensor,
                       [](const Entry& e, std::string_view name) { return e.name < name; });
  const bool found = it != entries_.end() && it->name == tensor;
  return found ? file_->bytes().data() + it->offset : nullptr;
}

Status PanelFile::Verify(const ParallelFor& parallel_for) const {
  struct Task {
    size_t entry, first, count;  // panels [first, first + count)
  };
  std::vector<Task> tasks;
  std::vector<std::vector<uint64_t>> hashes;
  for (const Entry& entry : entries_) {
    const size_t panels = entry.bytes / entry.panel_bytes;
    const size_t step = std::max<size_t>(1, kVerifyBytes / entry.panel_bytes);
    for (size_t at = 0; at < panels; at += step) {
      tasks.push_back({hashes.size(), at, std::min(step, panels - at)});
    }
    hashes.emplace_back(panels);
  }
  parallel_for(tasks.size(), [&](size_t t) {
    const Task& task = tasks[t];
    const Entry& entry = entries_[task.entry];
    const uint8_t* panel = file_->bytes().data() + entry.offset + task.first * entry.panel_bytes;
    for (size_t i = 0; i < task.count; ++i, panel += entry.panel_bytes) {
      hashes[task.entry][task.first + i] = XXH3_64bits(panel, entry.panel_bytes);
    }
  });
  for (size_t e = 0; e < entries_.size(); ++e) {
    if (XXH3_64bits(hashes[e].data(), hashes[e].size() * sizeof(uint64_t)) != entries_[e].hash) {
      return Status(StatusCode::kCorrupt, path() + ": panels of tensor \"" +
                                              Printable(entries_[e].name) + "\" are damaged");
    }
  }
  return Status();
}

Status PanelFile::VerifyOncePerBoot(const ParallelFor& parallel_for) const {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  const std::string wanted = boot + " " + std::to_string(file_->stamp().modified_ns) + "\n";
  const std::string stamp = path() + ".verified";
  const Result<std::string> found = ReadSmallFile(stamp, 4096);
  if (!boot.empty() && found.ok() && *found == wanted) return Status();
  RETURN_IF_ERROR(Verify(parallel_for));
  (void)WriteSmallFile(stamp, wanted);  // cannot be written: verified again next time
  return Status();
}

}  // namespace sluice
