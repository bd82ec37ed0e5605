// Found before LibTorch's header of this name, which the header of every operator includes for nothing. That
// one brings the values of TorchScript, and every source would spend two seconds on their templates.
#pragma once
#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
