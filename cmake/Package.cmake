# What TYCHO_PACKAGE changes, for binaries that run elsewhere (scripts/package): no path of this machine in them, and libraries
# beside them alone.
option(TYCHO_PACKAGE "Build for packages that run on other machines" OFF)
if(TYCHO_PACKAGE)
  set(CMAKE_INSTALL_RPATH "$ORIGIN" "$ORIGIN/../lib/tycho")
  # LibTorch's checks print the files of its headers. Our own sources are in debug information alone, which packages leave out.
  target_compile_options(Torch::c10 INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${TYCHO_TORCH}=torch>)
endif()
