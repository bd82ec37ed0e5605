# The CUDA compiler and runtime of libtycho_cuda.so: machine code for compute capability 8.x (A100, L40S, RTX 30 and 40) and for
# H100 and H200, and PTX from which the driver makes code for GPUs that came later (B200, RTX 50).
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90a-real 90-virtual)
endif()
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(TYCHO_NVCC nvcc HINTS /usr/local/cuda/bin)
  if(NOT TYCHO_NVCC)
    message(FATAL_ERROR "[cuda] expected nvcc on the PATH or in /usr/local/cuda/bin. Install the CUDA 13 toolkit, run scripts/setup "
                        "with CUDA, give one with -DCMAKE_CUDA_COMPILER=/path/to/nvcc, or build with -DTYCHO_CUDA=OFF")
  endif()
  set(CMAKE_CUDA_COMPILER ${TYCHO_NVCC})
endif()
# A toolkit has headers for every processor, and libraries for its own: those of another come from LibTorch's wheels.
if(CMAKE_CROSSCOMPILING)
  if(CMAKE_CUDA_COMPILER)
    file(REAL_PATH ${CMAKE_CUDA_COMPILER} toolkit)
  else()
    file(REAL_PATH $ENV{CUDACXX} toolkit)
  endif()
  cmake_path(SET toolkit NORMALIZE ${toolkit}/../../include)
  set(CMAKE_CUDA_FLAGS "-isystem ${toolkit} -isystem ${toolkit}/cccl -L${torch_cuda_lib} -Xcompiler=--sysroot=${CMAKE_SYSROOT}")
  file(GLOB cudart ${torch_cuda_lib}/libcudart.so.*)
  foreach(name CUDA_CUDART CUDA_cudart_LIBRARY)  # the package looks for both
    set(${name} ${cudart} CACHE FILEPATH "CUDA's runtime")
  endforeach()
endif()
enable_language(CUDA)
# CMake 3.25 does not know that nvcc has C++20 since version 12.
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
# CMake 3.25.1 sets a property of a library that CUDA 13 no longer has.
if(NOT TARGET CUDA::nvToolsExt)
  add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
endif()
find_package(CUDAToolkit REQUIRED)
