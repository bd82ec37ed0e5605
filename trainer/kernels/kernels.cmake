# Fused ops: contracts and checks (kernels/*.cpp), their definition on the CPU (kernels/cpu, compiled once per instruction
# set), their twins on the GPU (kernels/cuda, in libtycho_cuda.so).
set(cpu_kernels kernels/cpu/activation.cpp kernels/cpu/adamw_step.cpp kernels/cpu/attention/attention.cpp
                kernels/cpu/attention/attention_backward.cpp kernels/cpu/bias.cpp kernels/cpu/clamp.cpp
                kernels/cpu/cross_entropy.cpp kernels/cpu/dropout.cpp kernels/cpu/embedding.cpp kernels/cpu/flat.cpp
                kernels/cpu/layer_norm.cpp kernels/cpu/lion_step.cpp
                kernels/cpu/matmul/matmul.cpp kernels/cpu/muon_step.cpp kernels/cpu/normal_numbers.cpp kernels/cpu/rms_norm.cpp kernels/cpu/rope.cpp
                kernels/cpu/sgd_step.cpp kernels/cpu/temperature.cpp kernels/cpu/matmul/direct_matmul.cpp kernels/cpu/table.cpp)
list(TRANSFORM cpu_kernels PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/ OUTPUT_VARIABLE cpu_kernel_paths)
set_property(GLOBAL PROPERTY TYCHO_CPU_KERNELS ${cpu_kernel_paths})  # the tests compile them once more
tycho_library(kernels_cpu ALONE
  SOURCES ${cpu_kernels} kernels/cpu/parallel.cpp kernels/cpu/thread_pool.cpp
  HEADERS kernels/twins/adamw_factors.h cuda_plugin/cuda_plugin.h kernels/twins/weight_form.h kernels/twins/dropout_bits.h kernels/twins/kernel_table.h
          kernels/twins/philox_words.h kernels/cpu/elementary.h kernels/cpu/kernels.h
          kernels/cpu/partials.h kernels/cpu/philox_lanes.h
          kernels/cpu/attention/attention_tiles.h kernels/cpu/parallel.h kernels/cpu/thread_pool.h kernels/cpu/matmul/direct_matmul.h kernels/cpu/matmul/direct_products.h kernels/cpu/matmul/amx_tiles.h kernels/cpu/matmul/pair_tiles.h
          kernels/cpu/table_name.h
          kernels/cpu/simd.h kernels/cpu/matmul/tile_elements.h kernels/cpu/matmul/tile_product.h kernels/cpu/matmul/tile_rows_avx2.h kernels/cpu/matmul/tile_rows_avx512.h
          kernels/cpu/weights.h kernels/twins/rounding_noise.h
  DEPS PUBLIC base PRIVATE OpenMP::OpenMP_CXX)

