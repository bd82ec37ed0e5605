// Executes expressions over whole matrices, one operation after the other.
#pragma once
#include <vector>

#include "trainer/expression/expression.h"
#include "trainer/kernels/tensor.h"

namespace tycho {

/// Values of an expression's inputs or outputs: fp32 matrices, and doubles for scalars.
struct MatrixValues {
  std::vector<Tensor> matrices;  // undefined at scalars
  std::vector<double> scalars;
};

/// Returns the outputs of an expression whose inputs have shapes. Matrices are contiguous and on `device`. An
/// output shares no memory with an input; it may have one row or column where the expression's has more.
/// Elementwise results have the bits of the expression's definition. Sums are made in double, in an order
/// that depends on nothing but the shape. LAPACK runs on one thread, because its bits depend on their number.
/// Throws Error (kFailure) that names the line when qr or eigh fails, as for infinite numbers.
std::vector<Tensor> evaluate_matrices(const Expression& expression, const MatrixValues& inputs,
                                      const at::Device& device);

}  // namespace tycho
