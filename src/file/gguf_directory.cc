// The layout (https://github.com/ggml-org/ggml/blob/master/docs/gguf.md):
//   "GGUF" | u32 version | u64 tensors | u64 entries
//   entry:  string key | u32 type | value            string: u64 length | bytes
//   tensor: string name | u32 dims | u64 shape[dims] | u32 type | u64 offset
//   padding to the alignment | tensor data, offsets relative to here
#include "src/file/gguf_directory.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <string>

#include "src/base/checked_math.h"
#include "src/base/printable.h"
#include "src/file/byte_reader.h"

namespace sluice {
namespace {

// Smallest possible entries: they bound the counts of the header.
constexpr uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;           // key of 1 byte, u8 value
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;  // name of 1 byte, 1 dimension
constexpr uint64_t kMaxNameBytes = 65535;
constexpr uint64_t kMaxCount =
    1 << 20;  // entries or tensors; the largest real files hold some 10^4
// The format asks for a multiple of 8; past 1 MiB it is a broken or hostile file.
constexpr uint64_t kMinAlignment = 8, kMaxAlignment = 1 << 20;
// Type numbers in use are below 64: a large one is damage, not a newer format.
constexpr uint32_t kMaxTypeId = 1023;

Status Corrupt(std::string message) { return Status(StatusCode::kCorrupt, std::move(message)); }

std::string Quoted(std::string_view name) { return "\"" + Printable(name) + "\""; }

// Bytes of one element; 0 for strings, arrays and unknown types.
size_t ScalarBytes(GgufType type) {
  switch (type) {
    case GgufType::kU8:
    case GgufType::kI8:
    case GgufType::kBool:
      return 1;
    case GgufType::kU16:
    case GgufType::kI16:
      return 2;
    case GgufType::kU32:
    case GgufType::kI32:
    case GgufType::kF32:
      return 4;
    case GgufType::kU64:
    case GgufType::kI64:
    case GgufType::kF64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      break;
  }
  return 0;
}

struct Header {
  char magic[4];
  uint32_t version;
  uint64_t tensors;
  uint64_t entries;
};
static_assert(sizeof(Header) == 24);

// What a file that does not start with "GGUF" seems to be.
const char* ForeignHint(std::string_view start) {
  const auto starts = [&](std::string_view s) { return start.substr(0, s.size()) == s; };
  if (starts("FUGG")) return ", it is a big-endian GGUF file: convert it to little endian";
  if (starts("lmgg") || starts("ggml") || starts("fmgg") || starts("tjgg") || starts("ggjt") ||
      starts("algg")) {
    return ", it is a GGML file from before GGUF: convert the original model again";
  }
  if (starts("PK\x03\x04")) return ", it is a zip or PyTorch file: convert the model to GGUF";
  if (starts("\x1F\x8B")) return ", it is a gzip file: unpack it first";
  if (starts("version https://git-lfs")) return ", it is a Git LFS pointer: fetch the real file";
  if (starts("<!") || starts("<html") || starts("<HTML")) {
    return ", it is a web page: the download failed";
  }
  if (start.size() > 8 && start[8] == '{') {
    return ", it looks like safetensors: convert the model to GGUF";
  }
  return "";
}

Status ReadHeader(ByteReader& reader, std::span<const uint8_t> file, Header* header) {
  const std::string_view start(reinterpret_cast<const char*>(file.data()),
                               std::min<size_t>(file.size(), 32));
  if (start.substr(0, 4) != "GGUF") {
    return Corrupt("not a GGUF file: expected it to start with \"GGUF\", found \"" +
                   Printable(start.substr(0, 4)) + "\"" + ForeignHint(start));
  }
  if (!reader.Read(header)) {
    return Corrupt("too short for a GGUF header: expected 24 bytes, found " +
                   std::to_string(file.size()));
  }
  const uint32_t version = header->version;
  if ((version & 0xFFFF) == 0 && version != 0) {
    return Status(StatusCode::kUnsupported,
                  "is a big-endian GGUF file: convert it to little endian");
  }
  if (version == 1) {
    return Status(StatusCode::kUnsupported,
                  "is GGUF version 1: expected 2 or 3, convert the original model again");
  }
  if (version != 2 && version != 3) {
    return Status(StatusCode::kUnsupported,
                  "is GGUF version " + std::to_string(version) + ": expected 2 or 3");
  }
  if (header->entries > std::min(kMaxCount, reader.left() / kMinEntryBytes)) {
    return Corrupt("header announces " + std::to_string(header->entries) +
                   " metadata entries, more than fit in " + std::to_string(reader.left()) +
                   " bytes");
  }
  if (header->tensors > std::min(kMaxCount, reader.left() / kMinTensorBytes)) {
    return Corrupt("header announces " + std::to_string(header->tensors) +
                   " tensors, more than fit in " + std::to_string(reader.left()) + " bytes");
  }
  return Status();
}

Status ReadKey(ByteReader& reader, const char* what, uint64_t index, std::string_view* key) {
  const size_t at = reader.offset();
  if (!reader.ReadString(key)) {
    return Corrupt(std::string(what) + " " + std::to_string(index) +
                   ": name runs past the end of the file (at byte " + std::to_string(at) + ")");
  }
  if (key->empty() || key->size() > kMaxNameBytes) {
    return Corrupt(std::string(what) + " " + std::to_string(index) +
                   ": expected a name of 1 to 65535 bytes, found " + std::to_string(key->size()));
  }
  return Status();
}

bool AllBool(std::span<const uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](uint8_t b) { return b <= 1; });
}

