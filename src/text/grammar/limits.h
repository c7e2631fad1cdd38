// What a grammar may cost. It comes with a request, so every size has a bound;
// what goes beyond one is refused, or in a running sequence left out of the
// language, never followed.
#ifndef SLUICE_SRC_TEXT_GRAMMAR_LIMITS_H_
#define SLUICE_SRC_TEXT_GRAMMAR_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace sluice::grammar {

// Compiling.
inline constexpr size_t kMaxSourceBytes = size_t{1} << 20;
inline constexpr size_t kMaxRules = 20'000;
inline constexpr size_t kMaxNesting = 200;  // parentheses of a grammar or pattern
inline constexpr size_t kMaxSchemaDepth = 100;
inline constexpr size_t kMaxExpressions = 400'000;
inline constexpr size_t kMaxNodes = 200'000;
inline constexpr uint32_t kMaxRepeat = 1'000'000;
// A rule of at most this many expressions is written out where it is called, while all that is
// written out stays below the second bound.
inline constexpr size_t kInlineExpressions = 64;
inline constexpr size_t kMaxInlined = 50'000;
// A counted repetition of at most this many expressions in all is written out.
inline constexpr size_t kUnrolledExpressions = 16;

// Running. Dropping a way to go on keeps the text in the language: every way kept can be finished.
inline constexpr size_t kMaxClosure = 20'000;        // positions at once
inline constexpr uint64_t kMaxMaskWork = 6'000'000;  // steps for one mask; some 20 ms
inline constexpr size_t kMaxStateBytes = size_t{8} << 20;
inline constexpr size_t kMaxMaskBytes = size_t{16} << 20;
inline constexpr size_t kKeptGrammars = 8;      // whose masks a vocabulary keeps
inline constexpr size_t kMaxPieceBytes = 1024;  // longer tokens are never allowed

}  // namespace sluice::grammar
#endif  // SLUICE_SRC_TEXT_GRAMMAR_LIMITS_H_
