# cmake --install build/cpu --prefix X: bin/tycho, bin/tycho-job, lib/libtycho_engine.so, lib/libtycho_cuda.so, the manual
# page, completions for three shells, share/tycho. The tree can be moved; LibTorch stays where it is (see CMAKE_INSTALL_RPATH in LibTorch.cmake).
# share/tycho/installed.txt lists every file, relative to X.
foreach(target tycho tycho_engine tycho_cuda)
  if(TARGET ${target})
    install(TARGETS ${target} RUNTIME DESTINATION bin LIBRARY DESTINATION lib)
  endif()
endforeach()
# Names of local functions stand twice in a binary: debuggers read those of the debug information, which stay.
install(CODE "
  foreach(file IN LISTS CMAKE_INSTALL_MANIFEST_FILES)
    execute_process(COMMAND ${CMAKE_STRIP} --discard-all \"\$ENV{DESTDIR}\${file}\" COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
")
install(PROGRAMS containers/tycho-job DESTINATION bin)
install(DIRECTORY recipes DESTINATION share/tycho)
install(FILES LICENSE DESTINATION share/tycho)

# What the program itself prints.
set(TYCHO_GENERATED ${CMAKE_BINARY_DIR}/installed)
install(CODE "
  function(print_to file)
    file(MAKE_DIRECTORY ${TYCHO_GENERATED})
    execute_process(COMMAND \${ARGN} OUTPUT_FILE ${TYCHO_GENERATED}/\${file} RESULT_VARIABLE failed)
    if(failed)
      message(FATAL_ERROR \"[install] could not make \${file}: \${ARGN} ended with \${failed}\")
    endif()
  endfunction()
  print_to(tycho.1 ${CMAKE_SOURCE_DIR}/scripts/make_man_page $<TARGET_FILE:tycho>)
  print_to(tycho.bash $<TARGET_FILE:tycho> completion bash)
  print_to(_tycho $<TARGET_FILE:tycho> completion zsh)
  print_to(tycho.fish $<TARGET_FILE:tycho> completion fish)
")
install(FILES ${TYCHO_GENERATED}/tycho.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${TYCHO_GENERATED}/tycho.bash DESTINATION share/bash-completion/completions RENAME tycho)
install(FILES ${TYCHO_GENERATED}/_tycho DESTINATION share/zsh/site-functions)
install(FILES ${TYCHO_GENERATED}/tycho.fish DESTINATION share/fish/vendor_completions.d)

# Other users cannot run a program whose libraries lie in a home folder that is closed to them.
install(CODE "
  set(folder \"${TYCHO_TORCH}/lib\")
  set(closed)
  while(NOT folder STREQUAL \"/\")
    execute_process(COMMAND stat -c %A \${folder} OUTPUT_VARIABLE mode ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    if(NOT mode MATCHES \"[xt]$\")
      set(closed \${folder})
    endif()
    get_filename_component(folder \${folder} DIRECTORY)
  endwhile()
  if(closed)
    message(WARNING \"[install] LibTorch is in ${TYCHO_TORCH}/lib, and \${closed} is closed to other users: they cannot run this tree. \"
                    \"Set TYCHO_CACHE to a folder that everybody can read and build again, or give them another LibTorch by LD_LIBRARY_PATH.\")
  endif()
")

# Last: what was installed before it, and itself.
install(CODE "
  set(list \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/share/tycho/installed.txt\")
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES \${CMAKE_INSTALL_PREFIX}/share/tycho/installed.txt)
  set(names)
  foreach(file IN LISTS CMAKE_INSTALL_MANIFEST_FILES)
    file(RELATIVE_PATH name \${CMAKE_INSTALL_PREFIX} \${file})
    string(APPEND names \"\${name}\\n\")
  endforeach()
  file(WRITE \${list} \"\${names}\")
")
