# Flat buffers and first values.
tycho_test(units_test TORCH LIBS units SOURCES trainer/units/flat_unit_test.cpp)
