// Hostile files: a valid small GGUF is cut and its fields are overwritten, in
// the parser and through a mapped file. Nothing may crash, hang or be read
// outside the file; every error is one line. Worth running under sanitizers.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "src/base/random.h"
#include "src/file/gguf.h"
#include "src/file/gguf_directory.h"
#include "tests/base/temp_folder.h"
#include "tests/file/small_gguf.h"

namespace sluice {
namespace {

using Bytes = std::vector<uint8_t>;

uint64_t Sum(std::span<const uint8_t> bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), uint64_t{0});
}

// Uses everything that parsing promised: every tensor byte, every value as every type.
uint64_t TouchAll(const Gguf& gguf) {
  uint64_t sum = gguf.ResidentBytes();
  for (const GgufTensor& tensor : gguf.tensors()) {
    sum += Sum({tensor.data, tensor.bytes}) + tensor.Elements();
    gguf.WillNeed(tensor);
    gguf.DontNeed(tensor);
    EXPECT_EQ(gguf.FindTensor(tensor.name), &tensor);
  }
  for (size_t i = 0; i < gguf.metadata_size(); ++i) {
    const std::string_view key = gguf.metadata_key(i);
    sum += Sum(gguf.metadata_value(i).bytes);
    sum += gguf.U64(key).ok() + gguf.I64(key).ok() + gguf.F64(key).ok() + gguf.Bool(key).ok() +
           gguf.String(key).ok() + gguf.Floats(key).ok() + gguf.Integers(key).ok();
    const auto texts = gguf.Strings(key);
    if (!texts.ok()) continue;
    for (const std::string_view text : *texts) sum += text.empty() ? 0 : text.back();
  }
  return sum;
}

void ExpectOneLine(const Status& status) {
  EXPECT_FALSE(status.message().empty());
  EXPECT_LT(status.message().size(), 500u) << status.message();
  for (char c : status.message()) EXPECT_GE(static_cast<uint8_t>(c), 0x20) << status.message();
}

// Parses from a heap copy of exactly this size, so that a sanitizer sees one byte too many.
// Returns whether the file was accepted.
bool Parse(const Bytes& bytes) {
  const std::unique_ptr<uint8_t[]> exact(new uint8_t[bytes.size()]);
  std::copy(bytes.begin(), bytes.end(), exact.get());
  const auto directory = ParseGgufDirectory({exact.get(), bytes.size()});
  if (!directory.ok()) {
    ExpectOneLine(directory.status());
    return false;
  }
  uint64_t sum = 0;
  for (const GgufEntry& entry : directory->metadata) sum += Sum(entry.value.bytes) + entry.key[0];
  for (const GgufTensor& tensor : directory->tensors) {
    EXPECT_GE(tensor.data, exact.get());
    EXPECT_LE(tensor.data + tensor.bytes, exact.get() + bytes.size());
    sum += Sum({tensor.data, tensor.bytes});
  }
  return sum != 1;  // uses the sum
}

class MutationTest : public testing::Test {
 protected:
  void Open(const Bytes& bytes) {
    WriteFile(folder_.path("m.gguf"), bytes);
    const auto gguf = Gguf::Open(folder_.path("m.gguf"));
    if (!gguf.ok()) return ExpectOneLine(gguf.status());
    EXPECT_NE(TouchAll(**gguf), 0u);
  }

  ~MutationTest() override {
    // A guard against a hang or a wild reservation, far above what the test takes.
    const auto elapsed = std::chrono::steady_clock::now() - start_;
    EXPECT_LT(std::chrono::duration<double>(elapsed).count(), 120);
    struct rusage after{};
    getrusage(RUSAGE_SELF, &after);
    EXPECT_LT(after.ru_maxrss - before_.ru_maxrss, 256 << 10) << "KiB more than before";
  }

  MutationTest() { getrusage(RUSAGE_SELF, &before_); }

  const TempFolder folder_;
  const Bytes valid_ = SmallGguf().Bytes();
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  struct rusage before_{};
};

TEST_F(MutationTest, TheValidFileIsAccepted) {
  EXPECT_TRUE(Parse(valid_));
  Open(valid_);
}

