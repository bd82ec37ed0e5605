# Fused ops: contracts and checks (kernels/*.cpp), their definition on the CPU (kernels/cpu, compiled once per instruction
# set), their twins on the GPU (kernels/cuda, in libtycho_cuda.so).
tycho_glob(cpu_kernels kernels/cpu cpp)
list(FILTER cpu_kernels EXCLUDE REGEX "/(parallel|thread_pool|bf16_matmul)\\.cpp$")
list(TRANSFORM cpu_kernels PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE cpu_kernel_paths)
set_property(GLOBAL PROPERTY TYCHO_CPU_KERNELS ${cpu_kernel_paths})  # the tests compile them once more
# In these a product is rounded before it is added, so that their bits depend neither on a compiler's choice nor on the instruction set.
list(APPEND uncontracted kernels/cpu/activation.cpp kernels/cpu/adamw_step.cpp kernels/cpu/expression/pair_step.cpp kernels/cpu/expression/run_program.cpp kernels/cpu/expression/tile_instructions.cpp kernels/cpu/lion_step.cpp kernels/cpu/muon_step.cpp kernels/cpu/sgd_step.cpp)
list(TRANSFORM uncontracted PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
set_property(GLOBAL PROPERTY TYCHO_UNCONTRACTED_KERNELS ${uncontracted})
set_source_files_properties(${uncontracted} PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
tycho_library(cuda_plugin WITHOUT entry DEPS PUBLIC twins)
tycho_library(kernels_cpu FOLDER kernels/cpu ALONE APART kernels/cpu/matmul/bf16_matmul.cpp DEPS PUBLIC twins PRIVATE OpenMP::OpenMP_CXX)

# -O3 in every build type: these loops are the definition of speed here, and debuggers rarely visit them.
function(tycho_instruction_set target name)
  target_compile_definitions(${target} PRIVATE TYCHO_ISA=${name})
  target_compile_options(${target} PRIVATE -O3 -fno-math-errno -ffp-contract=fast ${ARGN})
  set_target_properties(${target} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON TYCHO_KERNELS ON)
endfunction()
tycho_instruction_set(tycho_kernels_cpu generic)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  foreach(level "avx2;-march=x86-64-v3" "avx512;-march=x86-64-v4")
    list(GET level 0 name)
    list(GET level 1 flag)
    add_library(tycho_kernels_${name} OBJECT ${cpu_kernels})
    target_link_libraries(tycho_kernels_${name} PRIVATE tycho_flags OpenMP::OpenMP_CXX)
    tycho_instruction_set(tycho_kernels_${name} ${name} ${flag})
    target_sources(tycho_kernels_cpu PRIVATE $<TARGET_OBJECTS:tycho_kernels_${name}>)
  endforeach()
  # AVX-512's kernels, but for products of bf16.
  foreach(level "avx512_bf16;-mavx512bf16" "amx_bf16;-mavx512bf16;-mamx-tile;-mamx-bf16")
    list(POP_FRONT level name)
    add_library(tycho_kernels_${name} OBJECT kernels/cpu/matmul/bf16_matmul.cpp)
    target_link_libraries(tycho_kernels_${name} PRIVATE tycho_flags)
    tycho_instruction_set(tycho_kernels_${name} ${name} -march=x86-64-v4 ${level})
    target_compile_definitions(tycho_kernels_${name} PRIVATE TYCHO_BASE_ISA=avx512)
    target_sources(tycho_kernels_cpu PRIVATE $<TARGET_OBJECTS:tycho_kernels_${name}>)
  endforeach()
endif()

tycho_library(kernels TORCH WITHOUT cpu cuda twins DEPS PUBLIC profiler kernels_cpu)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  target_compile_definitions(tycho_kernels PRIVATE TYCHO_X86_KERNELS)
endif()

file(GLOB cuda_kernels RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS kernels/cuda/*.cu kernels/cuda/*.cpp cuda_plugin/entry/*.cpp)
file(GLOB cuda_headers RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS kernels/cuda/*.h kernels/cuda/*.cuh cuda_plugin/entry/*.h)
tycho_layer(kernels_cuda SOURCES ${cuda_kernels} ${cuda_headers} EDGES base expression twins cuda_plugin)
set_property(GLOBAL PROPERTY TYCHO_CUDA_KERNELS ${cuda_kernels})  # tests compile them for the CPU
if(TYCHO_CUDA)
  add_library(tycho_cuda SHARED ${cuda_kernels})
  # As the CPU's: a step moves many bytes and multiplies little. Which of two products the compiler would fuse may differ between
  # packs and single elements, and ranks with other parts of a buffer take other packs.
  set_source_files_properties(kernels/cuda/adamw_step.cu kernels/cuda/lion_step.cu kernels/cuda/muon_step.cu kernels/cuda/sgd_step.cu
    PROPERTIES COMPILE_OPTIONS -fmad=false)
  # Nothing here names ATen's CUDA operators: they register themselves because libtorch_cuda.so is loaded along.
  target_link_options(tycho_cuda PRIVATE LINKER:--no-as-needed LINKER:--exclude-libs,libtycho_expression.a:libtycho_base.a)
  tycho_harden_link(tycho_cuda)
  target_link_libraries(tycho_cuda PRIVATE tycho_flags fmt::fmt tycho_expression Torch::cuda Torch::nccl CUDA::cudart)
  # Of cuBLAS the header alone: LibTorch brings the library, and its functions are found by name.
  find_path(TYCHO_CUBLAS_INCLUDE cublasLt.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${TYCHO_TORCH}/../nvidia/cu13/include REQUIRED)
  target_include_directories(tycho_cuda SYSTEM PRIVATE ${TYCHO_CUBLAS_INCLUDE})
  get_filename_component(nccl_folder ${TYCHO_NCCL} DIRECTORY)
  if(NOT TYCHO_PACKAGE)
    set_property(TARGET tycho_cuda APPEND PROPERTY INSTALL_RPATH ${nccl_folder})
  endif()
endif()
