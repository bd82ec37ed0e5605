// The update of a matrix of which ranks have parts, cut in three: elementwise operations on a part,
// operations on the whole matrix, elementwise operations on a part.
#pragma once
#include <set>
#include <string>

#include "trainer/expression/expression.h"

namespace tycho {

/// Three expressions that together compute one. Values that a later one needs from an earlier one are outputs
/// "v.NODE" of it and inputs of the same name. Inputs of the original keep their names.
struct Phases {
  Expression before;  // flat: elements of a part; its outputs are what `whole` and `after` need
  Expression whole;   // inputs of parts have the shape of the whole matrix here
  Expression after;   // flat; the parts that the original returns
};

/// Cuts an expression. `parts` are the names of the inputs and outputs of which a rank has a part: matrices
/// of one shape, or flat. `everywhere` names a [1, 1] input that every phase may read. Outputs that are
/// scalars are left out; others are matrices that `whole` returns. Only what reductions, operations on
/// matrices, or outputs of `whole` depend on is computed before or on the whole. Requires an expression
/// without `every` of elements.
Phases cut_in_phases(const Expression& expression, const std::set<std::string>& parts,
                     const std::string& everywhere = "");

/// Returns true if the expression has reductions or operations on matrices.
bool needs_whole_matrix(const Expression& expression);

}  // namespace tycho