TEST_F(MutationTest, CutAnywhereIsAnError) {
  // The last tensor ends this much before the padded end.
  const size_t end = valid_.size() - (224 - 204);
  for (size_t size = 0; size < end; ++size) {
    EXPECT_FALSE(Parse(Bytes(valid_.begin(), valid_.begin() + size))) << size;
  }
  EXPECT_TRUE(Parse(Bytes(valid_.begin(), valid_.begin() + end)));
}

TEST_F(MutationTest, CutAt200PlacesAsAFile) {
  for (size_t i = 0; i < 200; ++i) {
    const size_t size = i * valid_.size() / 200;
    Open(Bytes(valid_.begin(), valid_.begin() + size));
  }
}

constexpr uint64_t kValues[] = {0,
                                1,
                                2,
                                31,
                                255,
                                (1u << 31) - 1,
                                1u << 31,
                                UINT32_MAX - 1,
                                UINT32_MAX,
                                uint64_t{1} << 32,
                                (uint64_t{1} << 63) - 1,
                                uint64_t{1} << 63,
                                UINT64_MAX - 32,
                                UINT64_MAX - 1,
                                UINT64_MAX};

// Every 4- and 8-byte window before the tensor data, whatever field it hits: all fields of the
// header, lengths, types, counts, dimensions, offsets and everything in between.
TEST_F(MutationTest, EveryWindowOfTheHeadTakesEveryValue) {
  const size_t head = valid_.size() - (256 + 192 + 224);
  for (size_t at = 0; at + 8 <= head; ++at) {
    for (uint64_t value : kValues) {
      Bytes bad = valid_;
      Put(&bad, at, value);
      Parse(bad);
      bad = valid_;
      Put(&bad, at, static_cast<uint32_t>(value));
      Parse(bad);
    }
  }
}

TEST_F(MutationTest, HeaderFieldsAsAFile) {
  const size_t entry = After(valid_, "matrix.weight");
  // version, tensors, entries, first key length, then of a tensor: dims, shape, type, offset.
  for (size_t at : {size_t{4}, size_t{8}, size_t{16}, size_t{24}, entry - 13 - 8, entry, entry + 4,
                    entry + 12, entry + 20, entry + 24}) {
    for (uint64_t value : kValues) {
      Bytes bad = valid_;
      const bool is_u32 = at == 4 || at == entry || at == entry + 20;
      if (is_u32) Put(&bad, at, static_cast<uint32_t>(value));
      if (!is_u32) Put(&bad, at, value);
      Open(bad);
    }
  }
}

TEST_F(MutationTest, RandomDamage) {
  for (uint64_t round = 0; round < 20000; ++round) {
    Bytes bad = valid_;
    const uint64_t flips = 1 + RandomBits(1, 0, round) % 4;
    for (uint64_t flip = 0; flip < flips; ++flip) {
      const uint64_t bits = RandomBits(2, flip, round);
      bad[(bits >> 8) % bad.size()] = static_cast<uint8_t>(bits);
    }
    if (RandomBits(3, 0, round) % 4 == 0) bad.resize(RandomBits(4, 0, round) % bad.size());
    Parse(bad);
  }
}

// Names that all share a hash bucket or a long prefix must not take quadratic time.
TEST_F(MutationTest, ManyNamesStayFast) {
  GgufWriter writer;
  const std::string prefix(40, 'p');
  for (int i = 0; i < 200000; ++i) writer.AddBool(prefix + std::to_string(i), true);
  EXPECT_TRUE(Parse(writer.Bytes()));
}

// S06: sizes within one alignment of 2^64 must not wrap to small ones.
TEST_F(MutationTest, SizesNextToTheLimitDoNotWrap) {
  const size_t entry = After(valid_, "norm.weight");
  for (uint64_t k : {UINT64_MAX / 4, UINT64_MAX / 4 - 7, uint64_t{INT64_MAX}, UINT64_MAX / 4 + 1}) {
    Bytes bad = valid_;
    Put(&bad, entry + 4, k);
    EXPECT_FALSE(Parse(bad)) << k;
  }
}

}  // namespace
}  // namespace sluice
