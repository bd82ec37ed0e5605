// LibTorch's tensors behind the torch-free view.
#pragma once
#include <memory>

#include "trainer/kernels/tensor.h"
#include "trainer/session/tensor_view.h"

namespace tycho {

/// `owned`: the bytes are nobody else's, and count as the view's.
std::unique_ptr<TensorView> make_view(const Tensor& tensor, bool owned = false);

}  // namespace tycho
