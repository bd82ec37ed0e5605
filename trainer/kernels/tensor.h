// The tensor of the engine, and the few words that ops share.
#pragma once
#include <ATen/core/Tensor.h>

namespace tycho {

using Tensor = at::Tensor;

}  // namespace tycho
