// Initial values of parameters, drawn from (seed, name, element): the same bits on every topology and thread
// count.
#pragma once
#include <cstdint>

#include "trainer/families/init.h"
#include "trainer/layout/param_spec.h"
#include "trainer/sharding/defined_init.h"
#include "trainer/sharding/owned_range.h"

namespace tycho {

/// Fills elements [begin, begin + count) of a stream of numbers. Normal numbers by Box-Muller from Philox.
void draw_numbers(const Init& init, uint64_t key, int64_t begin, int64_t count, float* out);
/// Fills elements [begin, begin + count) of a whole parameter as fp32 on the host, as its family
/// says.
void draw_init(const ParamSpec& spec, uint64_t seed, int64_t begin, int64_t count, float* out);

/// Draws the master weights of a range, then sets its parameters. `own`: values that the recipe defines.
void initialise(const OwnedRange& range, uint64_t seed, const DefinedInit* own = nullptr);

}  // namespace tycho
