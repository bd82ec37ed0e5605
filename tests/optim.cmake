# Optimizers, schedules, clipping.
tycho_test(optim_test TORCH LIBS optim SOURCES trainer/optim/adamw_test.cpp trainer/optim/schedule_test.cpp)
