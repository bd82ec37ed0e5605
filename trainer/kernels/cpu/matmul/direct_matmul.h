// Products that read the weights in place.
#pragma once
#include "trainer/kernels/cpu/kernels.h"
#include "trainer/kernels/cpu/simd.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho::TYCHO_ISA {

/// Computes an fp32 product of a linear layer: tokens times weights, or its gradients. Returns false, without
/// computing, for another dtype and for operands with other steps.
bool direct_matmul(MatmulShape shape, const MatmulOperand& left, const MatmulOperand& right,
                   const MatmulResult& result);

}  // namespace tycho::TYCHO_ISA
