// Products that read the weights where they lie.
#pragma once
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/simd.h"
#include "trainer/kernels/kernel_table.h"

namespace tycho::TYCHO_ISA {

/// Computes an fp32 product of a linear layer: tokens times weights, or its gradients. False, and nothing
/// done, for another dtype, and for operands that lie otherwise.
bool direct_matmul(MatmulShape shape, const MatmulOperand& left, const MatmulOperand& right,
                   const MatmulResult& result);

}  // namespace tycho::TYCHO_ISA
