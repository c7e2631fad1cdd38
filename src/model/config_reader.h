// Reads one architecture's metadata ("<arch>.key") into checked numbers. The
// first error sticks: read everything, then ask status().
#ifndef SLUICE_SRC_MODEL_CONFIG_READER_H_
#define SLUICE_SRC_MODEL_CONFIG_READER_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "src/base/status.h"
#include "src/file/gguf.h"
#include "src/model/config.h"

namespace sluice {

class ConfigReader {
 public:
  explicit ConfigReader(const Gguf& gguf);

  const Gguf& gguf() const { return gguf_; }
  const std::string& architecture() const { return architecture_; }
  const Status& status() const { return status_; }
  void Fail(StatusCode code, std::string message);

  bool Has(std::string_view key) const;
  // Says of itself that a token sees those behind it, as BERT and its kin do.
  bool IsEncoder() const;
  // An integer in [least, most]; absent: `fallback`, or an error when there is none to give.
  size_t Count(std::string_view key, size_t least, size_t most);
  size_t CountOr(std::string_view key, size_t fallback, size_t least, size_t most);
  // A finite number; Positive: and above zero.
  float FloatOr(std::string_view key, float fallback);
  float Positive(std::string_view key);
  float PositiveOr(std::string_view key, float fallback);
  bool BoolOr(std::string_view key, bool fallback);
  std::string StringOr(std::string_view key, std::string fallback);

 private:
  std::string Key(std::string_view key) const { return architecture_ + "." + std::string(key); }

  const Gguf& gguf_;
  std::string architecture_;
  Status status_;
};

// Fills the fields that every decoder's metadata has in common: sizes, heads, eps of the config's
// norm kind, rope with its scaling. Set norm and rope.style first. The attention scale is 1 /
// sqrt(key_dim).
void ReadDecoderConfig(ConfigReader& reader, Config* config);
// Expert counts and sizes, when the file has experts; routing and normalising are the caller's.
void ReadExperts(ConfigReader& reader, Config* config);
// Marks the layers for which is_windowed(layer) as sliding-window layers, if the file gives a
// window.
template <class F>
void ReadWindow(ConfigReader& reader, Config* config, const F& is_windowed) {
  config->window = reader.CountOr("attention.sliding_window", 0, 0, size_t{1} << 30);
  for (size_t i = 0; i < config->layers; ++i) config->windowed[i] = is_windowed(i);
}

}  // namespace sluice
#endif  // SLUICE_SRC_MODEL_CONFIG_READER_H_
