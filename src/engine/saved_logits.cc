#include "src/engine/saved_logits.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "simd/vector_ops.h"

namespace sluice {
namespace {

constexpr float kReach = 16;  // nats below the most likely token
constexpr float kSteps = 65535;
constexpr size_t kHead = 4;  // two floats in front of a row, in uint16

template <class T>
std::span<const uint8_t> Bytes(std::span<const T> values) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size_bytes()};
}

}  // namespace

Result<std::unique_ptr<SavedLogits>> SavedLogits::Create(const std::string& path, size_t vocab,
                                                         size_t window,
                                                         std::span<const int32_t> tokens) {
  std::unique_ptr<SavedLogits> saved(new SavedLogits);
  ASSIGN_OR_RETURN(saved->file_, AtomicFile::Create(path));
  saved->row_.resize(kHead + (vocab + 1) / 2 * 2);
  const int32_t sizes[] = {static_cast<int32_t>(window), static_cast<int32_t>(vocab),
                           static_cast<int32_t>(tokens.size() / window)};
  const char magic[] = {'_', 'l', 'o', 'g', 'i', 't', 's', '_'};
  const auto append = [&](std::span<const uint8_t> bytes) {
    const uint64_t at = saved->end_;
    saved->end_ += bytes.size();
    return saved->file_->WriteAt(at, bytes);
  };
  RETURN_IF_ERROR(append(Bytes<char>(magic)));
  RETURN_IF_ERROR(append(Bytes<int32_t>(sizes)));
  RETURN_IF_ERROR(append(Bytes<int32_t>(tokens.first(tokens.size() / window * window))));
  return saved;
}

Status SavedLogits::Add(std::span<const float> logits) {
  const float most = *std::max_element(logits.begin(), logits.end());
  const float least = std::max(*std::min_element(logits.begin(), logits.end()), most - kReach);
  const float step = (most - least) / kSteps;
  const auto lowest =
      static_cast<float>(static_cast<double>(least) - LogSumExp(logits.data(), logits.size()));
  std::memcpy(&row_[0], &step, sizeof(step));
  std::memcpy(&row_[2], &lowest, sizeof(lowest));
  for (size_t i = 0; i < logits.size(); ++i) {
    const float u = step > 0 ? std::round((logits[i] - least) / step) : 0;
    row_[kHead + i] = static_cast<uint16_t>(std::clamp(u, 0.0f, kSteps));
  }
  const std::span<const uint8_t> bytes = Bytes<uint16_t>(row_);
  RETURN_IF_ERROR(file_->WriteAt(end_, bytes));
  end_ += bytes.size();
  return Status();
}

}  // namespace sluice
