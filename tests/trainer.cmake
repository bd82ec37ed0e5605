tycho_test(run_test TORCH LIBS trainer eval SOURCES trainer/run_fixture.cpp trainer/run_test.cpp trainer/eval/sampling_test.cpp)
