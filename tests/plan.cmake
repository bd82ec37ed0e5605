# What a run will take.
tycho_test(plan_test LIBS plan SOURCES trainer/plan/plan_test.cpp)
