// Products of up to eight rows, such as those of generation.
#pragma once
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/simd.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho::TYCHO_ISA {

/// Computes a product of a few rows with weights that are read once, in place. Returns false, without
/// computing, for more rows and for operands with other steps.
bool few_rows_matmul(MatmulShape shape, const MatmulOperand& left, const MatmulOperand& right,
                     const MatmulResult& result);

}  // namespace tycho::TYCHO_ISA
