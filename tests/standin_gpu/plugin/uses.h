// Tells the checker which bytes of tensors, and which declared accesses, an operation of the plug-in uses.
#pragma once
#include <ATen/core/Tensor.h>

#include <string>

#include "tests/standin_gpu/runtime/checker.h"
#include "trainer/kernels/twins/kernel_work.h"

namespace standin {

/// Adds the bytes of a tensor, run by run where it has gaps; nothing for host memory that is not pinned.
void add_uses(Uses& uses, const at::Tensor& x, bool written);

Uses uses_of(const tycho::KernelWork& work);

/// Puts an operation on the current stream of the current device.
void enqueued_now(const std::string& name, const Uses& uses);

}  // namespace standin
