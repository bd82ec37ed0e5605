// Sums of squares as whole numbers: no order of addition changes a bit.
#pragma once
#include <vector>

#include "trainer/kernels/tensor.h"

namespace tycho {

/// The sum of squares over flat fp32 buffers in host memory, perhaps none, without rounding: int64 [512], two
/// numbers for each exponent. Those of ranks, added, are those of all their buffers, up to 2^39 numbers.
Tensor exact_squares(const std::vector<Tensor>& flats);

/// That sum, rounded: fp64, one element. Infinite when one of the numbers was not finite.
Tensor total_of_squares(const Tensor& parts);

}  // namespace tycho
