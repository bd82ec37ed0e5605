# Models of Hugging Face in and out.
tycho_test(convert_test LIBS huggingface SOURCES trainer/huggingface/float_types_test.cpp trainer/families/foundry_blocks_test.cpp trainer/huggingface/foundry_inits_test.cpp trainer/huggingface/family_folders_test.cpp
  trainer/huggingface/hf_config_test.cpp
  trainer/huggingface/hf_export_test.cpp trainer/huggingface/hf_import_test.cpp trainer/huggingface/presets_test.cpp)
target_compile_definitions(convert_test PRIVATE TYCHO_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")
tycho_test(initial_weights_test TORCH LIBS models optim saving SOURCES trainer/saving/initial_weights_test.cpp
  trainer/saving/composer_steps_test.cpp trainer/saving/foundry_oracles_test.cpp trainer/saving/fp8_oracles_test.cpp trainer/saving/hf_oracles_test.cpp trainer/saving/family_oracles_test.cpp
  trainer/saving/family_steps_test.cpp trainer/saving/peft_oracles_test.cpp trainer/saving/spec_fields_test.cpp)
target_compile_definitions(initial_weights_test PRIVATE TYCHO_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")
tycho_script_test(gguf_peer SCRIPT host/gguf_peer.sh TIMEOUT 900)
tycho_script_test(jsonschema_peer SCRIPT host/jsonschema_peer.sh TIMEOUT 300)
