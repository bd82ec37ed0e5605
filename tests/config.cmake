# The config of a run, its folder and its state.
tycho_test(config_test LIBS config run_folder SOURCES
  trainer/config_test.cpp trainer/config_io_test.cpp trainer/idle_keys_test.cpp trainer/models/rules_test.cpp trainer/run_folder_test.cpp trainer/run_record_test.cpp trainer/train_state_test.cpp)
