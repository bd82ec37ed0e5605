# The config of a run, its folder and its state.
tycho_test(config_test LIBS config run_folder train_state SOURCES
  trainer/config/train_config_test.cpp trainer/config/config_io_test.cpp trainer/config/data_rules_test.cpp trainer/config/data_stages_test.cpp trainer/config/idle_keys_test.cpp trainer/families/check_test.cpp trainer/machine/config_test.cpp trainer/parallel/config_test.cpp trainer/parallel/mesh_shape_test.cpp trainer/run_folder/restarts_test.cpp trainer/run_folder/run_folder_test.cpp trainer/run_folder/run_record_test.cpp trainer/loop/train_state_test.cpp)
