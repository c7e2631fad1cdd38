#include "src/machine/onednn.h"

#include <algorithm>

#ifdef SLUICE_ONEDNN
#include <omp.h>

#include <exception>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>
#endif

namespace sluice {

bool OneDnn::Offers(const Format& format, Form form) {
  if (format.block_values != 1) return false;
  return form == Form::kFloats ||
         format.name == (form == Form::kBF16 ? std::string_view("BF16") : "F32");
}

#ifdef SLUICE_ONEDNN

namespace {

using Dims = dnnl::memory::dims;
using Type = dnnl::memory::data_type;

int64_t Signed(size_t n) { return static_cast<int64_t>(n); }

// A product of one shape: out[t][16 g + c] of `groups` matrices of `columns` output rows each.
struct ProductKey {
  Type type = Type::f32;  // of weights and inputs
  size_t tokens = 0, groups = 0, columns = 0, k = 0;
  // 0: weights are panels [groups][k][16]; otherwise rows [columns][k] so far apart.
  size_t row_stride = 0;
  size_t in_stride = 0, out_stride = 0;

  bool operator==(const ProductKey&) const = default;
};

class Product {
 public:
  Product(const ProductKey& key, const dnnl::engine& engine) : key(key) {
    const int64_t g = Signed(key.groups), t = Signed(key.tokens), n = Signed(key.columns),
                  k = Signed(key.k);
    const int64_t panel = Signed(kPanelRows), rows = Signed(key.row_stride);
    // One matrix of inputs for all groups.
    const Desc in({1, t, k}, key.type, Dims{t * Signed(key.in_stride), Signed(key.in_stride), 1});
    const Desc weights({g, k, n}, key.type,
                       key.row_stride ? Dims{rows * n, 1, rows} : Dims{k * panel, panel, 1});
    const Desc out({g, t, n}, Type::f32, Dims{panel, Signed(key.out_stride), 1});
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc d(engine, in, weights, out);
#else
    const dnnl::matmul::primitive_desc d(dnnl::matmul::desc(in, weights, out), engine);
#endif
    implementation = d.impl_info_str();
    matmul_ = dnnl::matmul(d);
    in_ = dnnl::memory(in, engine, nullptr);
    weights_ = dnnl::memory(weights, engine, nullptr);
    out_ = dnnl::memory(out, engine, nullptr);
  }

  void Run(dnnl::stream& stream, const void* in, const void* weights, float* out) {
    in_.set_data_handle(const_cast<void*>(in));
    weights_.set_data_handle(const_cast<void*>(weights));
    out_.set_data_handle(out);
    matmul_.execute(stream,
                    {{DNNL_ARG_SRC, in_}, {DNNL_ARG_WEIGHTS, weights_}, {DNNL_ARG_DST, out_}});
    stream.wait();
  }

  ProductKey key;
  std::string implementation;

 private:
  using Desc = dnnl::memory::desc;
  dnnl::matmul matmul_;
  dnnl::memory in_, weights_, out_;
};

// One worker's products and buffers.
class Lane {
 public:
  explicit Lane(const dnnl::engine& engine) : engine_(engine), stream_(engine) {}

  void Multiply(const Format& format, OneDnn::Form form, const MatMulArgs& args) {
    const bool bf16 = form == OneDnn::Form::kBF16;
    ProductKey key{
        bf16 ? Type::bf16 : Type::f32, args.tokens, 1, 0, args.k, args.k, args.k, args.out_stride};
    const void* const in = Inputs(args, &key);
    const bool in_place = form == OneDnn::Form::kInPlace || (bf16 && !args.panels);
    if (in_place && args.panels) return MultiplyPanels(key, in, args);
    for (size_t row = 0; row < args.row_end; row += OneDnn::kColumns) {
      key.columns = std::min(OneDnn::kColumns, args.row_end - row);
      const void* const weights =
          in_place ? args.weights + row * format.RowBytes(args.k) : Rows(format, args, row, &key);
      Run(key, in, weights, args.out + row);
    }
  }

  const std::string& implementation() const { return implementation_; }
  size_t cached() const { return products_.size(); }

 private:
  // Shapes are few (the model's, times the chunk and what is left of a prompt), except in a
  // mixture, where every expert gets another number of tokens.
  static constexpr size_t kMostProducts = 256;

  void Run(const ProductKey& key, const void* in, const void* weights, float* out) {
    auto found = std::find_if(products_.begin(), products_.end(),
                              [&](const Product& p) { return p.key == key; });
    if (found == products_.end()) {
      Product made(key, engine_);
      if (products_.size() < kMostProducts) {
        found = products_.insert(products_.end(), std::move(made));
      } else {
        found = products_.begin() + static_cast<std::ptrdiff_t>(oldest_++ % kMostProducts);
        *found = std::move(made);
      }
    }
    found->Run(stream_, in, weights, out);
    implementation_ = found->implementation;
  }

