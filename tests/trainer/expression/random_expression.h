// Expressions for tests: from JSON with few signs, and random ones.
#pragma once
#include <string>

#include "tests/trainer/expression/reference.h"
#include "trainer/expression/expression_json.h"

namespace tycho {

/// Reads an expression whose JSON has ' for ".
Expression expression_of(std::string text);

/// Returns the values of one row.
NodeValues row_of(std::vector<double> numbers);
NodeValues scalar_of(double number);

struct RandomShapes {
  bool flat = true;  // else matrices that broadcast, and reductions
  MatrixShape matrix = {3, 5};
};

/// Returns a random expression of x, y (elements) and k (a scalar) with about `size` operations, which
/// include `must`. Results stay finite and smooth values stay away from poles, so that gradients can be
/// compared.
Expression random_expression(uint64_t seed, int size, Op must, const RandomShapes& shapes);

/// Operations of elements that random_expression draws from.
const std::vector<Op>& random_operations(bool flat);

}  // namespace tycho
