# Parsers of untrusted bytes: a test that replays the corpora, and with the preset `fuzz` (clang) the fuzzer itself.
#   TYCHO_FUZZ_TARGET=ledger build/fuzz/bin/tycho_fuzz -max_total_time=60 NEW_FOLDER tests/fuzz/corpus/ledger
tycho_test(fuzz_replay_test SOURCES fuzz/replay_test.cpp fuzz/targets.cpp LIBS bindings_define bindings_import checkpoint data rendezvous sweep)
target_compile_definitions(fuzz_replay_test PRIVATE TYCHO_CORPUS="${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus")
if(TYCHO_SANITIZE MATCHES fuzzer)
  add_executable(tycho_fuzz fuzz/fuzz_main.cpp fuzz/targets.cpp)
  target_link_libraries(tycho_fuzz PRIVATE tycho_bindings_define tycho_bindings_import tycho_checkpoint tycho_data tycho_rendezvous tycho_sweep tycho_flags)
  target_link_options(tycho_fuzz PRIVATE -fsanitize=fuzzer)
endif()
