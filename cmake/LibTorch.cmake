# Finds LibTorch and offers it as imported targets: Torch::cpu, and Torch::cuda when TYCHO_CUDA is on.
#   TYCHO_TORCH   a folder that holds include/ and lib/: a wheel's torch/, a LibTorch archive, an NGC container's; as an
#                 environment variable or with -D. Default: the wheel that scripts/setup keeps in the cache.
# The wheel's own find_package(Torch) is not used: its CUDA probe breaks with CMake 3.25 and CUDA 13.
if(NOT "$ENV{TYCHO_CACHE}" STREQUAL "")
  set(tycho_cache $ENV{TYCHO_CACHE})
elseif(NOT "$ENV{XDG_CACHE_HOME}" STREQUAL "")
  set(tycho_cache $ENV{XDG_CACHE_HOME}/tycho)
else()
  set(tycho_cache $ENV{HOME}/.cache/tycho)
endif()
if(NOT "$ENV{TYCHO_TORCH}" STREQUAL "")
  set(TYCHO_TORCH "$ENV{TYCHO_TORCH}" CACHE PATH "LibTorch folder (include/ and lib/)" FORCE)
endif()
if(NOT TYCHO_TORCH)
  file(GLOB wheels ${tycho_cache}/libtorch-2.11.0/lib/python3*/site-packages/torch)
  if(wheels)
    list(GET wheels 0 TYCHO_TORCH)
  endif()
endif()
set(TYCHO_TORCH "${TYCHO_TORCH}" CACHE PATH "LibTorch folder (include/ and lib/)")
if(NOT EXISTS ${TYCHO_TORCH}/lib/libtorch_cpu.so)
  message(FATAL_ERROR "[libtorch] expected libtorch_cpu.so under '${TYCHO_TORCH}/lib'. "
                      "Run scripts/setup, or give your own with -DTYCHO_TORCH=/path/to/torch")
endif()
set(torch_version_header ${TYCHO_TORCH}/include/torch/headeronly/version.h)
if(NOT EXISTS ${torch_version_header})  # before 2.9, which is refused
  set(torch_version_header ${TYCHO_TORCH}/include/torch/csrc/api/include/torch/version.h)
endif()
file(STRINGS ${torch_version_header} torch_version_lines REGEX "define TORCH_VERSION_(MAJOR|MINOR) ")
string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*" "\\1.\\2" TYCHO_TORCH_VERSION "${torch_version_lines}")
if(TYCHO_TORCH_VERSION VERSION_LESS 2.11)  # older ones refuse to add products of bf16 to sums in fp32
  message(FATAL_ERROR "[libtorch] expected LibTorch 2.11 or newer, got ${TYCHO_TORCH_VERSION} in ${TYCHO_TORCH}")
endif()

# The CUDA libraries that libtorch_cpu.so itself names live beside the wheel.
set(torch_cuda_lib ${TYCHO_TORCH}/../nvidia/cu13/lib)
get_filename_component(torch_cuda_lib ${torch_cuda_lib} ABSOLUTE)
function(tycho_import_torch target file)
  set(includes ${CMAKE_SOURCE_DIR}/cmake/aten ${TYCHO_TORCH}/include ${TYCHO_TORCH}/include/torch/csrc/api/include)
  add_library(Torch::${target} SHARED IMPORTED GLOBAL)
  set_target_properties(Torch::${target} PROPERTIES IMPORTED_LOCATION ${TYCHO_TORCH}/lib/${file}
    INTERFACE_INCLUDE_DIRECTORIES "${includes}" INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${includes}")
  target_link_options(Torch::${target} INTERFACE "LINKER:-rpath-link,${TYCHO_TORCH}/lib:${torch_cuda_lib}")
endfunction()
tycho_import_torch(c10 libc10.so)
tycho_import_torch(cpu libtorch_cpu.so)
target_link_libraries(Torch::cpu INTERFACE Torch::c10)
if(TYCHO_CUDA)
  if(NOT EXISTS ${TYCHO_TORCH}/lib/libtorch_cuda.so)
    message(FATAL_ERROR "[libtorch] TYCHO_CUDA wants a LibTorch with CUDA, found none in ${TYCHO_TORCH}/lib")
  endif()
  if(NOT CMAKE_CUDA_COMPILER AND "$ENV{CUDACXX}" STREQUAL "")  # the toolkit's compiler, else the one of the wheels
    find_program(TYCHO_NVCC nvcc HINTS $ENV{CUDA_HOME}/bin /usr/local/cuda/bin ${TYCHO_TORCH}/../nvidia/cu13/bin)
    if(TYCHO_NVCC)
      set(CMAKE_CUDA_COMPILER ${TYCHO_NVCC})
    endif()
  endif()
  tycho_import_torch(c10_cuda libc10_cuda.so)
  tycho_import_torch(cuda libtorch_cuda.so)
  target_link_libraries(Torch::cuda INTERFACE Torch::c10_cuda Torch::cpu)
  # The NCCL that libtorch_cuda.so itself loads: the wheel's, or that of the system in a LibTorch built elsewhere.
  find_path(TYCHO_NCCL_INCLUDE nccl.h HINTS ${TYCHO_TORCH}/../nvidia/nccl/include REQUIRED)
  find_library(TYCHO_NCCL NAMES libnccl.so.2 nccl HINTS ${TYCHO_TORCH}/../nvidia/nccl/lib REQUIRED)
  add_library(Torch::nccl SHARED IMPORTED GLOBAL)
  set_target_properties(Torch::nccl PROPERTIES IMPORTED_LOCATION ${TYCHO_NCCL}
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES ${TYCHO_NCCL_INCLUDE} INTERFACE_INCLUDE_DIRECTORIES ${TYCHO_NCCL_INCLUDE})
endif()
# Binaries look for our own libraries beside themselves and for LibTorch where it was at build time, in the build tree and
# when installed. These become RUNPATHs, so LD_LIBRARY_PATH comes first: it points an installed Tycho at another LibTorch.
set(CMAKE_INSTALL_RPATH "$ORIGIN" "$ORIGIN/../lib" "${TYCHO_TORCH}/lib")
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
message(STATUS "LibTorch ${TYCHO_TORCH_VERSION}: ${TYCHO_TORCH}")
