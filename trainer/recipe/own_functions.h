// Advice on numbers that are not finite, when a recipe computes with functions of its own. Torch-free.
#pragma once
#include <string>

#include "trainer/base/json.h"

namespace tycho {

/// Returns a sentence that names the functions of a resolved recipe that may have made a NaN, with a space
/// before it; "" for a recipe without such functions.
std::string own_functions_advice(const Json& recipe);

}  // namespace tycho
