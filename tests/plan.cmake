# What a run will take.
tycho_test(plan_test LIBS plan SOURCES trainer/plan/memory_limits_test.cpp trainer/plan/plan_test.cpp)
