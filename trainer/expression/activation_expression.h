// An activation that a recipe defines, as expressions of what a feed-forward computes.
#pragma once
#include "trainer/base/json.h"
#include "trainer/expression/expression.h"

namespace tycho {

/// Names of a feed-forward's elements: what the function gets, the other half of a gated one, the gradient of
/// its output, and its output.
inline constexpr const char* kActivationInput = "x";
inline constexpr const char* kActivationUp = "up";
inline constexpr const char* kActivationGradient = "dy";
inline constexpr const char* kActivationOutput = "y";

/// Returns y = f(x), or f(x) up. `function` has one input and one output of elements. Throws Error (kRecipe)
/// for anything else.
Expression activation_forward(const Json& function, bool gated);
/// Returns y, and the gradients of x and up under the names of these inputs, whose memory they replace.
Expression activation_backward(const Json& function, bool gated);

}  // namespace tycho
