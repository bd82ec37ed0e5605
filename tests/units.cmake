# Flat buffers and first values.
tycho_test(units_test TORCH LIBS units SOURCES trainer/units/gathered_unit_test.cpp trainer/units/init_test.cpp
  trainer/units/owned_range_test.cpp trainer/units/tree_sum_test.cpp)
