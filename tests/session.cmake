# How a run that is open is shown.
tycho_test(session_test SOURCES trainer/session/npy_test.cpp trainer/session/probe_test.cpp trainer/session/step_bench_test.cpp trainer/session/tensor_text_test.cpp LIBS session)
