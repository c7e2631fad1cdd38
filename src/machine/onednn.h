// oneDNN as a kernel for F32, F16 and BF16. Its sums are cut as it likes, so the bytes of a row
// depend on the rows beside it: only for --relaxed (relaxed_matmul.h decides). Any worker, each
// with its own primitives and buffers; a call uses the calling thread alone.
#ifndef SLUICE_SRC_MACHINE_ONEDNN_H_
#define SLUICE_SRC_MACHINE_ONEDNN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "quant/format.h"
#include "src/base/status.h"

namespace sluice {

class OneDnn {
 public:
  // What oneDNN is given as weights.
  //   kInPlace  F32 as it lies: rows, or panels as a batch of narrow matrices
  //   kFloats   F32, F16 or BF16, some rows at a time widened into scratch
  //   kBF16     BF16 as its rows hold it; the inputs are rounded to BF16 too
  enum class Form : uint8_t { kInPlace, kFloats, kBF16 };
  static constexpr Form kForms[] = {Form::kInPlace, Form::kFloats, Form::kBF16};
  // Output rows of one of its products: what of a matrix is in scratch at a time. On AVX2 any width
  // from 32 to 2048 is as fast; tiles of AMX want some.
  static constexpr size_t kColumns = 128;

  // For workers 0 .. workers - 1; null: this build has no oneDNN.
  static std::unique_ptr<OneDnn> Create(size_t workers);
  static bool Offers(const Format& format, Form form);

  virtual ~OneDnn() = default;
  // What format.matmul(args) computes, nearly; args.row_begin is 0, args.scratch is not used. An
  // error (this CPU has no such product, memory) leaves args.out half written.
  virtual Status Multiply(size_t worker, const Format& format, Form form,
                          const MatMulArgs& args) = 0;
  // Version and implementation of that worker's last product: "2.6.3 gemm:jit".
  virtual std::string Implementation(size_t worker) const = 0;
  // Primitives that the worker holds.
  virtual size_t Cached(size_t worker) const = 0;
};

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_ONEDNN_H_
