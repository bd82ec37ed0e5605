# The whole program with device=cuda on a machine without a GPU: where LibTorch's CUDA libraries are set up.
if(NOT TARGET tycho_cuda)
  message(STATUS "The stand-in for a GPU is left out: it needs LibTorch's CUDA libraries (scripts/setup --cuda, preset cuda)")
  return()
endif()
set(folder standin_gpu)
# Preloaded: the CUDA runtime and NCCL that LibTorch's real libtorch_cuda.so calls.
add_library(standin_gpu SHARED ${folder}/runtime/checker.cpp ${folder}/runtime/cublas_lt.cpp ${folder}/runtime/device.cpp ${folder}/runtime/errors.cpp
  ${folder}/runtime/kernels.cpp ${folder}/runtime/lt_sums.cpp ${folder}/runtime/memory.cpp ${folder}/runtime/nccl.cpp ${folder}/runtime/order.cpp
  ${folder}/runtime/record.cpp ${folder}/runtime/refused_lt.cpp ${folder}/runtime/state.cpp
  ${folder}/runtime/threads.cpp standin_nvrtc/image.cpp)
target_include_directories(standin_gpu PRIVATE ${CMAKE_SOURCE_DIR})
target_include_directories(standin_gpu SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS} ${TYCHO_CUBLAS_INCLUDE} ${TYCHO_NCCL_INCLUDE})
target_compile_options(standin_gpu PRIVATE -fvisibility=default -Wall -Wextra -Werror)
set_source_files_properties(${folder}/runtime/lt_sums.cpp PROPERTIES COMPILE_OPTIONS -O3)
# LibTorch opens the driver by this name, and then finds the library that is loaded already.
set_target_properties(standin_gpu PROPERTIES NO_SONAME ON)
target_link_options(standin_gpu PRIVATE LINKER:-soname,libcuda.so.1)
tycho_standin_nvrtc(standin_nvrtc 92 plain_kernel.h "-O2" "")
# A tree of its own: the program, the engine, and a libtycho_cuda.so whose kernels and operators run on the CPU.
set(standin ${CMAKE_BINARY_DIR}/standin)
add_library(standin_cuda SHARED ${folder}/plugin/attention_on_host.cpp ${folder}/plugin/boxed.cpp ${folder}/plugin/host_side.cpp ${folder}/plugin/own_entries.cpp ${folder}/plugin/plugin.cpp ${folder}/plugin/recorded_entries.cpp ${folder}/plugin/uses.cpp
  ${CMAKE_SOURCE_DIR}/trainer/kernels/kernel_table.cpp ${CMAKE_SOURCE_DIR}/trainer/cuda_plugin/entry/driver_plugin.cpp
  ${CMAKE_SOURCE_DIR}/trainer/cuda_plugin/entry/nccl_plugin.cpp)
foreach(part cublas_lt library_product lt_problem nvrtc program_cache program_places run_program status)
  target_sources(standin_cuda PRIVATE ${CMAKE_SOURCE_DIR}/trainer/kernels/cuda/${part}.cpp)