# -O3 in every build type: these loops are the definition of speed here, and debuggers rarely visit them.
function(tycho_instruction_set target name)
  target_compile_definitions(${target} PRIVATE TYCHO_ISA=${name})
  target_compile_options(${target} PRIVATE -O3 -fno-math-errno -ffp-contract=fast ${ARGN})
  set_target_properties(${target} PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
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

tycho_library(kernels TORCH
  SOURCES kernels/activation.cpp kernels/optimizer/adamw_step.cpp kernels/attention/alibi_columns.cpp kernels/attention/attention.cpp kernels/attention/attention_rows.cpp kernels/bias.cpp kernels/clamp.cpp
          kernels/cross_entropy.cpp kernels/dispatch.cpp kernels/attention/packed_documents.cpp kernels/dropout.cpp kernels/embedding.cpp
          kernels/attention/flash_attention.cpp kernels/optimizer/grad_norm.cpp kernels/host_copies.cpp kernels/kernel_table.cpp kernels/layer_norm.cpp kernels/optimizer/lion_step.cpp
          kernels/matmul.cpp kernels/matmul_route.cpp kernels/optimizer/muon_step.cpp kernels/norm_shape.cpp
          kernels/optimizer/optimized_weights.cpp kernels/attention/partial_sums.cpp kernels/attention/product_attention.cpp kernels/rms_norm.cpp kernels/attention/rope.cpp kernels/attention/rope_frequencies.cpp
          kernels/optimizer/sgd_step.cpp kernels/temperature.cpp
  HEADERS kernels/activation.h kernels/optimizer/adamw_step.h kernels/attention/alibi_columns.h kernels/attention/attention.h kernels/attention/attention_rows.h kernels/bias.h kernels/clamp.h
          kernels/cross_entropy.h kernels/dispatch.h kernels/attention/packed_documents.h kernels/dropout.h kernels/embedding.h kernels/attention/flash_attention.h kernels/optimizer/grad_norm.h kernels/host_copies.h
          kernels/layer_norm.h kernels/optimizer/lion_step.h kernels/matmul.h kernels/optimizer/muon_step.h kernels/norm_shape.h
          kernels/optimizer/optimized_weights.h kernels/attention/partial_sums.h kernels/attention/product_attention.h kernels/optimizer/sgd_step.h kernels/rms_norm.h kernels/attention/rope.h
          kernels/attention/rope_frequencies.h kernels/temperature.h kernels/tensor.h
  DEPS PUBLIC config kernels_cpu ranges)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  target_compile_definitions(tycho_kernels PRIVATE TYCHO_X86_KERNELS)
endif()

set(cuda_kernels kernels/cuda/activation.cu kernels/cuda/adamw_step.cu kernels/cuda/bias.cu kernels/cuda/clamp.cu
                 kernels/cuda/cross_entropy.cu kernels/cuda/dropout.cu kernels/cuda/embedding.cu kernels/cuda/flat.cu
                 kernels/cuda/layer_norm.cu kernels/cuda/lion_step.cu kernels/cuda/muon_step.cu kernels/cuda/rms_norm.cu kernels/cuda/rope.cu
                 kernels/cuda/sgd_step.cu kernels/cuda/temperature.cu cuda_plugin/entry/plugin.cpp kernels/cuda/status.cpp cuda_plugin/entry/nccl_plugin.cpp)
set_property(GLOBAL APPEND_STRING PROPERTY TYCHO_LAYERS
  "kernels_cuda trainer : base;kernels_cpu;nccl_table : ${cuda_kernels} cuda_plugin/entry/nccl_plugin.h;kernels/cuda/common.cuh;kernels/cuda/over_elements.cuh;kernels/cuda/partials.cuh;kernels/cuda/status.h;kernels/cuda/weights.cuh;kernels/cuda/kernels.h\n")
set_property(GLOBAL PROPERTY TYCHO_CUDA_KERNELS ${cuda_kernels})  # tests compile them for the CPU
if(TYCHO_CUDA)
  add_library(tycho_cuda SHARED ${cuda_kernels})
  # A step moves many bytes and multiplies little. Products are rounded before they are added: which of two the compiler
  # would fuse may differ between packs and single elements, and ranks with other parts of a buffer take other packs.
  set_source_files_properties(kernels/cuda/adamw_step.cu kernels/cuda/lion_step.cu kernels/cuda/muon_step.cu kernels/cuda/sgd_step.cu
    PROPERTIES COMPILE_OPTIONS -fmad=false)
  # Nothing here names ATen's CUDA operators: they register themselves because libtorch_cuda.so is loaded along.
  target_link_options(tycho_cuda PRIVATE LINKER:--no-as-needed)
  tycho_harden_link(tycho_cuda)
  target_link_libraries(tycho_cuda PRIVATE tycho_flags fmt::fmt Torch::cuda Torch::nccl CUDA::cudart)
  get_filename_component(nccl_folder ${TYCHO_NCCL} DIRECTORY)
  set_property(TARGET tycho_cuda APPEND PROPERTY INSTALL_RPATH ${nccl_folder})
endif()
