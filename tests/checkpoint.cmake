# Tests of trainer/checkpoint, and the process that is killed with SIGKILL.
tycho_test(checkpoint_test LIBS lock checkpoint SOURCES
  trainer/checkpoint/box_test.cpp trainer/checkpoint/checkpoint_test.cpp trainer/checkpoint/checkpoint_uploads_test.cpp trainer/checkpoint/fetched_checkpoint_test.cpp trainer/checkpoint/place_lease_test.cpp trainer/checkpoint/compare_test.cpp trainer/checkpoint/listing_test.cpp
  trainer/checkpoint/manifest_test.cpp trainer/lock/owned_files_test.cpp trainer/lock/owner_test.cpp trainer/lock/owner_watch_test.cpp trainer/checkpoint/pieces_test.cpp trainer/saving/retry_policy_test.cpp trainer/saving/writer_thread_test.cpp
  trainer/checkpoint/power_cut_test.cpp trainer/checkpoint/reader_test.cpp trainer/checkpoint/reshard_test.cpp
  trainer/checkpoint/retention_test.cpp trainer/lock/run_lock_test.cpp trainer/checkpoint/safetensors_test.cpp)
target_compile_definitions(checkpoint_test PRIVATE TYCHO_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")

add_executable(save_loop trainer/checkpoint/save_loop.cpp)
target_link_libraries(save_loop PRIVATE tycho_lock tycho_checkpoint)
add_test(NAME checkpoint_kill9
  COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/kill9/checkpoint_kill9.sh $<TARGET_FILE:save_loop> 200)
set_tests_properties(checkpoint_kill9 PROPERTIES TIMEOUT 300)
