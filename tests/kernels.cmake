# Kernels against double-precision oracles, on every table that the machine can run.
set(folder trainer/kernels)
tycho_test(kernels_test TORCH
  SOURCES ${folder}/kernel_test.cpp ${folder}/activation_test.cpp
          ${folder}/optimizer/adamw_step_test.cpp ${folder}/attention/alibi_columns_test.cpp ${folder}/attention/attention_check.cpp ${folder}/attention/attention_oracle.cpp
          ${folder}/attention/attention_rows_test.cpp ${folder}/attention/attention_test.cpp ${folder}/attention/flash_attention_3_test.cpp ${folder}/bias_test.cpp ${folder}/clamp_test.cpp
          ${folder}/cross_entropy_test.cpp ${folder}/dropout_test.cpp ${folder}/layer_norm_test.cpp
          ${folder}/embedding_test.cpp ${folder}/optimizer/grad_norm_test.cpp ${folder}/kernel_table_test.cpp ${folder}/kernel_work_test.cpp ${folder}/library_product_test.cpp ${folder}/matmul_oracle.cpp
          ${folder}/matmul_tables_test.cpp ${folder}/matmul_test.cpp
          ${folder}/optimizer/optimizer_bits_test.cpp ${folder}/optimizer/optimizer_steps_test.cpp ${folder}/attention/packed_documents_test.cpp ${folder}/attention/pack_gradients_test.cpp ${folder}/attention/product_attention_test.cpp
          ${folder}/rms_norm_test.cpp ${folder}/token_statistics_test.cpp ${folder}/expression/autograd_test.cpp ${folder}/expression/defined_activation_test.cpp ${folder}/expression/run_program_test.cpp trainer/expression/random_expression.cpp trainer/expression/reference.cpp ${folder}/attention/rope_test.cpp ${folder}/attention/rope_frequencies_test.cpp ${folder}/temperature_test.cpp
          ${folder}/alignment_test.cpp ${folder}/gpu_limits_test.cpp ${folder}/host_copies_test.cpp ${folder}/fp8_test.cpp ${folder}/normal_numbers_test.cpp ${folder}/norm_shape_test.cpp
  LIBS kernels)
tycho_test(simd_test SOURCES ${folder}/simd_test.cpp LIBS kernels_cpu)
# The kernels for AVX-512, bf16's dot instructions and AMX once more, with emulated instructions: tables that any CPU with
# AVX2 runs.
if(CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  set(emulation -include ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/emulated_avx512.h -march=x86-64-v3 -Wno-psabi)
  get_property(cpu_kernels GLOBAL PROPERTY TYCHO_CPU_KERNELS)
  get_property(uncontracted GLOBAL PROPERTY TYCHO_UNCONTRACTED_KERNELS)
  set_source_files_properties(${uncontracted} PROPERTIES COMPILE_OPTIONS -ffp-contract=off)
  function(tycho_emulated_table name)
    add_library(kernels_${name} OBJECT ${ARGN})
    target_compile_definitions(kernels_${name} PRIVATE TYCHO_ISA=${name} TYCHO_BASE_ISA=avx512_emulated)
    target_compile_options(kernels_${name} PRIVATE -O2 -g0 -fno-math-errno -ffp-contract=fast ${emulation})
    target_link_libraries(kernels_${name} PRIVATE tycho_flags OpenMP::OpenMP_CXX)
    target_sources(kernels_test PRIVATE $<TARGET_OBJECTS:kernels_${name}>)
  endfunction()
  set(bf16_matmul ${CMAKE_SOURCE_DIR}/trainer/kernels/cpu/matmul/bf16_matmul.cpp)
  tycho_emulated_table(avx512_emulated ${cpu_kernels})
  tycho_emulated_table(avx512_bf16_emulated ${bf16_matmul})
  tycho_emulated_table(amx_bf16_emulated ${bf16_matmul})
  target_compile_definitions(kernels_amx_bf16_emulated PRIVATE __AMX_BF16__=1)
  target_compile_definitions(kernels_test PRIVATE TYCHO_EMULATED_TABLES)
  tycho_test(simd_emulated_test SOURCES ${folder}/simd_test.cpp LIBS kernels_cpu)
  set_target_properties(simd_emulated_test PROPERTIES DISABLE_PRECOMPILE_HEADERS ON)
  target_compile_options(simd_emulated_test PRIVATE ${emulation})
endif()
# Products take one of two routes on every machine, and both are tested on each.
foreach(route own aten)
  add_test(NAME kernels_test_${route}_gemm COMMAND kernels_test --gtest_filter=Dtypes/MatmulTest.* --gtest_output=xml:${results}/kernels_test_${route}_gemm.xml)
  set_tests_properties(kernels_test_${route}_gemm PROPERTIES TIMEOUT ${timeout} LABELS torch ENVIRONMENT "${environment};TYCHO_GEMM=${route}")
endforeach()
target_compile_definitions(kernels_test PRIVATE TYCHO_EMULATED_CUDA_PLUGIN="$<TARGET_FILE:emulated_cuda>")
add_dependencies(kernels_test emulated_cuda)
if(TARGET tycho_cuda)
  target_compile_definitions(kernels_test PRIVATE TYCHO_CUDA_PLUGIN="$<TARGET_FILE:tycho_cuda>")
  add_dependencies(kernels_test tycho_cuda)
endif()
# NVRTC and its programs on disk; the real one is that of LibTorch's wheels, where they are set up.
tycho_test(nvrtc_test LIBS expression SOURCES ${folder}/cuda/nvrtc_test.cpp ${folder}/cuda/program_cache_test.cpp trainer/expression/random_expression.cpp
  ${CMAKE_SOURCE_DIR}/trainer/kernels/cuda/nvrtc.cpp ${CMAKE_SOURCE_DIR}/trainer/kernels/cuda/program_cache.cpp)
target_compile_definitions(nvrtc_test PRIVATE TYCHO_CUDA_FOLDER="${torch_cuda_lib}")
tycho_test(thread_pool_test LIBS kernels_cpu SOURCES trainer/kernels/thread_pool_test.cpp)
tycho_script_test(instruction_sets SCRIPT trainer/kernels/instruction_sets.sh TIMEOUT 600 LABELS torch)
