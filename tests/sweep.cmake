# Sweeps: their parts alone, and whole ones with an engine that pretends to train.
tycho_test(sweep_test LIBS sweep SOURCES
  trainer/sweep/board_test.cpp trainer/sweep/claim_test.cpp trainer/sweep/definition_test.cpp trainer/sweep/importance_test.cpp trainer/sweep/ledger_test.cpp
  trainer/sweep/policy_test.cpp trainer/sweep/progress_test.cpp trainer/sweep/report_test.cpp trainer/sweep/search_test.cpp
  trainer/sweep/table_test.cpp)

add_library(sweep_engine MODULE host/sweep/sweep_engine.cpp)
target_link_libraries(sweep_engine PRIVATE tycho_flags tycho_run_folder tycho_loggers tycho_checkpoint)
tycho_compile(sweep_engine COLD)
tycho_test(sweep_verb_test SOURCES host/sweep/arguments_test.cpp host/sweep/slurm_array_test.cpp host/sweep/start_test.cpp host/sweep/worker_test.cpp LIBS base)
target_compile_definitions(sweep_verb_test PRIVATE TYCHO_PROGRAM="$<TARGET_FILE:tycho>" TYCHO_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
  TYCHO_SWEEP_ENGINE="$<TARGET_FILE:sweep_engine>")
add_dependencies(sweep_verb_test tycho sweep_engine)

# Runs side by side.
tycho_test(report_test LIBS report SOURCES trainer/report/bench_file_test.cpp trainer/report/live_plots_test.cpp trainer/report/metric_plots_test.cpp
  trainer/report/run_sections_test.cpp trainer/report/thin_curve_test.cpp trainer/report/run_list_test.cpp trainer/report/run_page_test.cpp trainer/report/growing_curve_test.cpp trainer/report/growing_run_test.cpp trainer/report/run_summary_test.cpp
  trainer/report/run_table_test.cpp trainer/report/waiting_ranks_test.cpp)
