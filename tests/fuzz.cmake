# Parsers of untrusted bytes: a test that replays the corpora, and with the preset `fuzz` (clang) the fuzzer itself.
#   tests/fuzz/run_fuzz.sh 60 FOLDER [TARGET...]
set(fuzz_sources fuzz/data_targets.cpp fuzz/recipe_targets.cpp fuzz/record_targets.cpp)
set(fuzz_libraries bindings_define bindings_import callbacks checkpoint config convert data rendezvous sweep)
tycho_test(fuzz_replay_test SOURCES fuzz/replay_test.cpp ${fuzz_sources} LIBS ${fuzz_libraries})
target_compile_definitions(fuzz_replay_test PRIVATE TYCHO_CORPUS="${CMAKE_CURRENT_SOURCE_DIR}/fuzz/corpus")
if(TYCHO_SANITIZE MATCHES fuzzer)
  add_executable(tycho_fuzz fuzz/fuzz_main.cpp ${fuzz_sources})
  list(TRANSFORM fuzz_libraries PREPEND tycho_)
  target_link_libraries(tycho_fuzz PRIVATE ${fuzz_libraries} tycho_flags)
  target_link_options(tycho_fuzz PRIVATE -fsanitize=fuzzer)
endif()
