# The Debian packages that Tycho uses; scripts/setup installs them.
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Threads REQUIRED)
find_package(cxxopts REQUIRED)
find_package(OpenMP REQUIRED COMPONENTS CXX)
find_package(PkgConfig REQUIRED)
pkg_check_modules(LUAJIT REQUIRED IMPORTED_TARGET luajit)
find_package(yaml-cpp REQUIRED)
# The static library, so that an installed `tycho` needs none beside it; its terminal library belongs to every system.
find_path(READLINE_INCLUDE_DIR readline/readline.h REQUIRED)
find_library(READLINE_STATIC libreadline.a REQUIRED)
find_library(TINFO tinfo REQUIRED)
add_library(Readline::Readline INTERFACE IMPORTED GLOBAL)
target_include_directories(Readline::Readline SYSTEM INTERFACE ${READLINE_INCLUDE_DIR})
target_link_libraries(Readline::Readline INTERFACE ${READLINE_STATIC} ${TINFO})
find_path(TOMLPLUSPLUS_INCLUDE_DIR toml++/toml.h REQUIRED)  # headers only
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
# Declarations only: the code is LibTorch's own Gloo, and two of them in one process do not mix.
find_path(GLOO_INCLUDE_DIR gloo/config.h REQUIRED)
if(TYCHO_TESTS)
  find_package(GTest REQUIRED)
endif()
