# Ranks: what they are told, what they tell each other, and whole runs of several.
tycho_test(parallel_test TORCH LIBS comm sharding SOURCES trainer/comm/communicator_test.cpp trainer/comm/device_rank_sums_test.cpp trainer/comm/collective_strings_test.cpp
  trainer/comm/mesh_test.cpp trainer/comm/nccl/nccl_group_test.cpp trainer/comm/nccl/rank_pairs_test.cpp trainer/comm/nccl/sum_algorithms_test.cpp trainer/comm/recording_test.cpp
  trainer/comm/tcp_failures_test.cpp
  trainer/comm/tcp_test.cpp trainer/sharding/unit_store_test.cpp trainer/comm/collective_checks_test.cpp)
tycho_test(socket_collectives_test LIBS sockets SOURCES trainer/comm/sockets/transfers_test.cpp trainer/comm/sockets/rank_sums_test.cpp
  trainer/comm/sockets/socket_collectives_test.cpp)
tycho_test(ranks_test SOURCES ranks/ranks_test.cpp LIBS base)
tycho_test(prompt_ranks_test SOURCES ranks/prompt_test.cpp LIBS base)
tycho_test(network_ranks_test SOURCES ranks/network_test.cpp LIBS base)
tycho_test(sharded_ranks_test SOURCES ranks/sharded_ranks_test.cpp LIBS base)
tycho_test(lost_in_phases_test SOURCES ranks/lost_in_phases_test.cpp LIBS base)
set(tests_of_ranks ranks_test prompt_ranks_test network_ranks_test sharded_ranks_test lost_in_phases_test)
foreach(name IN LISTS tests_of_ranks)
  target_compile_definitions(${name} PRIVATE TYCHO_PROGRAM="$<TARGET_FILE:tycho>" TYCHO_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_dependencies(${name} tycho tycho_engine)
endforeach()
if(TYCHO_SANITIZE)
  # They load LibTorch, whose threads may end while the leak checker looks at them: it then dies itself, now and then.
  set_tests_properties(${tests_of_ranks} PROPERTIES ENVIRONMENT "${environment};ASAN_OPTIONS=detect_leaks=0")
endif()
