// Arithmetic of Lua tensors, as part of the declaration of their class (tensor.cpp).
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "bindings/run/class.h"
#include "bindings/run/objects.h"
#include "trainer/session/tensor_view.h"

namespace tycho {

/// Returns the methods that compute: reductions, comparisons, functions, products.
std::vector<Method> tensor_math_methods();
/// Returns +, -, *, /, ^, unary minus and ==.
std::vector<Operator> tensor_operators();
/// Returns the elements where the tensor at a stack index is not 0.
std::unique_ptr<TensorView> masked_by(Call& call, int index);

/// Throws a ScriptError (E_SHAPE) that ends with the shape of the call's tensor.
[[noreturn]] void refuse_shape(Call& call, const std::string& what);

}  // namespace tycho
