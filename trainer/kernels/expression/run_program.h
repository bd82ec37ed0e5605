// Elementwise expressions over tensors.
#pragma once
#include <vector>

#include "trainer/expression/program.h"
#include "trainer/kernels/optimizer/optimized_weights.h"
#include "trainer/kernels/tensor.h"

namespace tycho {

/// Memory of one of a program's arrays: a tensor, or the weights that an optimizer updates.
struct ProgramTensor {
  Tensor tensor;
  const WeightTensors* weights = nullptr;
};

/// Runs a program once over all elements. `arrays` are in the order of program.arrays(): fp32 or bf16,
/// contiguous with the same number of elements, or matrices of one shape whose rows are contiguous, such as
/// columns of a wider matrix; fp32 with one element on the same device where
/// ProgramArray::one; undefined where an array is neither read nor written. An element is fp32 from when it
/// is read until it is written. Written arrays must not overlap others. Scalars are in the order of
/// program.scalar_inputs(). Asynchronous on CUDA. Throws Error that names the array.
void run_program(const Program& program, const std::vector<double>& scalar_inputs,
                 const std::vector<ProgramTensor>& arrays);

}  // namespace tycho
