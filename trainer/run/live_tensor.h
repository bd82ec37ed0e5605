// LibTorch's tensors behind the torch-free view.
#pragma once
#include <memory>

#include "trainer/kernels/tensor.h"
#include "trainer/session/tensor_view.h"

namespace tycho {

/// Makes a view. `owned` is true when nobody else owns the bytes, which then count as the view's.
std::unique_ptr<TensorView> make_view(const Tensor& tensor, bool owned = false);

}  // namespace tycho
