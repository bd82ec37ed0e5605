# How a run that is open is shown.
tycho_test(session_test SOURCES bindings/run/npy_test.cpp host/start/probed_steps_test.cpp host/bench/step_bench_test.cpp bindings/run/tensor_text_test.cpp LIBS session)
