# The Debian packages that Tycho uses; scripts/setup installs them.
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Threads REQUIRED)
find_package(cxxopts REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(PkgConfig REQUIRED)
pkg_check_modules(LUAJIT REQUIRED IMPORTED_TARGET luajit)
find_package(yaml-cpp REQUIRED)
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)  # headers only
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
if(TYCHO_TESTS)
  find_package(GTest REQUIRED)
endif()
