// Sums of rank_sums.h for rows in a device's memory, in the same order and with the same bits.
#pragma once
#include "trainer/kernels/tensor.h"

namespace tycho {

/// Returns the sum of R rows [R, N], R > 0, in the order SumOrder::kTree and to the bits of sum_rows: bf16 is
/// summed in fp32 and rounded once. fp32, fp64 or bf16, on any device. Overwrites the rows.
Tensor sum_as_tree(const Tensor& rows_RN);

}  // namespace tycho
