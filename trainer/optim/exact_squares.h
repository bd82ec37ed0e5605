// Sums of squares as whole numbers: no order of addition changes a bit.
#pragma once
#include <vector>

#include "trainer/kernels/tensor.h"

namespace tycho {

/// Returns the sum of squares over flat fp32 buffers of one device, perhaps none, without rounding: int64
/// [512] on the device, two numbers for each exponent. The sums of several ranks add up to that of all their
/// buffers, up to 2^39 numbers.
Tensor exact_squares(const std::vector<Tensor>& flats);

/// Same as exact_squares, by operators alone and on any device. exact_squares uses it for devices whose
/// memory it cannot access.
Tensor exact_squares_by_operators(const std::vector<Tensor>& flats);

/// Rounds that sum to one fp64 element on the same device, for which the host waits. Infinite when one of the
/// numbers was not finite.
Tensor total_of_squares(const Tensor& parts);

}  // namespace tycho
