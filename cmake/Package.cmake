# What TYCHO_PACKAGE changes, for binaries that run elsewhere (scripts/package): how they are linked. They consist of the objects that
# the tests run with.
option(TYCHO_PACKAGE "Link for packages that run on other machines" OFF)
if(TYCHO_PACKAGE)
  set(CMAKE_INSTALL_RPATH "$ORIGIN" "$ORIGIN/../lib/tycho")
endif()

# tycho_package_link(TARGET): in packages, what is newer than the libstdc++ of RHEL 9 is not asked of the system.
function(tycho_package_link target)
  if(TYCHO_PACKAGE)
    set(source ${CMAKE_SOURCE_DIR}/cmake/older_libstdcxx.cpp)
    target_sources(${target} PRIVATE ${source})
    set_source_files_properties(${source} PROPERTIES SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()
