// Weights that data gives to targets.
#pragma once
#include <string_view>

namespace tycho {

/// Weights are rounded to multiples of kWeightUnit and are at most kMostWeight in size, so that the sum of a
/// global batch is exact in any order.
inline constexpr double kWeightUnit = 0x1p-24, kMostWeight = 1024;

/// Returns a weight as batches have it. Throws Error (kUnusable) that names `place` for NaN, infinity, larger
/// ones, and, without `marks`, negative ones.
float target_weight(double weight, bool marks, std::string_view place);

}  // namespace tycho
