// The one source that includes LibTorch's lists of tensors.
#include "trainer/kernels/tensor.h"

#include <ATen/core/IListRef.h>
#include <ATen/ops/cat.h>

namespace tycho {

Tensor joined(at::TensorList parts, int64_t dim) { return at::cat(parts, dim); }

}  // namespace tycho