endforeach()
target_link_options(standin_cuda PRIVATE LINKER:--no-as-needed,-z,defs LINKER:--exclude-libs,libtycho_expression.a:libtycho_base.a)
target_compile_definitions(standin_cuda PRIVATE AT_PER_OPERATOR_HEADERS $<$<STREQUAL:${CMAKE_SYSTEM_PROCESSOR},x86_64>:TYCHO_X86_KERNELS>)
target_include_directories(standin_cuda SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS} ${TYCHO_CUBLAS_INCLUDE})
target_link_libraries(standin_cuda PRIVATE tycho_flags fmt::fmt tycho_twins tycho_kernels_cpu Torch::cuda Torch::nccl standin_gpu CUDA::cudart)
set_target_properties(standin_cuda PROPERTIES OUTPUT_NAME tycho_cuda LIBRARY_OUTPUT_DIRECTORY ${standin}/lib)
set_property(TARGET standin_cuda APPEND PROPERTY INSTALL_RPATH ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
# A library with FlashAttention-3's operators, which runs name in TYCHO_FLASH_ATTN_3.
add_library(standin_flash_3 MODULE ${folder}/flash_attn_3/flash_attn_3.cpp ${folder}/plugin/attention_on_host.cpp ${folder}/plugin/uses.cpp)
target_compile_definitions(standin_flash_3 PRIVATE AT_PER_OPERATOR_HEADERS)
target_include_directories(standin_flash_3 SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
target_link_libraries(standin_flash_3 PRIVATE tycho_flags fmt::fmt tycho_twins Torch::cuda standin_gpu CUDA::cudart)
target_link_options(standin_flash_3 PRIVATE LINKER:-z,lazy)
set_target_properties(standin_flash_3 PROPERTIES PREFIX "" OUTPUT_NAME _C.abi3 LIBRARY_OUTPUT_DIRECTORY ${standin}/flash_attn_3)
add_custom_target(standin_tree ALL
  COMMAND ${CMAKE_COMMAND} -E make_directory ${standin}/bin
  COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_FILE:tycho> ${standin}/bin/tycho
  COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_FILE:tycho_engine> ${standin}/lib/libtycho_engine.so
  DEPENDS tycho tycho_engine standin_cuda standin_flash_3 standin_gpu)
# A tree whose engine writes down what a GPU is given, and computes nothing.
set(recorder ${CMAKE_BINARY_DIR}/recorder)
add_library(standin_recorder SHARED ${folder}/recorder/engine.cpp ${folder}/recorder/lone_rank.cpp)
target_link_libraries(standin_recorder PRIVATE tycho_run tycho_flags standin_gpu)
tycho_compile(standin_recorder TORCH COLD)
target_link_options(standin_recorder PRIVATE LINKER:--exclude-libs,ALL LINKER:-z,defs LINKER:--wrap=_ZN5tycho10initialiseERKNS_10OwnedRangeEm)
set_target_properties(standin_recorder PROPERTIES OUTPUT_NAME tycho_engine LIBRARY_OUTPUT_DIRECTORY ${recorder}/lib)
set_property(TARGET standin_recorder APPEND PROPERTY INSTALL_RPATH ${CMAKE_LIBRARY_OUTPUT_DIRECTORY})
add_custom_target(recorder_tree ALL
  COMMAND ${CMAKE_COMMAND} -E make_directory ${recorder}/bin
  COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_FILE:tycho> ${recorder}/bin/tycho
  COMMAND ${CMAKE_COMMAND} -E copy_if_different $<TARGET_FILE:standin_cuda> ${recorder}/lib/libtycho_cuda.so
  DEPENDS tycho standin_recorder standin_cuda standin_flash_3 standin_gpu)
# Ranks that call every verb of the communicator; beside the plug-in, which they open.
add_executable(standin_communicator ${folder}/communicator.cpp)
target_link_libraries(standin_communicator PRIVATE tycho_device tycho_flags)
tycho_compile(standin_communicator TORCH)
set_target_properties(standin_communicator PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${standin}/lib)
# Attention on a GPU against the oracle of the CPU's: the cases of kernels_test that want a GPU.
set(kernels trainer/kernels)
tycho_test(standin_attention_test TORCH LIBS kernels
  SOURCES ${kernels}/kernel_test.cpp ${kernels}/attention/attention_check.cpp ${kernels}/attention/attention_oracle.cpp ${kernels}/attention/attention_test.cpp
          ${kernels}/attention/flash_attention_3_test.cpp ${kernels}/attention/packed_documents_test.cpp)
target_compile_definitions(standin_attention_test PRIVATE TYCHO_CUDA_PLUGIN="$<TARGET_FILE:standin_cuda>"
  TYCHO_EMULATED_CUDA_PLUGIN="$<TARGET_FILE:emulated_cuda>")
add_dependencies(standin_attention_test standin_cuda standin_flash_3)
set_tests_properties(standin_attention_test PROPERTIES ENVIRONMENT "${environment};TYCHO_FLASH_ATTN_3=$<TARGET_FILE:standin_flash_3>;GTEST_FILTER=*OnGpu*bf16:PackedDocumentsOnGpu*;LD_PRELOAD=$<TARGET_FILE:standin_gpu>" TIMEOUT 600)
# Products by the library's C functions, whose rules the stand-in keeps.
tycho_test(standin_products_test TORCH LIBS kernels
  SOURCES ${kernels}/kernel_test.cpp ${kernels}/library_product_test.cpp ${kernels}/matmul_oracle.cpp ${folder}/products_test.cpp)
target_compile_definitions(standin_products_test PRIVATE TYCHO_CUDA_PLUGIN="$<TARGET_FILE:standin_cuda>"
  TYCHO_EMULATED_CUDA_PLUGIN="$<TARGET_FILE:emulated_cuda>")
add_dependencies(standin_products_test standin_cuda)
set_tests_properties(standin_products_test PROPERTIES ENVIRONMENT "${environment};LD_PRELOAD=$<TARGET_FILE:standin_gpu>" TIMEOUT 300)
foreach(source ${folder}/canonical_test.cpp ${folder}/context_test.cpp ${folder}/families_test.cpp ${folder}/flash_3_test.cpp ${folder}/memory_test.cpp ${folder}/order_mutants_test.cpp ${folder}/programs_test.cpp ${folder}/tuning_test.cpp ${folder}/verbs_test.cpp ${folder}/vocabulary_test.cpp ${folder}/errors_test.cpp)
  get_filename_component(name ${source} NAME_WE)
  set(name standin_${name})
  tycho_test(${name} SOURCES ${source} LIBS base)
  target_compile_definitions(${name} PRIVATE TYCHO_SOURCE_DIR="${CMAKE_SOURCE_DIR}" TYCHO_BUILD="${CMAKE_BINARY_DIR}"
    TYCHO_PROGRAM="env LD_PRELOAD=$<TARGET_FILE:standin_gpu>:$<TARGET_FILE:standin_nvrtc> ${standin}/bin/tycho" TYCHO_FLASH_3="$<TARGET_FILE:standin_flash_3>"
    TYCHO_COMMUNICATOR="env LD_PRELOAD=$<TARGET_FILE:standin_gpu> $<TARGET_FILE:standin_communicator>")
  add_dependencies(${name} standin_tree standin_nvrtc standin_communicator bench_nccl_loopback)
  set_tests_properties(${name} PROPERTIES TIMEOUT 900)
endforeach()
target_sources(standin_order_mutants_test PRIVATE ${folder}/runtime/order.cpp)
set_source_files_properties(${folder}/runtime/order.cpp PROPERTIES COMPILE_OPTIONS -O2 SKIP_PRECOMPILE_HEADERS ON)  # runs are done again a hundred times
# What orders the uses of memory, checked by itself.
tycho_test(standin_order_test SOURCES ${folder}/order_test.cpp ${folder}/runtime/order.cpp)
tycho_test(standin_launches_test SOURCES ${folder}/launches_test.cpp LIBS mds)
target_compile_definitions(standin_launches_test PRIVATE TYCHO_SOURCE_DIR="${CMAKE_SOURCE_DIR}" TYCHO_FLASH_3="$<TARGET_FILE:standin_flash_3>"
  TYCHO_PROGRAM="env LD_PRELOAD=$<TARGET_FILE:standin_gpu> ${recorder}/bin/tycho")
add_dependencies(standin_launches_test recorder_tree)
set_tests_properties(standin_launches_test PROPERTIES TIMEOUT 1200)
# NCCL's half of the plug-in under the thread sanitizer, with an NCCL that frees and hangs.
add_executable(nccl_races_test ${folder}/nccl_races_test.cpp ${CMAKE_SOURCE_DIR}/trainer/cuda_plugin/entry/nccl_plugin.cpp)
target_include_directories(nccl_races_test SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS} ${TYCHO_NCCL_INCLUDE})
target_compile_options(nccl_races_test PRIVATE -O1 -g1 -fsanitize=thread)
target_link_options(nccl_races_test PRIVATE -fsanitize=thread)
target_link_libraries(nccl_races_test PRIVATE tycho_flags fmt::fmt GTest::gtest GTest::gtest_main)
add_test(NAME nccl_races_test COMMAND nccl_races_test --gtest_output=xml:${results}/nccl_races_test.xml)
set_tests_properties(nccl_races_test PROPERTIES TIMEOUT 120 LABELS torch_free ENVIRONMENT "${environment};TSAN_OPTIONS=halt_on_error=1")
