// Expressions with fewer nodes and the same bits.
#pragma once
#include "trainer/expression/expression.h"

namespace tycho {

/// Returns the expression without repeated, constant and unused nodes. No result changes a bit (the payload
/// of NaN aside), so x + 0 stays: it is not x for -0. Inputs and outputs keep their places. Requires an
/// expression that check_expression takes.
Expression simplify(const Expression& expression);

}  // namespace tycho
