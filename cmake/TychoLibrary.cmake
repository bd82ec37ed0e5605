# tycho_library(NAME [FOLDER F] [WITHOUT subfolders] [APART sources] [DEPS PUBLIC ... PRIVATE ...] [TORCH] [COLD] [ALONE])
# A folder is a library and a library is a folder: every .cpp and .h of F (NAME by default) and of its subfolders, but for those
# that are libraries themselves; sources APART are compiled by a target of their own. TORCH gives it LibTorch and the precompiled header; without it the library is
# torch-free and the layering test holds it to that. COLD is for what runs a few times in a run, or for people.
# Four sources are one compilation, since most of its time goes to headers that they share; ALONE is for those that are long, or name their parts alike.
# The declared edges are written to build/*/layers.txt.
define_property(GLOBAL PROPERTY TYCHO_LAYERS)

add_library(tycho_flags INTERFACE)
target_compile_options(tycho_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Werror -Winvalid-pch -Wno-missing-field-initializers>)
# GCC collects garbage seldom: at most 130 MB more for a compilation, and 8 % less time.
target_compile_options(tycho_flags INTERFACE
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-expand=1000 --param=ggc-min-heapsize=1000000>)
target_include_directories(tycho_flags INTERFACE ${CMAKE_SOURCE_DIR})
# On x86-64 a char has a sign, and products are rounded before they are added: files, sample orders and schedules are the same elsewhere.
# Kernels choose how they add.
if(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL x86_64)
  target_compile_options(tycho_flags INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-fsigned-char>
    $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<BOOL:$<TARGET_PROPERTY:TYCHO_KERNELS>>>>:-ffp-contract=off>)
endif()
# LibTorch's wheel carries headers of another fmt; ours must be found first, or sources would call functions nobody links.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/own_fmt)
find_path(FMT_INCLUDE_DIR fmt/format.h NO_CACHE REQUIRED)
file(CREATE_LINK ${FMT_INCLUDE_DIR}/fmt ${CMAKE_BINARY_DIR}/own_fmt/fmt SYMBOLIC)
target_include_directories(tycho_flags SYSTEM BEFORE INTERFACE ${CMAKE_BINARY_DIR}/own_fmt)
if(TYCHO_SANITIZE)
  # fuzzer-no-link alone watches which code an input reaches, and checks nothing: for many inputs.
  set(optimisation -O1)
  if(TYCHO_SANITIZE STREQUAL "fuzzer-no-link")
    set(optimisation -O2)
  endif()
  target_compile_options(tycho_flags INTERFACE ${optimisation} -g1 -fsanitize=${TYCHO_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(tycho_flags INTERFACE -fsanitize=${TYCHO_SANITIZE})
  # What a sanitizer adds hides from GCC that a value was set: it warns of std::regex itself.
  target_compile_options(tycho_flags INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()

# Hardens code that reads downloads and listens on ports, which is everything that needs no LibTorch: glibc checks the sizes of
# copies, and an overwritten stack or an index beyond a vector's end stops the program. Tests have none of it, since -O0 checks no
# copies; nor have builds with a sanitizer, which watches the plain calls, nor targets with the property TYCHO_KERNELS, where the
# time of a step is spent. Ubuntu's compilers set a level of _FORTIFY_SOURCE of their own.
add_library(tycho_hardening INTERFACE)
set(is_hardened $<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<BOOL:$<TARGET_PROPERTY:TYCHO_KERNELS>>>>)
if(NOT TYCHO_SANITIZE)
  target_compile_options(tycho_hardening INTERFACE
    $<${is_hardened}:-fstack-protector-strong -D_GLIBCXX_ASSERTIONS>
    $<$<AND:${is_hardened},$<NOT:$<CONFIG:Debug>>>:-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2>)
endif()
# Names that hide others, classes deleted without a virtual destructor, overloads that hide a virtual function.
target_compile_options(tycho_hardening INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wshadow -Wnon-virtual-dtor -Woverloaded-virtual>)

# tycho_harden_link(TARGET): no table of a program or shared library that holds addresses can be written once it is loaded.
function(tycho_harden_link target)
  target_link_options(${target} PRIVATE LINKER:-z,relro,-z,now)
  tycho_package_link(${target})
endfunction()

# tycho_compile(TARGET [TORCH] [COLD] [CHECKS]): how a target's sources are compiled, and with which precompiled header.
# Most of a build's time is the headers that nearly every source reads, and templates of JSON and of config structs. COLD
# optimises those less; CHECKS are tests: what they check is optimised, they are not. A precompiled header serves one way of
# compiling, so there is one for each; a source with options of its own says SKIP_PRECOMPILE_HEADERS.
function(tycho_compile target)
  cmake_parse_arguments(arg "TORCH;COLD;CHECKS" "" "" ${ARGN})
  set(pch tycho_pch)
  set(packages tycho_flags fmt::fmt nlohmann_json::nlohmann_json)
  set(headers ${CMAKE_SOURCE_DIR}/trainer/base/json.h <fmt/format.h> <algorithm> <filesystem> <fstream> <functional> <map> <memory> <optional> <string> <vector>)
  set(options)
  set(definitions)
  if(arg_TORCH)
    string(APPEND pch _torch)
    list(APPEND packages Torch::cpu OpenMP::OpenMP_CXX)
    list(PREPEND headers <ATen/core/Tensor.h> <ATen/ops/empty.h>)
    set(definitions AT_PARALLEL_OPENMP=1 AT_PER_OPERATOR_HEADERS)
    target_link_libraries(${target} PUBLIC Torch::cpu PRIVATE OpenMP::OpenMP_CXX)
  endif()
  if(arg_CHECKS)
    string(APPEND pch _checks)
    list(APPEND packages GTest::gtest)
    list(APPEND headers <gtest/gtest.h>)
    if(arg_TORCH)
      list(APPEND headers ${CMAKE_SOURCE_DIR}/tests/trainer/aten.h)
    endif()
    set(options -O0 -g0)
  elseif(arg_COLD AND NOT TYCHO_SANITIZE)
    string(APPEND pch _cold)
    set(options -Og)
  endif()
  if(NOT arg_CHECKS AND NOT arg_TORCH)
    list(APPEND packages tycho_hardening)
    target_link_libraries(${target} PRIVATE tycho_hardening)
  endif()
  if(NOT TARGET ${pch})
    file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/pch/pch.cpp CONTENT "// Carries a precompiled header.\n")
    add_library(${pch} STATIC ${CMAKE_BINARY_DIR}/pch/pch.cpp)
    target_link_libraries(${pch} PRIVATE ${packages})
    target_compile_definitions(${pch} PRIVATE ${definitions})
    target_compile_options(${pch} PRIVATE ${options})
    target_precompile_headers(${pch} PRIVATE ${headers})
  endif()
  target_link_libraries(${target} PRIVATE fmt::fmt)  # its definitions are the header's
  target_compile_definitions(${target} PRIVATE ${definitions})
  target_compile_options(${target} PRIVATE ${options})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL EXECUTABLE)  # -fPIE would not match the precompiled header
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${target} PRIVATE -fPIC)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${pch})
endfunction()

