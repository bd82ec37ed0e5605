# The GPU's kernels compiled for the CPU: emulated_cuda/translate.cmake rewrites launches and shared memory, headers in
# emulated_cuda/include define the rest of CUDA, and sanitizers' instrumentation calls the emulator at every read and write.
set(emulated ${CMAKE_BINARY_DIR}/emulated_cuda)
add_library(cuda_emulator STATIC emulated_cuda/declared.cpp emulated_cuda/emulator.cpp emulated_cuda/fiber.cpp emulated_cuda/meet.cpp emulated_cuda/memory.cpp emulated_cuda/order.cpp
  emulated_cuda/sanitizer_calls.cpp)
target_include_directories(cuda_emulator PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/emulated_cuda/include ${CMAKE_SOURCE_DIR})
target_compile_options(cuda_emulator PRIVATE -Wall -Wextra -Werror)
set_target_properties(cuda_emulator PROPERTIES CXX_VISIBILITY_PRESET default)  # for programs that are compiled while a test runs

# tycho_emulated_kernels(TARGET FILES ...): adds .cu files, and .cuh files that they include, to the target.
function(tycho_emulated_kernels target)
  set(translated)
  foreach(file ${ARGN})
    string(REGEX REPLACE "[.]cu$" ".cpp" out ${emulated}/${file})
    get_filename_component(folder ${out} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})
    add_custom_command(OUTPUT ${out} DEPENDS ${CMAKE_SOURCE_DIR}/${file} ${CMAKE_CURRENT_SOURCE_DIR}/emulated_cuda/translate.cmake
      COMMAND ${CMAKE_COMMAND} -DIN=${CMAKE_SOURCE_DIR}/${file} -DNAME=${file} -DOUT=${out} -P ${CMAKE_CURRENT_SOURCE_DIR}/emulated_cuda/translate.cmake
      COMMENT "Translating ${file} for the CPU")
    list(APPEND translated ${out})
  endforeach()
  target_sources(${target} PRIVATE ${translated})
  target_include_directories(${target} BEFORE PRIVATE ${emulated})
  # Sums are not contracted, so that an order shows; the sanitizers' own libraries are not linked.
  set_property(SOURCE ${translated} PROPERTY COMPILE_OPTIONS -O1 -g1 -ffp-contract=off -fno-math-errno -Wall -Wextra -Werror
    -Wno-unknown-pragmas -Wno-unused-function -fsanitize=thread,alignment,bounds,signed-integer-overflow,shift,integer-divide-by-zero
    $<$<CXX_COMPILER_ID:GNU>:--param=tsan-instrument-func-entry-exit=0>)
  set_source_files_properties(${translated} PROPERTIES SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

get_property(kernels GLOBAL PROPERTY TYCHO_CUDA_KERNELS)
list(FILTER kernels INCLUDE REGEX "[.]cuh?$")
list(TRANSFORM kernels PREPEND trainer/)
set(shared_parts common fp8_codes logit_curves norm_rows over_elements partials rope row_merge weights)
set(host_parts nvrtc program_cache run_program status)
list(TRANSFORM shared_parts REPLACE "(.+)" "trainer/kernels/cuda/\\1.cuh")
list(TRANSFORM host_parts REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/trainer/kernels/cuda/\\1.cpp")
add_library(emulated_programs OBJECT emulated_cuda/programs.cpp standin_nvrtc/image.cpp ${host_parts})
target_include_directories(emulated_programs BEFORE PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/emulated_cuda/host)
target_link_libraries(emulated_programs PRIVATE cuda_emulator fmt::fmt tycho_expression)
add_library(emulated_cuda SHARED emulated_cuda/table.cpp $<TARGET_OBJECTS:emulated_programs>)
tycho_emulated_kernels(emulated_cuda ${kernels} ${shared_parts})
target_link_libraries(emulated_cuda PRIVATE cuda_emulator fmt::fmt tycho_twins)
set_target_properties(emulated_cuda PROPERTIES OUTPUT_NAME tycho_emulated_cuda)

# tycho_standin_nvrtc(TARGET minor header flags libraries): a libnvrtc.so.13 that compiles with the compiler of this build.
function(tycho_standin_nvrtc target minor header flags libraries)
  add_library(${target} SHARED standin_nvrtc/nvrtc.cpp standin_nvrtc/image.cpp)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_definitions(${target} PRIVATE STANDIN_NVRTC_MINOR=${minor} STANDIN_NVRTC_COMPILER="${CMAKE_CXX_COMPILER}"
    STANDIN_NVRTC_HEADER="${CMAKE_CURRENT_SOURCE_DIR}/standin_nvrtc/${header}" STANDIN_NVRTC_FLAGS="${flags}" STANDIN_NVRTC_LIBRARIES="${libraries}")
  target_compile_options(${target} PRIVATE -fvisibility=hidden -Wall -Wextra -Werror)
  set_target_properties(${target} PROPERTIES NO_SONAME ON)
  target_link_options(${target} PRIVATE LINKER:-soname,libnvrtc.so.13)
endfunction()
tycho_standin_nvrtc(emulated_nvrtc 91 emulated_kernel.h "-O1 -g1 -fno-math-errno -I${CMAKE_CURRENT_SOURCE_DIR}/emulated_cuda/include -I${CMAKE_SOURCE_DIR} -fsanitize=thread,alignment,bounds,signed-integer-overflow,shift,integer-divide-by-zero --param=tsan-instrument-func-entry-exit=0" "$<TARGET_FILE:emulated_cuda>")
target_compile_definitions(emulated_programs PRIVATE TYCHO_EMULATED_NVRTC="$<TARGET_FILE:emulated_nvrtc>")
add_dependencies(emulated_nvrtc emulated_cuda)

if(NOT TYCHO_SANITIZE)  # whose libraries would answer the calls that the emulator answers
  tycho_test(emulated_cuda_test SOURCES emulated_cuda/emulated_cuda_test.cpp LIBS twins)
  tycho_emulated_kernels(emulated_cuda_test tests/emulated_cuda/small_kernels.cu)
  target_link_libraries(emulated_cuda_test PRIVATE cuda_emulator)
  tycho_script_test(emulated_cuda_mutants SCRIPT emulated_cuda/mutants TIMEOUT 600 LABELS torch)
endif()
