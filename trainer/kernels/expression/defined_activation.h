// Activations that a recipe defines, on tensors.
#pragma once
#include "trainer/base/json.h"
#include "trainer/expression/program.h"
#include "trainer/kernels/tensor.h"

namespace tycho {

/// f and its derivative: what activation.h is for built-in ones, without a bias. fp32 or bf16, arithmetic in
/// fp32. Immutable, so threads may share it.
class DefinedActivation {
 public:
  /// Throws Error (kRecipe) as activation_forward.
  DefinedActivation(const Json& function, bool gated);

  /// y = f(x), or f(gate) up of x = [N, 2F], gate first.
  void forward(const Tensor& x, Tensor& y) const;
  /// x = dx, and y as in forward. dy may not be x or y.
  void backward(Tensor& x, const Tensor& dy, Tensor& y) const;

 private:
  void run(const Program& program, const Tensor& x, const Tensor& dy, const Tensor& y) const;

  bool gated_;
  Program forward_, backward_;
};

}  // namespace tycho
