# Flat buffers and first values.
tycho_test(units_test TORCH LIBS sharding SOURCES trainer/sharding/arena_test.cpp trainer/sharding/coded_units_test.cpp trainer/sharding/defined_init_test.cpp trainer/sharding/gathered_unit_test.cpp trainer/sharding/init_test.cpp
  trainer/sharding/owned_range_test.cpp trainer/sharding/tree_sum_test.cpp)
tycho_test(device_test TORCH LIBS device SOURCES trainer/device/gpu_driver_test.cpp trainer/device/libtorch_version_test.cpp)
