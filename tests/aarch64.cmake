# A part of the tests as programs for 64-bit Arm, which scripts/cross_aarch64 builds and qemu runs.
tycho_script_test(cross_aarch64 SCRIPT aarch64/cross_aarch64.sh TIMEOUT 14400)
add_custom_target(aarch64_tests DEPENDS base_test data_test kernels_test layout_test simd_test thread_pool_test)
tycho_script_test(aarch64_part SCRIPT aarch64/part.sh TIMEOUT 1200)
list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " emulator)
set_property(TEST aarch64_part APPEND PROPERTY ENVIRONMENT "TYCHO_EMULATOR=${emulator}")
