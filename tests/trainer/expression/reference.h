// The plain interpreter of expressions: slow, and the oracle for all others.
#pragma once
#include <vector>

#include "trainer/expression/expression.h"

namespace tycho {

/// Numbers of a node: one of a scalar, else rows x columns. Flat values are one row.
struct NodeValues {
  MatrixShape shape = {1, 1};
  std::vector<double> numbers = {0.0};
};

/// kFp32 rounds elements to fp32 after each operation, as runs do; kDouble rounds nothing.
enum class Arithmetic { kFp32, kDouble };

/// Returns the values of the outputs. `inputs` are those of the expression, in order; flat ones have the same
/// length. Sums accumulate in double. Throws Error (kRecipe) for values that do not fit their inputs, too
/// much work, and operations that only LibTorch has: qr and eigh.
std::vector<NodeValues> evaluate(const Expression& expression, const std::vector<NodeValues>& inputs,
                                 Arithmetic arithmetic);

}  // namespace tycho