Status ReadValue(ByteReader& reader, std::string_view key, GgufValue* value) {
  const auto corrupt = [&](const std::string& what) {
    return Corrupt("metadata " + Quoted(key) + ": " + what);
  };
  uint32_t type;
  if (!reader.Read(&type)) return corrupt("the file ends inside it");
  if (type > static_cast<uint32_t>(GgufType::kF64)) {
    return corrupt("unknown value type " + std::to_string(type));
  }
  value->type = static_cast<GgufType>(type);
  GgufType element = value->type;
  if (element == GgufType::kArray) {
    if (!reader.Read(&type) || !reader.Read(&value->count))
      return corrupt("the file ends inside it");
    if (type > static_cast<uint32_t>(GgufType::kF64)) {
      return corrupt("unknown array element type " + std::to_string(type));
    }
    element = static_cast<GgufType>(type);
    if (element == GgufType::kArray) return corrupt("arrays of arrays are not supported");
    value->element = element;
  }
  bool good;
  if (element != GgufType::kString) {
    good = reader.ReadArray(value->count, ScalarBytes(element), &value->bytes);
  } else if (value->type == GgufType::kArray) {
    good = reader.ReadStrings(value->count, &value->bytes);
  } else {
    std::string_view text;
    good = reader.ReadString(&text);
    value->bytes = {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
  }
  if (!good) {
    return corrupt(value->type == GgufType::kArray
                       ? "array of " + std::to_string(value->count) +
                             " runs past the end of the file"
                       : std::string("value runs past the end of the file"));
  }
  if (element == GgufType::kBool && !AllBool(value->bytes)) {
    return corrupt("a bool is neither 0 nor 1");
  }
  return Status();
}

Status ReadMetadata(ByteReader& reader, uint64_t count, GgufDirectory* out) {
  // No more than a page or so up front: the vector grows with what was really read.
  out->metadata.reserve(std::min<uint64_t>(count, 64));
  std::vector<std::string_view> keys;
  for (uint64_t i = 0; i < count; ++i) {
    GgufEntry entry;
    RETURN_IF_ERROR(ReadKey(reader, "metadata entry", i, &entry.key));
    RETURN_IF_ERROR(ReadValue(reader, entry.key, &entry.value));
    keys.push_back(entry.key);
    out->metadata.push_back(entry);
  }
  return SortedUnique(keys, "metadata key").status();
}

Status ReadAlignment(GgufDirectory* out) {
  for (const GgufEntry& entry : out->metadata) {
    if (entry.key != "general.alignment") continue;
    if (entry.value.type != GgufType::kU32) {
      return Corrupt(std::string("general.alignment: expected u32, found ") +
                     GgufTypeName(entry.value.type));
    }
    uint32_t alignment;
    std::memcpy(&alignment, entry.value.bytes.data(), sizeof(alignment));
    const bool power_of_two = alignment != 0 && (alignment & (alignment - 1)) == 0;
    if (!power_of_two || alignment < kMinAlignment || alignment > kMaxAlignment) {
      return Corrupt("general.alignment: expected a power of two from 8 to 1048576, found " +
                     std::to_string(alignment));
    }
    out->alignment = alignment;
  }
  return Status();
}

// Bytes per value of the plain number types that no weight format covers; 0 for others.
uint64_t PlainTypeBytes(uint32_t type_id) {
  switch (type_id) {
    case 24:  // I8
      return 1;
    case 25:  // I16
      return 2;
    case 26:  // I32
      return 4;
    case 27:  // I64
    case 28:  // F64
      return 8;
    default:
      return 0;
  }
}

// Sets format and bytes. Bytes of an unknown type stay 0 here: nothing says how large its blocks
// are.
Status SizeTensor(GgufTensor* tensor) {
  const auto corrupt = [&](const std::string& what) {
    return Corrupt("tensor " + Quoted(tensor->name) + ": " + what);
  };
  // As if zero dimensions were one, so that no partial product can wrap either.
  std::optional<uint64_t> values = 1;
  for (uint64_t dim : tensor->shape)
    values = values ? CheckedMul(*values, std::max<uint64_t>(dim, 1)) : values;
  if (!values || *values > static_cast<uint64_t>(INT64_MAX)) {
    return corrupt("the product of its dimensions does not fit in 63 bits");
  }
  if (tensor->type_id > kMaxTypeId) {
    return corrupt("type number " + std::to_string(tensor->type_id) + " is out of range");
  }
  tensor->format = FindFormat(tensor->type_id);
  if (tensor->Elements() == 0) return Status();
  uint64_t blocks = *values, block_bytes = PlainTypeBytes(tensor->type_id);
  if (tensor->format != nullptr) {
    const uint32_t block_values = tensor->format->block_values;
    if (tensor->shape[0] % block_values != 0) {
      return corrupt("rows of " + std::to_string(tensor->shape[0]) + " values, but " +
                     tensor->format->name + " comes in blocks of " + std::to_string(block_values));
    }
    blocks = *values / block_values;
    block_bytes = tensor->format->block_bytes;
  }
  const std::optional<uint64_t> bytes = CheckedMul(blocks, block_bytes);
  if (!bytes) return corrupt("its size does not fit in 64 bits");
  tensor->bytes = *bytes;
  return Status();
}

Status ReadTensor(ByteReader& reader, uint64_t index, GgufTensor* tensor, uint64_t* offset) {
  RETURN_IF_ERROR(ReadKey(reader, "tensor", index, &tensor->name));
  const auto corrupt = [&](const std::string& what) {
    return Corrupt("tensor " + Quoted(tensor->name) + ": " + what);
  };
  if (!reader.Read(&tensor->dims)) return corrupt("the file ends inside its entry");
  if (tensor->dims < 1 || tensor->dims > 4) {
    return corrupt("expected 1 to 4 dimensions, found " + std::to_string(tensor->dims));
  }
  bool good = true;
  for (uint32_t d = 0; d < tensor->dims; ++d) good = good && reader.Read(&tensor->shape[d]);
  if (!good || !reader.Read(&tensor->type_id) || !reader.Read(offset)) {
    return corrupt("the file ends inside its entry");
  }
  return SizeTensor(tensor);
}

// Checks one tensor's place against the file and sets `data`.
Status PlaceTensor(std::span<const uint8_t> file, const GgufDirectory& directory, uint64_t offset,
                   GgufTensor* tensor) {
  const auto corrupt = [&](const std::string& what) {
    return Corrupt("tensor " + Quoted(tensor->name) + ": " + what);
  };
  if (offset % directory.alignment != 0) {
    return corrupt("offset " + std::to_string(offset) + " is no multiple of the alignment " +
                   std::to_string(directory.alignment));
  }
  const uint64_t data_bytes =
      file.size() > directory.data_offset ? file.size() - directory.data_offset : 0;
  if (offset > data_bytes || tensor->bytes > data_bytes - offset) {
    return corrupt("needs " + std::to_string(tensor->bytes) + " bytes at offset " +
                   std::to_string(offset) + ", but the file holds " + std::to_string(data_bytes) +
                   " bytes of tensor data: is it cut short?");
  }
  tensor->data = file.data() + std::min<uint64_t>(directory.data_offset + offset, file.size());
  return Status();
}

// Tensors in order of place; no two may share a byte. A tensor of a type that
// nothing here knows gets the bytes up to its successor.
Status CheckOverlap(std::span<const uint8_t> file, std::vector<GgufTensor>* tensors) {
  std::vector<GgufTensor*> by_place;
  for (GgufTensor& tensor : *tensors) {
    if (tensor.Elements() != 0) by_place.push_back(&tensor);
  }
  std::sort(by_place.begin(), by_place.end(), [](const GgufTensor* a, const GgufTensor* b) {
    return a->data != b->data ? a->data < b->data : a < b;
  });
  for (size_t i = 0; i < by_place.size(); ++i) {
    GgufTensor* tensor = by_place[i];
    const uint8_t* next =
        i + 1 < by_place.size() ? by_place[i + 1]->data : file.data() + file.size();
    const uint64_t room = static_cast<uint64_t>(next - tensor->data);
    const bool unknown = tensor->format == nullptr && PlainTypeBytes(tensor->type_id) == 0;
    if (unknown) tensor->bytes = room;
    if (tensor->bytes > room || room == 0) {
      return i + 1 < by_place.size()
                 ? Corrupt("tensors " + Quoted(tensor->name) + " and " +
                           Quoted(by_place[i + 1]->name) + " overlap")
                 : Corrupt("tensor " + Quoted(tensor->name) + ": lies past the end of the file");
    }
  }
  return Status();
}

Status ReadTensors(ByteReader& reader, std::span<const uint8_t> file, uint64_t count,
                   GgufDirectory* out) {
  std::vector<uint64_t> offsets;
  std::vector<std::string_view> names;
  for (uint64_t i = 0; i < count; ++i) {
    GgufTensor tensor;
    uint64_t offset = 0;
    RETURN_IF_ERROR(ReadTensor(reader, i, &tensor, &offset));
    out->tensors.push_back(tensor);
    offsets.push_back(offset);
    names.push_back(tensor.name);
  }
  RETURN_IF_ERROR(SortedUnique(names, "tensor name").status());
  const std::optional<uint64_t> data_offset = CheckedRoundUp(reader.offset(), out->alignment);
  if (!data_offset) return Corrupt("the tensor table ends past the address space");
  out->data_offset = *data_offset;
  for (uint64_t i = 0; i < count; ++i) {
    RETURN_IF_ERROR(PlaceTensor(file, *out, offsets[i], &out->tensors[i]));
  }
  return CheckOverlap(file, &out->tensors);
}

}  // namespace

Result<std::vector<uint32_t>> SortedUnique(std::span<const std::string_view> keys,
                                           const char* what) {
  std::vector<uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return keys[a] < keys[b]; });
  for (size_t i = 1; i < order.size(); ++i) {
    if (keys[order[i - 1]] == keys[order[i]]) {
      return Corrupt(std::string(what) + " " + Quoted(keys[order[i]]) + " appears twice");
    }
  }
  return order;
}

Result<GgufDirectory> ParseGgufDirectory(std::span<const uint8_t> file) {
  ByteReader reader(file);
  Header header{};
  GgufDirectory out;
  RETURN_IF_ERROR(ReadHeader(reader, file, &header));
  out.version = header.version;
  RETURN_IF_ERROR(ReadMetadata(reader, header.entries, &out));
  RETURN_IF_ERROR(ReadAlignment(&out));
  RETURN_IF_ERROR(ReadTensors(reader, file, header.tensors, &out));
  return out;
}

}  // namespace sluice
