# Puts Lua files into the binary as text.
#   tycho_embed_lua(TARGET FILES...)   at configure time: adds a generated source to TARGET
#   cmake -DOUT=... -DROOT=... -DFILES=a.lua,b.lua -P EmbedLua.cmake   at build time: writes it
if(CMAKE_SCRIPT_MODE_FILE)
  set(text "// Made by cmake/EmbedLua.cmake from lua/: do not edit.\n#include \"bindings/define/embedded.h\"\n\nnamespace tycho {\n")
  string(APPEND text "\nconst std::vector<EmbeddedModule>& embedded_modules() {\n  static const std::vector<EmbeddedModule> modules = {\n")
  string(REPLACE "," ";" FILES "${FILES}")
  foreach(file IN LISTS FILES)
    file(READ ${ROOT}/lua/${file} hex HEX)
    # As characters in braces: no limit on length, no delimiter that the text could contain.
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
    string(REGEX REPLACE "(/init)?\\.lua$" "" module ${file})
    string(REPLACE "/" "." module ${module})
    string(MAKE_C_IDENTIFIER ${module} name)
    string(APPEND arrays "const unsigned char ${name}[] = {${bytes}};\n")
    string(APPEND text "      {\"${module}\", \"lua/${file}\", {reinterpret_cast<const char*>(${name}), sizeof ${name}}},\n")
  endforeach()
  string(REPLACE "namespace tycho {\n" "namespace tycho {\nnamespace {\n\n${arrays}\n}  // namespace\n" text "${text}")
  string(APPEND text "  };\n  return modules;\n}\n\n}  // namespace tycho\n")
  file(WRITE ${OUT} "${text}")
  return()
endif()

function(tycho_embed_lua target)
  set(out ${CMAKE_BINARY_DIR}/embedded_lua.cpp)
  list(TRANSFORM ARGN PREPEND ${CMAKE_SOURCE_DIR}/lua/ OUTPUT_VARIABLE inputs)
  list(JOIN ARGN "," files)
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DROOT=${CMAKE_SOURCE_DIR} -DFILES=${files} -P ${CMAKE_SOURCE_DIR}/cmake/EmbedLua.cmake
    DEPENDS ${inputs} ${CMAKE_SOURCE_DIR}/cmake/EmbedLua.cmake COMMENT "Embedding lua/")
  target_sources(${target} PRIVATE ${out})
endfunction()
