# Tests of trainer/bench: what `tycho bench` measures.
tycho_test(storage_bench_test LIBS storage_bench checkpoint SOURCES trainer/bench/storage_bench_test.cpp)
tycho_test(comm_bench_test TORCH LIBS comm_bench SOURCES trainer/bench/comm_bench_test.cpp)
