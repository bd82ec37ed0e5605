# What a run will take.
tycho_test(plan_test LIBS plan SOURCES trainer/plan/estimate_test.cpp trainer/plan/memory_limits_test.cpp
  trainer/plan/mesh_choice_test.cpp trainer/plan/mesh_drawing_test.cpp trainer/plan/plan_test.cpp trainer/plan/step_time_test.cpp
  trainer/plan/region_traffic_test.cpp)
