# Puts text files into a library.
#   tycho_embed(TARGET HEADER h TYPE T FUNCTION f ROOT folder FILES ...)   at configure time: adds a generated source that defines
#     const std::vector<T>& f(), which `h` declares; a T is {name, path in the tree, text}, the name as Lua's require has it
#   cmake -DOUT=... -DHEADER=... ... -DFILES=a.lua,b.lua -P EmbedText.cmake   at build time: writes it
if(CMAKE_SCRIPT_MODE_FILE)
  set(text "// Made by cmake/EmbedText.cmake from ${ROOT}/: do not edit.\n#include \"${HEADER}\"\n\nnamespace tycho {\nnamespace {\n\n")
  set(rows)
  string(REPLACE "," ";" FILES "${FILES}")
  foreach(file IN LISTS FILES)
    file(READ ${TREE}/${ROOT}/${file} hex HEX)
    # As characters in braces: no limit on length, no delimiter that the text could contain.
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    set(module ${file})
    if(file MATCHES "\\.lua$")
      string(REGEX REPLACE "(/init)?\\.lua$" "" module ${file})
      string(REPLACE "/" "." module ${module})
    endif()
    string(MAKE_C_IDENTIFIER "text_${module}" name)
    string(APPEND text "const unsigned char ${name}[] = {${bytes}};\n")
    string(APPEND rows "      {\"${module}\", \"${ROOT}/${file}\", {reinterpret_cast<const char*>(${name}), sizeof ${name}}},\n")
  endforeach()
  string(APPEND text "\n}  // namespace\n\nconst std::vector<${TYPE}>& ${FUNCTION}() {\n  static const std::vector<${TYPE}> texts = {\n${rows}")
  string(APPEND text "  };\n  return texts;\n}\n\n}  // namespace tycho\n")
  file(WRITE ${OUT} "${text}")
  return()
endif()

function(tycho_embed target)
  cmake_parse_arguments(arg "" "HEADER;TYPE;FUNCTION;ROOT" "FILES" ${ARGN})
  set(out ${CMAKE_BINARY_DIR}/${arg_FUNCTION}.cpp)
  list(TRANSFORM arg_FILES PREPEND ${CMAKE_SOURCE_DIR}/${arg_ROOT}/ OUTPUT_VARIABLE inputs)
  list(JOIN arg_FILES "," files)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DTREE=${CMAKE_SOURCE_DIR} -DHEADER=${arg_HEADER} -DTYPE=${arg_TYPE} -DFUNCTION=${arg_FUNCTION}
      -DROOT=${arg_ROOT} -DFILES=${files} -P ${CMAKE_SOURCE_DIR}/cmake/EmbedText.cmake
    DEPENDS ${inputs} ${CMAKE_SOURCE_DIR}/cmake/EmbedText.cmake COMMENT "Embedding ${arg_ROOT}/")
  target_sources(${target} PRIVATE ${out})
  set_source_files_properties(${out} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()
