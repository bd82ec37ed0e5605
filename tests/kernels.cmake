# Kernels against double-precision oracles, on every table that the machine can run.
set(folder trainer/kernels)
tycho_test(kernels_test TORCH
  SOURCES ${folder}/kernel_test.cpp ${folder}/activation_test.cpp
          ${folder}/adamw_step_test.cpp ${folder}/alibi_columns_test.cpp ${folder}/attention_oracle.cpp
          ${folder}/attention_test.cpp ${folder}/bias_test.cpp ${folder}/clamp_test.cpp
          ${folder}/cross_entropy_test.cpp ${folder}/dropout_test.cpp ${folder}/layer_norm_test.cpp
          ${folder}/embedding_test.cpp ${folder}/grad_norm_test.cpp ${folder}/kernel_table_test.cpp ${folder}/matmul_test.cpp
          ${folder}/normal_numbers_test.cpp ${folder}/optimizer_steps_test.cpp ${folder}/packed_documents_test.cpp ${folder}/product_attention_test.cpp
          ${folder}/rms_norm_test.cpp ${folder}/rope_test.cpp ${folder}/rope_frequencies_test.cpp ${folder}/temperature_test.cpp
  LIBS kernels)
tycho_test(simd_test SOURCES ${folder}/simd_test.cpp LIBS kernels_cpu)
# Products take one of two routes, whichever is a machine's own.
foreach(route own aten)
  add_test(NAME kernels_test_${route}_gemm COMMAND kernels_test --gtest_filter=Dtypes/MatmulTest.* --gtest_output=xml:${results}/kernels_test_${route}_gemm.xml)
  set_tests_properties(kernels_test_${route}_gemm PROPERTIES TIMEOUT ${timeout} LABELS torch ENVIRONMENT "${environment};TYCHO_GEMM=${route}")
endforeach()
if(TARGET tycho_cuda)
  target_compile_definitions(kernels_test PRIVATE TYCHO_CUDA_PLUGIN="$<TARGET_FILE:tycho_cuda>")
  add_dependencies(kernels_test tycho_cuda)
endif()
tycho_test(thread_pool_test LIBS kernels_cpu SOURCES trainer/kernels/thread_pool_test.cpp)
tycho_script_test(instruction_sets SCRIPT trainer/kernels/instruction_sets.sh TIMEOUT 600 LABELS torch)
