// Panels are lossless, and their bits lie where quant/panels.h draws them.
#include "quant/panels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <vector>

#include "quant/format.h"
#include "quant/half.h"
#include "quant/values16.h"

namespace sluice {
namespace {

constexpr size_t kBlocks = 3;

// 16 rows of random bytes, at an odd address, and their panel.
struct Packed {
  explicit Packed(const Format& f, size_t blocks = kBlocks)
      : format(f), row_bytes(blocks * f.block_bytes), bytes(16 * row_bytes + 1) {
    std::mt19937 random(f.gguf_type + 1);
    for (uint8_t& b : bytes) b = static_cast<uint8_t>(random());
    const size_t panel_bytes = (blocks * f.panel_block_bytes + 63) / 64 * 64;
    panel.reset(static_cast<uint8_t*>(std::aligned_alloc(64, panel_bytes)));
    const uint8_t* rows[16];
    for (size_t r = 0; r < 16; ++r) rows[r] = Row(r);
    f.to_panel(rows, blocks, panel.get());
  }
  uint8_t* Row(size_t r) { return bytes.data() + 1 + r * row_bytes; }
  template <class Panel>
  const Panel& At(size_t block) const {
    return reinterpret_cast<const Panel*>(panel.get())[block];
  }

  struct Free {
    void operator()(uint8_t* p) const { std::free(p); }
  };
  const Format& format;
  size_t row_bytes;
  std::vector<uint8_t> bytes;
  std::unique_ptr<uint8_t, Free> panel;
};

TEST(Panels, RoundTripIsLossless) {
  size_t formats = 0;
  for (const Format* f : Formats()) {
    if (!f->to_panel) continue;
    SCOPED_TRACE(f->name);
    ++formats;
    Packed packed(*f);
    std::vector<uint8_t> back(packed.bytes.size(), 0xa5);
    back[0] = packed.bytes[0];
    uint8_t* rows[16];
    for (size_t r = 0; r < 16; ++r) rows[r] = back.data() + 1 + r * packed.row_bytes;
    f->from_panel(packed.panel.get(), kBlocks, rows);
    EXPECT_EQ(back, packed.bytes);
  }
  EXPECT_GE(formats, 8u);
}

// ---- the picture, read bit by bit -------------------------------------------------------------

int Nibble(const uint8_t (*q)[64], size_t r, size_t k) {
  const size_t g = k / 4;
  return q[g % 4][4 * r + k % 4] >> (g < 4 ? 0 : 4) & 15;
}
int Fifth(const uint8_t* h, size_t r, size_t k) { return (h[4 * r + k % 4] >> (k / 4) & 1) << 4; }
int Bits45(const uint8_t (*h)[64], size_t r, size_t k) {
  const size_t g = k / 4;
  return (h[g / 4][4 * r + k % 4] >> (2 * (g % 4)) & 3) << 4;
}

// Compares every code of every row with `code(block, unit, r, k)`, and the scales and minimums
// with `scale` and `min` of (block, unit, r).
template <class Code, class Scale, class Min>
void ExpectPicture(const char* name, Code code, Scale scale, Min min) {
  SCOPED_TRACE(name);
  const Format* f = FindFormat(name);
  ASSERT_NE(f, nullptr);
  Packed packed(*f);
  const size_t units = f->block_values / 32;
  for (size_t i = 0; i < kBlocks * units; ++i) {
    for (size_t r = 0; r < 16; ++r) {
      Codes32 c;
      f->codes(packed.Row(r), i, &c);
      for (size_t k = 0; k < 32; ++k) {
        ASSERT_EQ(c.u[k], code(packed, i / units, i % units, r, k)) << i << " " << r << " " << k;
      }
      const auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
      EXPECT_TRUE(same(c.scale, scale(packed, i / units, i % units, r))) << i << " " << r;
      EXPECT_TRUE(same(c.min, min(packed, i / units, i % units, r))) << i << " " << r;
    }
  }
}

template <class Panel>
float D(const Packed& p, size_t b, size_t, size_t r) {
  return F32FromF16(p.At<Panel>(b).d[r]);
}
template <class Panel>
float MinusM(const Packed& p, size_t b, size_t, size_t r) {
  return -F32FromF16(p.At<Panel>(b).m[r]);
}
template <class Panel>
float DTimesSc(const Packed& p, size_t b, size_t s, size_t r) {
  return F32FromF16(p.At<Panel>(b).d[r]) * p.At<Panel>(b).sc[s][r];
}
template <class Panel>
float DMinTimesMn(const Packed& p, size_t b, size_t s, size_t r) {
  return F32FromF16(p.At<Panel>(b).dmin[r]) * p.At<Panel>(b).mn[s][r];
}
float None(const Packed&, size_t, size_t, size_t) { return 0; }

TEST(Panels, BlocksOf32LieAsPictured) {
  ExpectPicture(
      "Q4_0",
      [](const Packed& p, size_t b, size_t, size_t r, size_t k) {
        return Nibble(p.At<PanelQ4_0>(b).q, r, k);
      },
      D<PanelQ4_0>, None);
  ExpectPicture(
      "Q4_1",
      [](const Packed& p, size_t b, size_t, size_t r, size_t k) {
        return Nibble(p.At<PanelQ4_1>(b).q, r, k);
      },
      D<PanelQ4_1>, MinusM<PanelQ4_1>);
  ExpectPicture(
      "Q5_0",
      [](const Packed& p, size_t b, size_t, size_t r, size_t k) {
        return Nibble(p.At<PanelQ5_0>(b).q, r, k) | Fifth(p.At<PanelQ5_0>(b).h, r, k);
      },
      D<PanelQ5_0>, None);
  ExpectPicture(
      "Q5_1",
      [](const Packed& p, size_t b, size_t, size_t r, size_t k) {
        return Nibble(p.At<PanelQ5_1>(b).q, r, k) | Fifth(p.At<PanelQ5_1>(b).h, r, k);
      },
      D<PanelQ5_1>, MinusM<PanelQ5_1>);
  ExpectPicture(
      "Q8_0",
      [](const Packed& p, size_t b, size_t, size_t r, size_t k) {
        return p.At<PanelQ8_0>(b).q[k / 4][4 * r + k % 4] + 128;
      },
      D<PanelQ8_0>, None);
  ExpectPicture(
      "IQ4_NL",
      [](const Packed& p, size_t b, size_t, size_t r, size_t k) {
        return kIQ4Values[Nibble(p.At<PanelIQ4_NL>(b).q, r, k)] + 128;
      },
      D<PanelIQ4_NL>, None);
  ExpectPicture(
      "MXFP4",
      [](const Packed& p, size_t b, size_t, size_t r, size_t k) {
        return kE2M1Doubled[Nibble(p.At<PanelMXFP4>(b).q, r, k)] + 12;
      },
      [](const Packed& p, size_t b, size_t, size_t r) {
        return F32FromE8M0Half(p.At<PanelMXFP4>(b).e[r]);
      },
      None);
}

TEST(Panels, BlocksOf256LieAsPictured) {
  ExpectPicture(
      "Q4_K",
      [](const Packed& p, size_t b, size_t s, size_t r, size_t k) {
        return Nibble(p.At<PanelQ4_K>(b).q[s], r, k);
      },
      DTimesSc<PanelQ4_K>, DMinTimesMn<PanelQ4_K>);
  ExpectPicture(
      "Q5_K",
      [](const Packed& p, size_t b, size_t s, size_t r, size_t k) {
        const PanelQ5_K::Unit& unit = p.At<PanelQ5_K>(b).unit[s];
        return Nibble(unit.q, r, k) | Fifth(unit.h, r, k);
      },
      DTimesSc<PanelQ5_K>, DMinTimesMn<PanelQ5_K>);
  ExpectPicture(
      "Q6_K",
      [](const Packed& p, size_t b, size_t s, size_t r, size_t k) {
        const PanelQ6_K::Unit& unit = p.At<PanelQ6_K>(b).unit[s];
        return Nibble(unit.q, r, k) | Bits45(unit.h, r, k);
      },
      D<PanelQ6_K>, None);
  ExpectPicture(
      "IQ4_XS",
      [](const Packed& p, size_t b, size_t s, size_t r, size_t k) {
        return kIQ4Values[Nibble(p.At<PanelIQ4_XS>(b).q[s], r, k)] + 128;
      },
      [](const Packed& p, size_t b, size_t s, size_t r) {
        return F32FromF16(p.At<PanelIQ4_XS>(b).d[r]) * p.At<PanelIQ4_XS>(b).ls[s][r];
      },
      None);
}

TEST(Panels, SubScalesOfQ6KLieByHalfUnit) {
  const Format* f = FindFormat("Q6_K");
  Packed packed(*f);
  for (size_t i = 0; i < kBlocks * 8; ++i) {
    for (size_t r = 0; r < 16; ++r) {
      Codes32 c;
      f->codes(packed.Row(r), i, &c);
      for (size_t h = 0; h < 2; ++h) {
        EXPECT_EQ(c.sub[h], packed.At<PanelQ6_K>(i / 8).sc[i % 8 * 2 + h][r]);
      }
    }
  }
}

TEST(Panels, FloatsLieByColumn) {
  constexpr size_t kColumns = 77;
  Packed f32(*FindFormat("F32"), kColumns), f16(*FindFormat("F16"), kColumns);
  Packed bf16(*FindFormat("BF16"), kColumns);
  const uint16_t* const last = reinterpret_cast<const uint16_t*>(&bf16.At<PanelBF16>(kColumns / 2));
  for (size_t k = 0; k < kColumns; ++k) {
    for (size_t r = 0; r < 16; ++r) {
      EXPECT_EQ(memcmp(&f32.At<PanelF32>(k).w[r], f32.Row(r) + 4 * k, 4), 0);
      EXPECT_EQ(memcmp(&f16.At<PanelF16>(k).w[r], f16.Row(r) + 2 * k, 2), 0);
      const uint16_t* const pair = bf16.At<PanelBF16>(k / 2).w[r];
      EXPECT_EQ(memcmp(k + 1 < kColumns ? pair + k % 2 : last + r, bf16.Row(r) + 2 * k, 2), 0);
    }
  }
}

}  // namespace
}  // namespace sluice
