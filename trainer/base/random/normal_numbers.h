// Normal numbers by counter: the definition of what parameters begin with.
#pragma once
#include <cstdint>

namespace tycho {

/// Writes four normal numbers of mean 0 and standard deviation `std`, a function of (key, counter):
/// Box-Muller over Philox's words, in double, rounded to fp32 at the end. Kernels that draw many at a time
/// give the same bits.
void four_normals(uint64_t key, uint64_t counter, double std, float out[4]);

}  // namespace tycho
