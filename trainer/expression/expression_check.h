// The kind of each node of an expression: scalar or elements, number or boolean, and its shape.
#pragma once
#include <vector>

#include "trainer/expression/expression.h"

namespace tycho {

struct NodeType {
  bool scalar = false;
  bool boolean = false;
  MatrixShape shape;  // of elements
};

/// Returns the type of every node. Shapes broadcast as NumPy's do among [r, c], [r, 1], [1, c] and [1, 1];
/// flat values meet flat values, [1, 1] and scalars. Throws Error (kRecipe) that names the node's line:
/// booleans among numbers or numbers among booleans, shapes that do not broadcast, matrices that do not
/// multiply, operations on matrices of flat values, boolean outputs.
std::vector<NodeType> check_expression(const Expression& expression);

/// Returns the type of one node, given those of the nodes before it. Throws as check_expression.
NodeType type_of_node(const Expression& expression, size_t node, const std::vector<NodeType>& earlier);

}  // namespace tycho
