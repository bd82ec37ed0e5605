// Initial values that a recipe defines, as expressions of the numbers that are drawn for an element.
#pragma once
#include <array>

#include "trainer/base/json.h"
#include "trainer/expression/expression.h"

namespace tycho {

/// Names of the numbers that are drawn for an element: standard normal, uniform in [0, 1), and standard
/// normal within three deviations.
inline constexpr std::array<const char*, 3> kInitInputs = {"normal", "uniform", "cut_normal"};
inline constexpr const char* kInitOutput = "value";

/// Returns the expression, whose output is kInitOutput. Throws Error for inputs that are not of
/// kInitInputs, several outputs, and operations on more than one element.
Expression init_expression(const Json& function);

}  // namespace tycho
