# An open run without a model: how its tensors are shown and kept, and how the host measures its steps.
tycho_test(session_test LIBS bindings_run SOURCES bindings/run/npy_test.cpp bindings/run/tensor_text_test.cpp
  host/bench/step_bench_test.cpp ${CMAKE_SOURCE_DIR}/host/bench/step_bench.cpp
  host/start/probed_steps_test.cpp ${CMAKE_SOURCE_DIR}/host/start/probed_steps.cpp)
