// Gradients of expressions, as expressions.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "trainer/expression/expression.h"

namespace tycho {

/// Returns the expression with one more output "d_NAME" for each named input of elements: the gradient of the
/// sum of the output's elements, shaped like the input. For a flat expression that is the derivative of each
/// element. Gradients at kinks are autograd's: 0 at abs(0), half to each side where min or max meet equal
/// values, shared equally among equal largest ones. The result is simplified. Throws Error (kRecipe) for
/// operations without a gradient here: qr, eigh, argsort, take.
Expression derivative(const Expression& expression, std::string_view output,
                      const std::vector<std::string>& inputs);

}  // namespace tycho
