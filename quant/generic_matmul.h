// Matrix products for formats without a kernel of their own, through their
// scalar codes or decoder. Same arithmetic, same bytes, slower. Called through
// Format::matmul, like all kernels: any thread, MatMulArgs::scratch is its own.
#ifndef SLUICE_QUANT_GENERIC_MATMUL_H_
#define SLUICE_QUANT_GENERIC_MATMUL_H_

#include "quant/format.h"

namespace sluice {

// kInt8 formats without panels: rows in place, through Format::codes.
void MatMulCodes(const Format& format, const MatMulArgs& args);
// kF32 formats: rows in place, through Format::decode.
void MatMulDecoded(const Format& format, const MatMulArgs& args);

}  // namespace sluice
#endif  // SLUICE_QUANT_GENERIC_MATMUL_H_
