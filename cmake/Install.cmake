# cmake --install build/cpu --prefix X: bin/tycho, bin/tycho-job, bin/tycho-convert, lib/libtycho_engine.so, lib/libtycho_cuda.so, share/tycho. The tree can be
# moved; LibTorch stays where it is (see CMAKE_INSTALL_RPATH in LibTorch.cmake).
foreach(target tycho tycho_engine tycho_cuda)
  if(TARGET ${target})
    install(TARGETS ${target} RUNTIME DESTINATION bin LIBRARY DESTINATION lib)
  endif()
endforeach()
install(PROGRAMS containers/tycho-job containers/tycho-convert DESTINATION bin)
install(DIRECTORY recipes DESTINATION share/tycho)
install(FILES LICENSE DESTINATION share/tycho)