# tycho_glob(VARIABLE FOLDER SUFFIX [WITHOUT subfolders]): the files of a folder and of its subfolders, in their order.
function(tycho_glob variable folder suffix)
  cmake_parse_arguments(arg "" "" "WITHOUT" ${ARGN})
  file(GLOB_RECURSE files RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS ${folder}/*.${suffix})
  foreach(subfolder IN LISTS arg_WITHOUT)
    list(FILTER files EXCLUDE REGEX "^${folder}/${subfolder}/")
  endforeach()
  set(${variable} ${files} PARENT_SCOPE)
endfunction()

function(tycho_library name)
  cmake_parse_arguments(arg "TORCH;COLD;ALONE" "FOLDER" "WITHOUT;APART;DEPS" ${ARGN})
  cmake_parse_arguments(deps "" "" "PUBLIC;PRIVATE" ${arg_DEPS})
  if(NOT arg_FOLDER)
    set(arg_FOLDER ${name})
  endif()
  tycho_glob(arg_SOURCES ${arg_FOLDER} cpp WITHOUT ${arg_WITHOUT})
  tycho_glob(arg_HEADERS ${arg_FOLDER} h WITHOUT ${arg_WITHOUT})
  set(target tycho_${name})
  set(edges)
  if(arg_SOURCES)
    set(compiled ${arg_SOURCES})
    list(REMOVE_ITEM compiled ${arg_APART})
    add_library(${target} STATIC ${compiled})
    set(public PUBLIC)
  else()  # headers alone
    add_library(${target} INTERFACE)
    set(public INTERFACE)
  endif()
  target_link_libraries(${target} ${public} tycho_flags fmt::fmt)
  foreach(visibility PUBLIC PRIVATE)
    string(REPLACE PUBLIC ${public} link ${visibility})
    foreach(dep IN LISTS deps_${visibility})
      if(TARGET tycho_${dep})
        target_link_libraries(${target} ${link} tycho_${dep})
        list(APPEND edges ${dep})
      else()
        target_link_libraries(${target} ${link} ${dep})
      endif()
    endforeach()
  endforeach()
  set(kind)
  if(arg_COLD)
    set(kind COLD)
  endif()
  if(arg_TORCH)
    list(APPEND kind TORCH)
    list(APPEND edges torch)
  endif()
  if(arg_SOURCES)
    tycho_compile(${target} ${kind})
  endif()
  if(arg_SOURCES AND NOT arg_ALONE)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ${TYCHO_UNITY} UNITY_BUILD_BATCH_SIZE 4)
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)  # takes a source that is included for a header
  endif()
  tycho_glob(texts ${arg_FOLDER} cuh WITHOUT ${arg_WITHOUT})  # CUDA C that is text here
  tycho_layer(${name} SOURCES ${arg_SOURCES} ${texts} HEADERS ${arg_HEADERS} EDGES ${edges})
endfunction()

# tycho_layer(NAME SOURCES ... [HEADERS ...] EDGES ...): tells the house rules whose these files are and what they may
# include. tycho_library does it for libraries; programs and shared libraries say it themselves. The edge `torch` is LibTorch.
function(tycho_layer name)
  cmake_parse_arguments(arg "" "" "SOURCES;HEADERS;EDGES" ${ARGN})
  file(RELATIVE_PATH folder ${CMAKE_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR})
  set(property TYCHO_HEADERS)
  if(torch IN_LIST arg_EDGES)
    set(property TYCHO_HEADERS_TORCH)
  endif()
  foreach(header IN LISTS arg_HEADERS)
    set_property(GLOBAL APPEND PROPERTY ${property} ${folder}/${header})
  endforeach()
  set_property(GLOBAL APPEND_STRING PROPERTY TYCHO_LAYERS "${name} ${folder} : ${arg_EDGES} : ${arg_SOURCES} ${arg_HEADERS}\n")
endfunction()

function(tycho_write_layers)
  get_property(layers GLOBAL PROPERTY TYCHO_LAYERS)
  file(WRITE ${CMAKE_BINARY_DIR}/layers.txt "${layers}")
endfunction()
