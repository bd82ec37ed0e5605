// Copies between the host and a GPU that go through pinned memory: from ordinary memory a GPU copies slowly,
// and the host waits for each.
#pragma once
#include <cstdint>
#include <vector>

#include "trainer/kernels/tensor.h"

namespace tycho {

/// Returns a copy of `host` on `device`, in the order of its current stream; the host does not wait, and
/// `host` may be destroyed or changed at once. On a CPU: `host` itself.
Tensor copied_to(const at::Device& device, const Tensor& host);

/// Returns a copy of `values` as int32 or fp32 [n], under the rules of copied_to; undefined for no numbers.
/// On a CPU a view of `values`, which must outlive it.
Tensor numbers_on(const at::Device& device, const std::vector<int32_t>& values);
Tensor numbers_on(const at::Device& device, const std::vector<float>& values);
/// Returns numbers from kIgnoredTarget to kIgnoredTarget + 65535, given as their low 16 bits: these are
/// transferred, and become int32 [n] on the device. On a CPU too the result has its own memory.
Tensor numbers_on(const at::Device& device, const std::vector<uint16_t>& low_halves);

/// Copies `from`, of any device, into `to` on the host, both contiguous, and waits for the result. Uses two
/// pinned buffers of at most 64 MiB.
void copy_to_host(const Tensor& from, Tensor& to);

}  // namespace tycho
