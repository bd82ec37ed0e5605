# Whole runs, evaluation and text from them, and runs under kill -9.
add_library(tycho_run_fixture STATIC trainer/run/run_fixture.cpp)
target_link_libraries(tycho_run_fixture PUBLIC tycho_run tycho_flags GTest::gtest)
tycho_compile(tycho_run_fixture TORCH CHECKS)
tycho_test(run_test TORCH LIBS run_fixture SOURCES trainer/run/chat_run_test.cpp trainer/run/run_test.cpp trainer/run/resume_run_test.cpp trainer/run/second_start_test.cpp trainer/run/old_checkpoint_test.cpp trainer/run/run_data_test.cpp trainer/run/optimizer_run_test.cpp
  trainer/run/open_session_test.cpp trainer/saving/resume_test.cpp trainer/saving/unit_tensors_test.cpp trainer/train/replica_check_test.cpp
  trainer/saving/saver_test.cpp trainer/train/with_controls_test.cpp trainer/run/live_tensor_test.cpp trainer/run/loss_watch_run_test.cpp)
target_compile_definitions(run_test PRIVATE TYCHO_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")
tycho_test(eval_test TORCH LIBS run_fixture prepare SOURCES trainer/models/decoder_oracle.cpp trainer/run/loss_by_position_test.cpp
  trainer/run/bits_per_byte_run_test.cpp trainer/run/evaluate_checkpoint_test.cpp trainer/run/evaluate_run_test.cpp trainer/eval/evaluate_test.cpp
  trainer/run/open_chat_test.cpp trainer/eval/kept_text_test.cpp trainer/eval/generate_test.cpp trainer/eval/sampling_test.cpp trainer/eval/text_stream_test.cpp
  trainer/eval/ordered_outputs_test.cpp)
target_compile_definitions(eval_test PRIVATE TYCHO_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")
# The parts of the loop and of saves, each without a trainer.
tycho_test(loop_test TORCH LIBS run_fixture SOURCES trainer/train/evaluations_test.cpp trainer/train/training_data_test.cpp trainer/train/weight_update_test.cpp trainer/train/batch_pass_test.cpp
  trainer/train/live_controls_test.cpp trainer/train/step_guard_test.cpp trainer/train/run_checkpoints_test.cpp
  trainer/saving/save_retries_test.cpp trainer/saving/shard_collection_test.cpp)
# Ranks that are processes, forked before any thread starts.
tycho_test(saver_kill_test TORCH LIBS run_fixture SOURCES trainer/train/saver_kill_test.cpp)
# Questions put to a model, against LLM Foundry and lm-evaluation-harness.
tycho_test(icl_test TORCH LIBS run_fixture SOURCES trainer/tasks/answers_test.cpp trainer/tasks/few_shot_test.cpp trainer/eval/icl_evaluator_test.cpp
  trainer/tasks/prompts_test.cpp trainer/tasks/python_text_test.cpp trainer/tasks/result_test.cpp trainer/run/icl_run_test.cpp trainer/run/loglikelihood_test.cpp)
target_compile_definitions(icl_test PRIVATE TYCHO_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")
# Two hundred steps each, and the memory of whole runs.
tycho_test(curves_test TORCH LIBS run_fixture SOURCES trainer/run/training_curves_test.cpp
  trainer/plan/plan_memory_test.cpp)
target_compile_definitions(curves_test PRIVATE TYCHO_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")
# Ranks that are threads.
tycho_test(sharded_run_test TORCH LIBS run_fixture SOURCES trainer/run/sharded_run_test.cpp
  trainer/run/sharded_session_test.cpp)
# A moving average of the weights, on ranks that are threads.
tycho_test(ema_test TORCH LIBS run_fixture huggingface SOURCES trainer/optim/weight_average_test.cpp trainer/run/ema_run_test.cpp)
target_compile_definitions(ema_test PRIVATE TYCHO_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")
tycho_test(canonical_run_test TORCH LIBS run_fixture SOURCES trainer/run/canonical_run_test.cpp
  trainer/run/canonical_route_test.cpp)
tycho_test(loss_run_test TORCH LIBS run_fixture SOURCES trainer/run/loss_run_test.cpp)
tycho_test(mesh_matrix_test TORCH LIBS run_fixture SOURCES trainer/run/mesh_matrix_test.cpp)
target_compile_definitions(mesh_matrix_test PRIVATE TYCHO_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")
set(mesh_matrix_parts 3)
set_tests_properties(mesh_matrix_test PROPERTIES ENVIRONMENT "${environment};GTEST_TOTAL_SHARDS=${mesh_matrix_parts};GTEST_SHARD_INDEX=0")
foreach(part RANGE 2 ${mesh_matrix_parts})
  math(EXPR index "${part} - 1")
  add_test(NAME mesh_matrix_test_${part} COMMAND mesh_matrix_test --gtest_output=xml:${results}/mesh_matrix_test_${part}.xml)
  set_tests_properties(mesh_matrix_test_${part} PROPERTIES TIMEOUT ${timeout} LABELS torch
    ENVIRONMENT "${environment};GTEST_TOTAL_SHARDS=${mesh_matrix_parts};GTEST_SHARD_INDEX=${index}")
endforeach()
tycho_test(remote_run_test TORCH SOURCES trainer/run/remote_run_test.cpp LIBS run_fixture)
tycho_test(mesh_checkpoints_test TORCH LIBS run_fixture SOURCES trainer/run/mesh_checkpoints_test.cpp)
tycho_test(fp8_gather_run_test TORCH LIBS run_fixture SOURCES trainer/run/fp8_gather_run_test.cpp)
tycho_test(tensor_parallel_run_test TORCH LIBS run_fixture SOURCES trainer/run/tensor_parallel_run_test.cpp)
tycho_test(context_parallel_run_test TORCH LIBS run_fixture SOURCES trainer/run/context_parallel_run_test.cpp)
tycho_test(pipeline_run_test TORCH LIBS run_fixture SOURCES trainer/run/pipeline_run_test.cpp)
# Short rounds; the script's default of 200 kills is for people.
add_test(NAME run_kill9 COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/kill9/run_kill9.sh $<TARGET_FILE:tycho> 8)
add_test(NAME run_kill9_sharded COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/kill9/run_kill9.sh $<TARGET_FILE:tycho> 8 2)
set_tests_properties(run_kill9 run_kill9_sharded PROPERTIES TIMEOUT 600)
# Recipes in Lua over the engine.
tycho_test(lua_run_test TORCH LIBS bindings_run run_fixture SOURCES bindings/run/lua_run_test.cpp)
target_compile_definitions(lua_run_test PRIVATE TYCHO_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")
