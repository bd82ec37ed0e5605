// The numbers of a step that an expression is evaluated with on the host, and the branches that they choose.
#pragma once
#include <vector>

#include "trainer/expression/expression.h"

namespace tycho {

/// Returns the value of every scalar node, booleans as 0 and 1, and 0 for nodes of elements. `inputs` are in
/// the order of the expression's; those of elements are ignored.
std::vector<double> scalar_values(const Expression& expression, const std::vector<double>& inputs);

/// Returns the branch that every `every` of elements takes, true for the second argument.
std::vector<bool> taken_branches(const Expression& expression, const std::vector<double>& scalars);

/// Returns the expression with these branches in place of its `every` nodes, without what no branch needs.
/// Inputs and outputs keep their places.
Expression with_branches(const Expression& expression, const std::vector<bool>& taken);

}  // namespace tycho
