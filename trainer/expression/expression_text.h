// Expressions as people write them.
#pragma once
#include <string>

#include "trainer/expression/expression.h"

namespace tycho {

/// Returns one line for each output, "p = p - h.lr * v1", after lines for what is used more than once or is
/// long: "v1 = exp(x)". `tycho config --why` and ? print it.
std::string text_of(const Expression& expression);

}  // namespace tycho