  // A ragged last panel is a narrower matrix.
  void MultiplyPanels(ProductKey key, const void* in, const MatMulArgs& args) {
    key.row_stride = 0;
    const size_t whole = args.row_end / kPanelRows, rest = args.row_end % kPanelRows;
    const size_t panel_bytes = args.k * kPanelRows * sizeof(float);
    if (whole > 0) {
      key.groups = whole;
      key.columns = kPanelRows;
      Run(key, in, args.weights, args.out);
    }
    if (rest > 0) {
      key.groups = 1;
      key.columns = rest;
      Run(key, in, args.weights + whole * panel_bytes, args.out + whole * kPanelRows);
    }
  }

  // The inputs as the product wants them: picked rows side by side, rounded to its type.
  const void* Inputs(const MatMulArgs& args, ProductKey* key) {
    const float* rows = args.f32;
    key->in_stride = args.f32_stride;
    if (args.token_rows) {
      picked_.resize(args.tokens * args.k);
      for (size_t t = 0; t < args.tokens; ++t) {
        std::copy_n(args.f32 + static_cast<size_t>(args.token_rows[t]) * args.f32_stride, args.k,
                    picked_.data() + t * args.k);
      }
      rows = picked_.data();
      key->in_stride = args.k;
    }
    if (key->type == Type::f32) return rows;
    rounded_.resize(args.tokens * args.k);
    const Dims shape{Signed(args.tokens), Signed(args.k)};
    dnnl::memory from({shape, Type::f32, Dims{Signed(key->in_stride), 1}}, engine_,
                      const_cast<float*>(rows));
    dnnl::memory to({shape, Type::bf16, Dims{Signed(args.k), 1}}, engine_, rounded_.data());
    dnnl::reorder(from, to).execute(stream_, from, to);
    stream_.wait();
    key->in_stride = args.k;
    return rounded_.data();
  }

  // Rows [row, row + key->columns) in scratch: as floats, or, for bf16, as the file has them. A
  // line apart: rows a power of two apart fall into the same sets of the L1 cache.
  const void* Rows(const Format& format, const MatMulArgs& args, size_t row, ProductKey* key) {
    constexpr size_t kLine = 64;
    const bool decode = key->type == Type::f32;
    const size_t row_bytes = format.RowBytes(args.k), byte_stride = row_bytes + kLine;
    const size_t panels = (key->columns + kPanelRows - 1) / kPanelRows;
    key->row_stride = args.k + kLine / (decode ? sizeof(float) : format.block_bytes);
    if (decode) floats_.resize(key->columns * key->row_stride);
    if (args.panels) bytes_.resize((decode ? 1 : panels) * kPanelRows * byte_stride);
    for (size_t p = 0; p < panels; ++p) {
      uint8_t* rows[kPanelRows];
      for (size_t r = 0; args.panels && r < kPanelRows; ++r) {
        rows[r] = &bytes_[((decode ? 0 : p * kPanelRows) + r) * byte_stride];
      }
      if (args.panels) {
        const size_t panel = row / kPanelRows + p;
        format.from_panel(args.weights + panel * args.k * format.panel_block_bytes, args.k, rows);
      }
      const size_t first = p * kPanelRows, count = std::min(kPanelRows, key->columns - first);
      for (size_t r = 0; decode && r < count; ++r) {
        format.decode(args.panels ? rows[r] : args.weights + (row + first + r) * row_bytes, args.k,
                      &floats_[(first + r) * key->row_stride]);
      }
    }
    if (decode) return floats_.data();
    return bytes_.data();
  }

  const dnnl::engine& engine_;
  dnnl::stream stream_;
  std::vector<Product> products_;
  size_t oldest_ = 0;
  std::string implementation_;
  std::vector<float> picked_, floats_;
  std::vector<uint16_t> rounded_;
  std::vector<uint8_t> bytes_;
};

class LinkedOneDnn : public OneDnn {
 public:
  explicit LinkedOneDnn(size_t workers) : engine_(dnnl::engine::kind::cpu, 0) {
    for (size_t i = 0; i < workers; ++i) lanes_.push_back(std::make_unique<Lane>(engine_));
  }

  Status Multiply(size_t worker, const Format& format, Form form, const MatMulArgs& args) override {
    // Of this thread: our workers are the team, oneDNN must not start one of its own in each.
    omp_set_num_threads(1);
    try {
      lanes_[worker]->Multiply(format, form, args);
    } catch (const std::exception& e) {
      return Status(StatusCode::kUnsupported, std::string("oneDNN: ") + e.what());
    }
    return Status();
  }
  std::string Implementation(size_t worker) const override {
    const dnnl_version_t& v = *dnnl::version();
    return std::to_string(v.major) + "." + std::to_string(v.minor) + "." + std::to_string(v.patch) +
           " " + lanes_[worker]->implementation();
  }
  size_t Cached(size_t worker) const override { return lanes_[worker]->cached(); }

 private:
  const dnnl::engine engine_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace

std::unique_ptr<OneDnn> OneDnn::Create(size_t workers) {
  return std::make_unique<LinkedOneDnn>(workers);
}

#else

std::unique_ptr<OneDnn> OneDnn::Create(size_t) { return nullptr; }

#endif

}  // namespace sluice
