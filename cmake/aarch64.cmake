# Toolchain: Debian's ARM64 cross compiler (g++-aarch64-linux-gnu), programs run
# under qemu-user-static. Statically linked, so qemu needs no ARM64 system.
# With SLUICE_CROSS_CLANG set clang compiles, against the same libraries: it
# knows the target NEON_BF16, which GCC 12 does not.
# The folder SLUICE_ARM64_ROOT holds ARM64 packages of Debian, unpacked (./dev has
# one in its cache): with it everything but the program itself is built.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SLUICE_CROSS_CLANG SLUICE_ARM64_ROOT)
if(SLUICE_CROSS_CLANG)
  set(CMAKE_CXX_COMPILER clang++-19)
  set(CMAKE_CXX_COMPILER_TARGET aarch64-linux-gnu)
  set(CMAKE_C_COMPILER clang-19)
  set(CMAKE_C_COMPILER_TARGET aarch64-linux-gnu)
else()
  set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
  set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
endif()
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -cpu max)
if(SLUICE_ARM64_ROOT)
  set(ENV{PKG_CONFIG_LIBDIR} ${SLUICE_ARM64_ROOT}/usr/lib/aarch64-linux-gnu/pkgconfig)
  set(ENV{PKG_CONFIG_SYSROOT_DIR} ${SLUICE_ARM64_ROOT})
endif()
