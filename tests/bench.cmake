# Tests of trainer/measure: what `tycho bench` measures.
tycho_test(storage_bench_test LIBS measure checkpoint SOURCES trainer/measure/storage_bench_test.cpp)
tycho_test(data_bench_test LIBS measure SOURCES trainer/measure/data_bench_test.cpp)
target_compile_definitions(data_bench_test PRIVATE TYCHO_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")
tycho_test(comm_bench_test TORCH LIBS run SOURCES trainer/run/comm_bench_test.cpp)
