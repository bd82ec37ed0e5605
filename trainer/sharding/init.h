// Initial values of parameters, drawn from (seed, name, element): the same bits on every topology and thread
// count.
#pragma once
#include <cstdint>

#include "trainer/layout/param_spec.h"
#include "trainer/sharding/owned_range.h"

namespace tycho {

/// Fills elements [begin, begin + count) of a whole parameter as fp32 on the host. Normal numbers by
/// Box-Muller from Philox.
void draw_init(const ParamSpec& spec, uint64_t seed, int64_t begin, int64_t count, float* out);

/// Draws the master weights of a range, then sets its parameters.
void initialise(const OwnedRange& range, uint64_t seed);

}  // namespace tycho
