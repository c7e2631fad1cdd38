// Row-wise float kernels for one thread: norms, activation functions, rope,
// soft-max. Plain pointers and counts. Sums use 16 fixed lanes and one fixed
// tree, exp is one polynomial, so the bytes are the same on every target with FMA.
#ifndef SLUICE_SIMD_VECTOR_OPS_H_
#define SLUICE_SIMD_VECTOR_OPS_H_

#include <stddef.h>

namespace sluice {

// out = x / sqrt(mean(x^2) + eps) * weight; weight may be null (ones); out may be x.
void RmsNorm(const float* x, const float* weight, float eps, size_t n, float* out);
// out = (x - mean) / sqrt(var + eps) * weight + bias; weight and bias may be null; out may be x.
void LayerNorm(const float* x, const float* weight, const float* bias, float eps, size_t n,
               float* out);

// Feed-forward gates, element by element: out = f(gate) * up; up may be null (then out = f(gate));
// out may be gate.
void SiluMul(const float* gate, const float* up, size_t n, float* out);
void GeluTanhMul(const float* gate, const float* up, size_t n,
                 float* out);  // tanh form, exact (no table)
void GeluErfMul(const float* gate, const float* up, size_t n, float* out);
void ReluMul(const float* gate, const float* up, size_t n, float* out);
// gpt-oss: gate <= limit, up within +-limit, (up + 1) * gate * sigmoid(alpha * gate).
void ClampedSwiGlu(const float* gate, const float* up, float alpha, float limit, size_t n,
                   float* out);

void Add(const float* x, size_t n, float* y);                     // y += x
void AddScaled(const float* x, float scale, size_t n, float* y);  // y = fma(scale, x, y)
void Scale(float scale, size_t n, float* x);                      // x *= scale
void SoftCap(float cap, size_t n, float* x);                      // x = cap * tanh(x / cap)

// Rotates the first 2 * pairs values of one head in place, cos[i] and sin[i] for pair i.
void RopeHalves(float* head, const float* cos, const float* sin,
                size_t pairs);  // pairs (i, i + pairs)
void RopeAdjacent(float* head, const float* cos, const float* sin,
                  size_t pairs);  // pairs (2i, 2i + 1)

// x = exp(x - max) / sum, in place.
void SoftMax(float* x, size_t n);
float Sigmoid(float x);
// log(sum(exp(x))), max subtracted first, accumulated in double. n >= 1.
double LogSumExp(const float* x, size_t n);
// sums[b] = the sum of exp(x[i] / divisor - top) over the 32 values of block b (fewer in the last),
// in double but for the quotient, a float that is at most top; NaN counts nothing. divisor > 0. n
// >= 1.
void ExpSumsOfBlocks(const float* x, size_t n, float divisor, float top, double* sums);
// Index of the largest value, the lowest on ties; NaN is never chosen. n >= 1.
size_t ArgMax(const float* x, size_t n);

}  // namespace sluice
#endif  // SLUICE_SIMD_VECTOR_OPS_H_
