# The Lua border, the command line, and the Lua specs.
tycho_test(lua_util_test SOURCES bindings/define/lua_util_test.cpp bindings/define/row_function_test.cpp bindings/define/standard_functions_test.cpp bindings/define/watch_test.cpp LIBS bindings_define)
tycho_test(strings_test SOURCES bindings/define/pattern_test.cpp bindings/define/strings_test.cpp LIBS bindings_define)
tycho_test(recipe_test SOURCES bindings/define/recipe_test.cpp LIBS bindings_define)
tycho_test(optimizer_recipes_test TORCH SOURCES bindings/define/optimizer_recipes_test.cpp trainer/optim/published_problem.cpp LIBS bindings_define optim)
tycho_test(source_file_test SOURCES bindings/define/source_file_test.cpp LIBS bindings_define)
tycho_test(lua_callbacks_test SOURCES bindings/run/lua_callbacks_test.cpp bindings/run/lua_debug_test.cpp bindings/run/lua_limits_test.cpp bindings/run/lua_numbers_test.cpp LIBS bindings_run)
target_compile_definitions(lua_callbacks_test PRIVATE TYCHO_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
tycho_test(import_test SOURCES bindings/import/comments_test.cpp bindings/import/document_test.cpp bindings/import/foundry_callbacks_test.cpp bindings/import/foundry_chat_test.cpp bindings/import/foundry_data_test.cpp bindings/import/foundry_eval_test.cpp bindings/import/foundry_icl_test.cpp bindings/import/foundry_test.cpp bindings/import/import_test.cpp bindings/import/interpolation_test.cpp bindings/import/lua_writer_test.cpp bindings/import/nanotron_test.cpp bindings/import/profiles_test.cpp bindings/import/titan_test.cpp bindings/import/wandb_sweep_test.cpp
  LIBS bindings_import)
target_compile_definitions(import_test PRIVATE TYCHO_SOURCE_DIR="${CMAKE_SOURCE_DIR}")

add_library(fake_engine MODULE host/fake_engine.cpp)
target_link_libraries(fake_engine PRIVATE tycho_flags tycho_rendezvous tycho_run_folder tycho_session)
tycho_compile(fake_engine COLD)
add_library(few_threads MODULE host/few_threads.cpp)
target_link_libraries(few_threads PRIVATE tycho_flags ${CMAKE_DL_LIBS})
tycho_compile(few_threads COLD)
tycho_test(cli_test SOURCES host/cli_test.cpp host/prompts_test.cpp LIBS base)
tycho_test(engine_test SOURCES host/engine_test.cpp LIBS base)
tycho_test(golden_errors_test SOURCES host/golden_errors_test.cpp LIBS base)
tycho_test(verbs_test SOURCES host/verbs/ckpt_test.cpp host/verbs/completion_test.cpp host/verbs/config_test.cpp host/verbs/convert_test.cpp host/verbs/ctl_test.cpp host/verbs/diff_test.cpp
  host/data/contents_test.cpp host/data/map_test.cpp host/data/preload_test.cpp host/verbs/doctor_test.cpp host/verbs/import_test.cpp host/verbs/init_test.cpp host/verbs/launch_test.cpp host/plan/schedule_test.cpp host/verbs/plan_test.cpp host/verbs/rerun_test.cpp host/verbs/run_test.cpp host/verbs/test_test.cpp host/verbs/tokenizer_test.cpp host/verbs/types_test.cpp host/docs_examples_test.cpp host/model_presets_test.cpp
  host/shipped_recipes_test.cpp LIBS base callbacks)
tycho_test(mesh_table_test SOURCES host/mesh_table_test.cpp LIBS base)
# The launcher alone, with programs of the shell as ranks; launch_test.cpp starts the whole program.
set(launch_sources process/child_process.cpp process/signal_queue.cpp throw_away_folder.cpp launch/local_ranks.cpp launch/prefixed_lines.cpp launch/rank_reports.cpp)
list(TRANSFORM launch_sources PREPEND ${CMAKE_SOURCE_DIR}/host/)
tycho_test(launch_parts_test SOURCES host/launch/local_ranks_test.cpp host/launch/prefixed_lines_test.cpp host/process/signal_queue_test.cpp
  host/process/child_process_test.cpp host/throw_away_folder_test.cpp ${launch_sources} LIBS rendezvous checkpoint)
tycho_test(torch_folder_test SOURCES host/torch_folder_test.cpp ${CMAKE_SOURCE_DIR}/host/torch_folder.cpp LIBS base)
tycho_test(progress_line_test SOURCES host/data/progress_line_test.cpp ${CMAKE_SOURCE_DIR}/host/data/progress_line.cpp ${CMAKE_SOURCE_DIR}/host/standard_streams.cpp LIBS metrics)
tycho_test(plain_line_test SOURCES host/repl/plain_line_test.cpp ${CMAKE_SOURCE_DIR}/host/repl/plain_line.cpp LIBS base)
tycho_test(repl_test SOURCES host/repl/json_lines_test.cpp host/repl/repl_test.cpp LIBS base)
tycho_test(hub_recipes_test SOURCES host/hub_recipes_test.cpp trainer/hub/hub_server.cpp trainer/data/storage/http_server.cpp LIBS storage)
set_tests_properties(hub_recipes_test PROPERTIES LABELS torch)
foreach(name cli_test engine_test repl_test golden_errors_test mesh_table_test verbs_test hub_recipes_test)
  target_compile_definitions(${name} PRIVATE TYCHO_PROGRAM="$<TARGET_FILE:tycho>" TYCHO_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
    TYCHO_FAKE_ENGINE="$<TARGET_FILE:fake_engine>")
  add_dependencies(${name} tycho fake_engine)
endforeach()
target_compile_definitions(engine_test PRIVATE TYCHO_FEW_THREADS="$<TARGET_FILE:few_threads>")
add_dependencies(engine_test few_threads)

tycho_script_test(repl_terminal SCRIPT host/repl/terminal.sh TIMEOUT 240 LABELS torch)
tycho_script_test(old_runs SCRIPT host/old_runs.sh TIMEOUT 240 LABELS torch)
tycho_script_test(repl_memory SCRIPT host/repl/memory.sh TIMEOUT 120 LABELS torch)
tycho_script_test(route SCRIPT host/route.sh TIMEOUT 240 LABELS torch)
tycho_script_test(lua_specs SCRIPT house/lua_specs.sh TIMEOUT 240)
tycho_test(objects_test SOURCES bindings/run/objects_test.cpp LIBS bindings_run)
tycho_script_test(follow SCRIPT host/follow.sh)
tycho_script_test(stalled_reader SCRIPT host/stalled_reader.sh TIMEOUT 600 LABELS torch)
set_tests_properties(verbs_test PROPERTIES TIMEOUT 900)  # it trains and converts dozens of times
tycho_script_test(own_optimizers SCRIPT host/own_optimizers.sh TIMEOUT 600 LABELS torch)
