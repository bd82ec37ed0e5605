# Models of Hugging Face in and out.
tycho_test(convert_test LIBS convert SOURCES trainer/convert/float_types_test.cpp trainer/convert/foundry_blocks_test.cpp trainer/convert/foundry_inits_test.cpp trainer/convert/hf_config_test.cpp
  trainer/convert/hf_export_test.cpp trainer/convert/hf_import_test.cpp)
target_compile_definitions(convert_test PRIVATE TYCHO_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")
tycho_test(initial_weights_test TORCH LIBS models optim restore SOURCES trainer/restore/initial_weights_test.cpp
  trainer/restore/composer_steps_test.cpp trainer/restore/foundry_oracles_test.cpp trainer/restore/hf_oracles_test.cpp
  trainer/restore/peft_oracles_test.cpp)
target_compile_definitions(initial_weights_test PRIVATE TYCHO_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")
