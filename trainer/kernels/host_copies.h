// Copies between the host and a GPU that go through pinned memory: from ordinary memory a GPU copies slowly,
// and the host waits for each.
#pragma once
#include <cstdint>
#include <vector>

#include "trainer/kernels/tensor.h"

namespace tycho {

/// `host` on `device`, in the order of its current stream; the host does not wait. `host` may go or change at
/// once. On a CPU: `host` itself.
Tensor copied_to(const at::Device& device, const Tensor& host);

/// The same for int32 [n]; undefined for no numbers. On a CPU a view of `values`, which outlive it.
Tensor numbers_on(const at::Device& device, const std::vector<int32_t>& values);
/// The same for numbers from kIgnoredTarget to kIgnoredTarget + 65535, given as their low 16 bits: these
/// travel, and become int32 [n] on the device. On a CPU too the result has memory of its own.
Tensor numbers_on(const at::Device& device, const std::vector<uint16_t>& low_halves);

/// Copies `from`, of any device, into `to` on the host, contiguous both, and waits until it is there. Takes
/// two pinned buffers of at most 64 MiB for that.
void copy_to_host(const Tensor& from, Tensor& to);

}  // namespace tycho
