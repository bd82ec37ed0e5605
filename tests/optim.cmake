# Optimizers, parameter groups, schedules, clipping.
tycho_test(schedule_test LIBS recipe SOURCES trainer/recipe/schedule_test.cpp)
tycho_test(param_rules_test LIBS layout SOURCES trainer/layout/param_rules_test.cpp)
tycho_test(optim_test TORCH LIBS optim
  SOURCES trainer/optim/defined_test.cpp trainer/optim/exact_squares_test.cpp trainer/optim/grad_clip_test.cpp trainer/optim/matrix_evaluator_test.cpp trainer/expression/reference.cpp trainer/optim/newton_schulz_test.cpp trainer/optim/optimizer_test.cpp trainer/optim/row_blocks_test.cpp
  trainer/optim/published_optimizers_test.cpp trainer/optim/published_problem.cpp trainer/optim/segments_test.cpp)
