# What a run will take.
tycho_test(plan_test LIBS plan SOURCES trainer/plan/count_step_tokens_test.cpp trainer/plan/estimate_test.cpp trainer/plan/memory_limits_test.cpp
  trainer/plan/mesh_choice_test.cpp trainer/plan/mesh_drawing_test.cpp
  trainer/plan/memory_choice_test.cpp trainer/plan/cp_choice_test.cpp trainer/plan/plan_length_test.cpp trainer/plan/gpu_libraries_test.cpp trainer/plan/planned_gpu_test.cpp trainer/plan/plan_test.cpp trainer/plan/step_time_test.cpp
  trainer/plan/region_traffic_test.cpp trainer/plan/large_orders_test.cpp)
target_compile_definitions(plan_test PRIVATE TYCHO_GOLDEN_DIR="${CMAKE_CURRENT_SOURCE_DIR}/golden")
tycho_test(pipeline_test LIBS pipeline SOURCES trainer/pipeline/drawing_test.cpp trainer/pipeline/program_test.cpp
  trainer/pipeline/schedule_test.cpp trainer/pipeline/simulation_test.cpp trainer/pipeline/validity.cpp trainer/pipeline/validity_test.cpp)
