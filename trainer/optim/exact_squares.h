// Sums of squares as whole numbers: no order of addition changes a bit.
#pragma once
#include <vector>

#include "trainer/kernels/tensor.h"

namespace tycho {

/// The sum of squares over flat fp32 buffers of one device, perhaps none, without rounding: int64 [512]
/// there, two numbers for each exponent. Those of ranks, added, are those of all their buffers, up to 2^39
/// numbers.
Tensor exact_squares(const std::vector<Tensor>& flats);

/// The same by operators alone, on any device: what exact_squares does where it does not know the memory.
Tensor exact_squares_by_operators(const std::vector<Tensor>& flats);

/// That sum, rounded: fp64, one element, of the same device, for which the host waits. Infinite when one of
/// the numbers was not finite.
Tensor total_of_squares(const Tensor& parts);

}  // namespace tycho
