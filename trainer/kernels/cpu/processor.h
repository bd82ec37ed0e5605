// The maker of the processor: sizes and requests that make one maker's caches faster make another's slower.
// None of them changes a bit of a result.
#pragma once
#include "trainer/kernels/cpu/simd.h"

namespace tycho::TYCHO_ISA {

/// Returns true on AMD's processors. Emulated instructions compute as on Intel's, so that tests on AMD's see
/// both ways.
TYCHO_SIMD bool is_amd() {
#if defined(__x86_64__) && !defined(TYCHO_EMULATED)
  return __builtin_cpu_is("amd") != 0;
#else
  return false;
#endif
}

}  // namespace tycho::TYCHO_ISA
