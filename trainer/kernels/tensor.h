// The tensor of the engine, and the few words that ops share.
#pragma once
#include <ATen/core/Tensor.h>

namespace tycho {

using Tensor = at::Tensor;

/// Returns the parts one after the other along `dim`, as at::cat does. LibTorch's header of that function
/// costs every source that includes it three seconds to compile.
Tensor joined(at::TensorList parts, int64_t dim = 0);

}  // namespace tycho
