# Cross-compiles for 64-bit Arm with Debian's compiler (presets aarch64 and aarch64_cuda), from what scripts/cross_aarch64 keeps in the
# cache: arm64 packages unpacked in sysroot/, LibTorch's wheels in wheels/. Programs of the build run in qemu.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
if(NOT "$ENV{TYCHO_CACHE}" STREQUAL "")
  set(aarch64_cache $ENV{TYCHO_CACHE}/aarch64)
elseif(NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
  set(aarch64_cache $ENV{XDG_CACHE_HOME}/tycho/aarch64)
else()
  set(aarch64_cache $ENV{HOME}/.cache/tycho/aarch64)
endif()
unset(ENV{TYCHO_TORCH})  # it names a LibTorch for this machine
set(TYCHO_TORCH ${aarch64_cache}/wheels/torch CACHE PATH "LibTorch folder (include/ and lib/)")

set(CMAKE_SYSROOT ${aarch64_cache}/sysroot)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CUDA_HOST_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CUDA_ARCHITECTURES 90a-real 90-virtual CACHE STRING "GH200, and PTX for GB200")
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# The wheels lie outside the sysroot, and are named by whole paths.
set(CMAKE_FIND_ROOT_PATH ${CMAKE_SYSROOT} ${aarch64_cache}/wheels)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR} ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
find_program(TYCHO_QEMU NAMES qemu-aarch64 qemu-aarch64-static REQUIRED)
set(CMAKE_CROSSCOMPILING_EMULATOR ${TYCHO_QEMU} -L ${CMAKE_SYSROOT})
