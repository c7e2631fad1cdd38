# Highway (the SIMD library) as target `hwy`: a system package >= 1.2, or the
# source folder in SLUICE_HIGHWAY_SOURCE (./dev fetches and verifies one).
# Also the one list of SIMD targets that kernels are compiled for.
set(SLUICE_HIGHWAY_SOURCE "$ENV{SLUICE_HIGHWAY_SOURCE}" CACHE PATH "Highway source tree, if the system has none")

find_package(hwy 1.2 QUIET CONFIG)
if(hwy_FOUND)
  add_library(hwy INTERFACE)
  target_link_libraries(hwy INTERFACE hwy::hwy)
elseif(SLUICE_HIGHWAY_SOURCE)
  set(HWY_ENABLE_TESTS OFF CACHE BOOL "" FORCE)
  set(HWY_ENABLE_EXAMPLES OFF CACHE BOOL "" FORCE)
  set(HWY_ENABLE_CONTRIB OFF CACHE BOOL "" FORCE)
  set(HWY_ENABLE_INSTALL OFF CACHE BOOL "" FORCE)
  add_subdirectory(${SLUICE_HIGHWAY_SOURCE} ${CMAKE_BINARY_DIR}/highway EXCLUDE_FROM_ALL SYSTEM)
else()
  message(FATAL_ERROR "Highway >= 1.2 not found: run ./dev, or set SLUICE_HIGHWAY_SOURCE to its source folder")
endif()

if(SLUICE_STATIC_TARGET)
  add_compile_options(-march=native)
  add_compile_definitions(HWY_COMPILE_ONLY_STATIC)
endif()
