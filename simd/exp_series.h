// exp(x) of doubles for x <= 0, as numbers: x = n ln 2 + r, |r| <= ln 2 / 2, and a Taylor series of
// r of which the first term left out is below 1e-16. Two forms compute it, vectors
// (simd/vector_ops.cc) and one number (engine/candidates.cc); nothing is fused in either, so they
// have the same bits.
#ifndef SLUICE_SIMD_EXP_SERIES_H_
#define SLUICE_SIMD_EXP_SERIES_H_

namespace sluice::exp_series {

inline constexpr double kLog2E = 0x1.71547652b82fep0;
// Their sum is ln 2; n * kLn2High is exact.
inline constexpr double kLn2High = 0x1.62e42fefa3800p-1, kLn2Low = 0x1.ef35793c76730p-45;
// Adding it rounds to an integer, kept in the low bits.
inline constexpr double kShift = 0x1.8p52;
// Below it the result is 0: exp(-700) is 1e-304, nothing beside the largest weight, which is 1.
inline constexpr double kLowest = -700;
// 1/13! ... 1/0!
inline constexpr double kInverseFactorials[] = {1 / 6227020800.0,
                                                1 / 479001600.0,
                                                1 / 39916800.0,
                                                1 / 3628800.0,
                                                1 / 362880.0,
                                                1 / 40320.0,
                                                1 / 5040.0,
                                                1 / 720.0,
                                                1 / 120.0,
                                                1 / 24.0,
                                                1 / 6.0,
                                                1 / 2.0,
                                                1.0,
                                                1.0};

}  // namespace sluice::exp_series
#endif  // SLUICE_SIMD_EXP_SERIES_H_
