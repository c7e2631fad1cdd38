// CHECK: our own bug. Always on, so keep it off the hot path; input never
// reaches one. DCHECK: the same in debug and sanitizer builds only.
#ifndef SLUICE_SRC_BASE_CHECK_H_
#define SLUICE_SRC_BASE_CHECK_H_

namespace sluice {
// Prints "file:line: CHECK failed: expression" to stderr and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* expression);
}  // namespace sluice

#define CHECK(condition)                                                                     \
  (__builtin_expect(!(condition), 0) ? ::sluice::CheckFailed(__FILE__, __LINE__, #condition) \
                                     : (void)0)
#ifdef NDEBUG
#define DCHECK(condition) ((void)sizeof(condition))
#else
#define DCHECK(condition) CHECK(condition)
#endif

#endif  // SLUICE_SRC_BASE_CHECK_H_
