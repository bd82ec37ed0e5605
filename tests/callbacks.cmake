# Callbacks, commands and control of running runs: the part that knows no LibTorch, then whole runs.
tycho_test(callbacks_test SOURCES trainer/callbacks/runner_test.cpp trainer/callbacks/command_test.cpp trainer/control/channel_test.cpp
  LIBS callbacks control checkpoint)
tycho_test(callbacks_run_test TORCH SOURCES trainer/run/callbacks_run_test.cpp trainer/run/schedule_run_test.cpp trainer/run/save_failures_test.cpp LIBS run_fixture)
tycho_test(profiler_test TORCH SOURCES trainer/profiler/profiler_test.cpp LIBS run_fixture)
tycho_script_test(attach SCRIPT control/attach.sh TIMEOUT 120)
