// A counter-based generator: the n-th number is a function of (key, n), so any rank can draw any element.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace tycho {

/// Philox 4x32-10 (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"). Returns four words for
/// each counter.
std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_low, uint64_t counter_high = 0);

/// Returns the key of a stream from a seed and a name: init of "model.norm.weight", sampling of prompt 3,
/// shuffle of epoch 2.
uint64_t stream_key(uint64_t seed, std::string_view name);

/// Returns a uniform number in [0, 1) with 24 bits of one word.
inline float uniform_float(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

}  // namespace tycho
