# Highway, the SIMD library, as target `hwy`: a system package >= 1.2 if there
# is one, else the source folder in SLUICE_HIGHWAY_SOURCE (./dev fetches and
# verifies one). Also the one list of SIMD targets that kernels are compiled for.
set(SLUICE_HIGHWAY_SOURCE "" CACHE PATH "Highway source folder, for systems without Highway >= 1.2")
if(NOT SLUICE_HIGHWAY_SOURCE)
  set(SLUICE_HIGHWAY_SOURCE "$ENV{SLUICE_HIGHWAY_SOURCE}" CACHE PATH "" FORCE)
endif()
set(SLUICE_TARGETS all CACHE STRING
  "SIMD targets: all (release), short (fast to compile), native (this machine's best, no dispatch)")
set_property(CACHE SLUICE_TARGETS PROPERTY STRINGS all short native)

if(NOT CMAKE_CROSSCOMPILING)
  find_package(hwy 1.2 QUIET CONFIG)
endif()
if(hwy_FOUND)
  message(STATUS "Highway ${hwy_VERSION} of the system")
  add_library(hwy INTERFACE)
  target_link_libraries(hwy INTERFACE hwy::hwy)
elseif(EXISTS "${SLUICE_HIGHWAY_SOURCE}/hwy/highway.h")
  message(STATUS "Highway from ${SLUICE_HIGHWAY_SOURCE}")
  # Five of its files; its own CMake project adds tests, contrib and install rules that we do not need.
  file(GLOB hwy_sources ${SLUICE_HIGHWAY_SOURCE}/hwy/*.cc)
  list(FILTER hwy_sources INCLUDE REGEX "/(abort|aligned_allocator|per_target|print|targets)\\.cc$")
  add_library(hwy STATIC ${hwy_sources})
  target_include_directories(hwy SYSTEM PUBLIC ${SLUICE_HIGHWAY_SOURCE})
  target_compile_definitions(hwy PUBLIC HWY_STATIC_DEFINE)
else()
  message(FATAL_ERROR "Highway >= 1.2 not found: run ./dev, or set SLUICE_HIGHWAY_SOURCE to its source folder")
endif()

# A kernel file costs seconds of compile time per target (HACKING.md has the
# numbers), so every target here has to earn its place:
#   AVX2       the floor on x86: what has no FMA cannot give the same bytes
#   AVX3_DL    Ice Lake and later: VNNI                AVX3_ZEN4  plus bf16
#   AVX3_SPR   Sapphire Rapids: plus fp16
#   NEON_WITHOUT_AES  every ARMv8       NEON_BF16  plus dot products and bf16; clang or GCC >= 13.2
# Left out: plain AVX3 (Skylake runs AVX2), NEON (adds only AES), all of SVE (its
# types cannot stand in the arrays that are our register tiles).
if(SLUICE_TARGETS STREQUAL all)
  set(x86_targets AVX2 AVX3_DL AVX3_ZEN4 AVX3_SPR)
  set(arm_targets NEON_WITHOUT_AES NEON_BF16)
elseif(SLUICE_TARGETS STREQUAL short)
  set(x86_targets AVX2 AVX3_ZEN4)
  set(arm_targets NEON_WITHOUT_AES NEON_BF16)
elseif(SLUICE_TARGETS STREQUAL native)
  include(cmake/native_target.cmake)
  sluice_native_target(native_target)
  set(x86_targets ${native_target})
  set(arm_targets ${native_target})
else()
  message(FATAL_ERROR "SLUICE_TARGETS: expected all, short or native, found ${SLUICE_TARGETS}")
endif()
message(STATUS "SIMD targets: ${SLUICE_TARGETS}")

# Defined for everything that sees a Highway header: its dispatch tables are inline code and must agree.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  list(TRANSFORM arm_targets PREPEND HWY_ OUTPUT_VARIABLE targets)
  set(baseline)  # what the compiler's flags say
  if(SLUICE_TARGETS STREQUAL native)
    set(baseline HWY_BASELINE_TARGETS=${targets})
  endif()
else()
  list(TRANSFORM x86_targets PREPEND HWY_ OUTPUT_VARIABLE targets)
  list(GET targets 0 first)
  # The kernels' baseline, not the program's: code outside them stays plain x86-64 and can say what is missing.
  set(baseline HWY_BASELINE_TARGETS=${first})
endif()
list(JOIN targets "|" targets)
add_compile_definitions("HWY_DISABLED_TARGETS=~(${targets})" ${baseline})
if(SLUICE_TARGETS STREQUAL native)
  add_compile_definitions(HWY_COMPILE_ONLY_STATIC)
endif()
