#include "src/file/gguf_writer.h"

#include <type_traits>

#include "src/base/atomic_file.h"

namespace sluice {
namespace {

void Append(std::vector<uint8_t>* out, std::span<const uint8_t> bytes) {
  out->insert(out->end(), bytes.begin(), bytes.end());
}

template <class T>
void AppendNumber(std::vector<uint8_t>* out, T value) {
  static_assert(std::is_arithmetic_v<T>);
  Append(out, {reinterpret_cast<const uint8_t*>(&value), sizeof(value)});
}

void AppendString(std::vector<uint8_t>* out, std::string_view text) {
  AppendNumber(out, static_cast<uint64_t>(text.size()));
  Append(out, {reinterpret_cast<const uint8_t*>(text.data()), text.size()});
}

void AppendArrayHead(std::vector<uint8_t>* out, GgufType element, uint64_t count) {
  AppendNumber(out, static_cast<uint32_t>(element));
  AppendNumber(out, count);
}

}  // namespace

void GgufWriter::SetAlignment(uint32_t alignment) {
  alignment_ = alignment;
  AddU32("general.alignment", alignment);
}

void GgufWriter::AddKey(std::string_view key, GgufType type) {
  ++entries_;
  AppendString(&metadata_, key);
  AppendNumber(&metadata_, static_cast<uint32_t>(type));
}

void GgufWriter::AddU32(std::string_view key, uint32_t value) {
  AddKey(key, GgufType::kU32);
  AppendNumber(&metadata_, value);
}

void GgufWriter::AddU64(std::string_view key, uint64_t value) {
  AddKey(key, GgufType::kU64);
  AppendNumber(&metadata_, value);
}

void GgufWriter::AddI32(std::string_view key, int32_t value) {
  AddKey(key, GgufType::kI32);
  AppendNumber(&metadata_, value);
}

void GgufWriter::AddF32(std::string_view key, float value) {
  AddKey(key, GgufType::kF32);
  AppendNumber(&metadata_, value);
}

void GgufWriter::AddBool(std::string_view key, bool value) {
  AddKey(key, GgufType::kBool);
  AppendNumber(&metadata_, static_cast<uint8_t>(value));
}

void GgufWriter::AddString(std::string_view key, std::string_view value) {
  AddKey(key, GgufType::kString);
  AppendString(&metadata_, value);
}

void GgufWriter::AddStrings(std::string_view key, std::span<const std::string> values) {
  AddKey(key, GgufType::kArray);
  AppendArrayHead(&metadata_, GgufType::kString, values.size());
  for (const std::string& value : values) AppendString(&metadata_, value);
}

void GgufWriter::AddFloats(std::string_view key, std::span<const float> values) {
  AddKey(key, GgufType::kArray);
  AppendArrayHead(&metadata_, GgufType::kF32, values.size());
  for (float value : values) AppendNumber(&metadata_, value);
}

void GgufWriter::AddI32s(std::string_view key, std::span<const int32_t> values) {
  AddKey(key, GgufType::kArray);
  AppendArrayHead(&metadata_, GgufType::kI32, values.size());
  for (int32_t value : values) AppendNumber(&metadata_, value);
}

void GgufWriter::AddValue(std::string_view key, const GgufValue& value) {
  AddKey(key, value.type);
  if (value.type == GgufType::kArray) AppendArrayHead(&metadata_, value.element, value.count);
  if (value.type == GgufType::kString) AppendNumber(&metadata_, uint64_t{value.bytes.size()});
  Append(&metadata_, value.bytes);
}

void GgufWriter::AddTensor(std::string_view name, uint32_t type_id, std::span<const uint64_t> shape,
                           std::span<const uint8_t> data) {
  ++tensors_;
  AppendString(&table_, name);
  AppendNumber(&table_, static_cast<uint32_t>(shape.size()));
  for (uint64_t dim : shape) AppendNumber(&table_, dim);
  AppendNumber(&table_, type_id);
  AppendNumber(&table_, data_bytes_);
  data_.push_back(data);
  data_bytes_ += Padded(data.size());
}

uint64_t GgufWriter::Padded(uint64_t bytes) const {
  return (bytes + alignment_ - 1) / alignment_ * alignment_;
}

std::vector<uint8_t> GgufWriter::Head() const {
  std::vector<uint8_t> head = {'G', 'G', 'U', 'F'};
  AppendNumber(&head, version_);
  AppendNumber(&head, tensors_);
  AppendNumber(&head, entries_);
  Append(&head, metadata_);
  Append(&head, table_);
  head.resize(Padded(head.size()));
  return head;
}

std::vector<uint8_t> GgufWriter::Bytes() const {
  std::vector<uint8_t> bytes = Head();
  bytes.reserve(bytes.size() + data_bytes_);
  for (const std::span<const uint8_t> data : data_) {
    Append(&bytes, data);
    bytes.resize(Padded(bytes.size()));
  }
  return bytes;
}

Status GgufWriter::Write(const std::string& path) const {
  ASSIGN_OR_RETURN(const std::unique_ptr<AtomicFile> file, AtomicFile::Create(path));
  const std::vector<uint8_t> head = Head();
  RETURN_IF_ERROR(file->Resize(head.size() + data_bytes_));
  RETURN_IF_ERROR(file->WriteAt(0, head));
  uint64_t offset = head.size();
  for (const std::span<const uint8_t> data : data_) {
    RETURN_IF_ERROR(file->WriteAt(offset, data));
    offset += Padded(data.size());
  }
  return file->Commit();
}

}  // namespace sluice
