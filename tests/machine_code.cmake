# The machine code of the hot kernels for H100, held to machine_code/kernels.txt. Compiled once more, outside `all`: the
# objects of libtycho_cuda.so keep theirs compressed.
if(NOT TARGET tycho_cuda)
  message(STATUS "The test of the GPU's machine code is left out: it needs a CUDA compiler (preset cuda)")
  return()
endif()
find_program(TYCHO_NVDISASM nvdisasm HINTS /usr/local/cuda/bin ${TYCHO_TORCH}/../nvidia/cu13/bin)
set(code ${CMAKE_BINARY_DIR}/machine_code)
file(MAKE_DIRECTORY ${code})
file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/trainer/kernels/cuda/*.cuh ${CMAKE_SOURCE_DIR}/trainer/kernels/cuda/*.h ${CMAKE_SOURCE_DIR}/trainer/kernels/twins/*.h)
set(made)
foreach(name activation adamw_step bias cross_entropy dropout embedding flat layer_norm pack_gradients rms_norm rope)
  set(source ${CMAKE_SOURCE_DIR}/trainer/kernels/cuda/${name}.cu)
  add_custom_command(OUTPUT ${code}/${name}.cubin DEPENDS ${source} ${headers} VERBATIM
    COMMAND sh -c "${CMAKE_CUDA_COMPILER} -cubin -arch=sm_90a -O2 -DNDEBUG -std=c++20 -I${CMAKE_SOURCE_DIR} -isystem ${CMAKE_BINARY_DIR}/own_fmt -Xptxas -v -o ${name}.cubin ${source} >${name}.txt 2>&1 || { cat ${name}.txt; exit 1; }"
    WORKING_DIRECTORY ${code} COMMENT "Assembling ${name}.cu for the test of its machine code")
  list(APPEND made ${code}/${name}.cubin)
endforeach()
add_custom_target(machine_code DEPENDS ${made})
add_test(NAME machine_code_build COMMAND ${CMAKE_COMMAND} --build ${CMAKE_BINARY_DIR} --target machine_code)
set_tests_properties(machine_code_build PROPERTIES FIXTURES_SETUP machine_code RESOURCE_LOCK build TIMEOUT 1200)
tycho_script_test(machine_code SCRIPT machine_code/check)
set_tests_properties(machine_code PROPERTIES FIXTURES_REQUIRED machine_code
  ENVIRONMENT "${environment};TYCHO_RESULT=${results}/machine_code.txt;TYCHO_NVDISASM=${TYCHO_NVDISASM}")
