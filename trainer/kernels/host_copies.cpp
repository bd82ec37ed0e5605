// Copies in parts through two pinned buffers, so that transfers overlap.
#include "trainer/kernels/host_copies.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <array>

#include "trainer/base/error.h"
#include "trainer/kernels/cross_entropy.h"

namespace tycho {

Tensor copied_to(const at::Device& device, const Tensor& host) {
  if (device.is_cpu()) return host;
  Tensor pinned = at::empty(host.sizes(), host.options().pinned_memory(true));
  pinned.copy_(host);
  // LibTorch does not reuse this memory before the copy is done.
  return pinned.to(device, /*non_blocking=*/true);
}

namespace {

template <class T>
Tensor copy_of(const at::Device& device, const std::vector<T>& values, at::ScalarType type) {
  if (values.empty()) return {};
  return copied_to(device, at::from_blob(const_cast<T*>(values.data()), {static_cast<int64_t>(values.size())},
                                         at::TensorOptions().dtype(type)));
}

}  // namespace

Tensor numbers_on(const at::Device& device, const std::vector<int32_t>& values) {
  return copy_of(device, values, at::kInt);
}

Tensor numbers_on(const at::Device& device, const std::vector<float>& values) {
  return copy_of(device, values, at::kFloat);
}

Tensor numbers_on(const at::Device& device, const std::vector<uint16_t>& low_halves) {
  if (low_halves.empty()) return {};
  const Tensor low = copied_to(device, at::from_blob(const_cast<uint16_t*>(low_halves.data()),
                                                     {static_cast<int64_t>(low_halves.size())},
                                                     at::TensorOptions().dtype(at::kUInt16)));
  // Relative to kIgnoredTarget a number is at most 65535, so its high bits are zeros.
  return low.to(at::kInt).sub_(kIgnoredTarget).bitwise_and_(0xffff).add_(kIgnoredTarget);
}

void copy_to_host(const Tensor& from, Tensor& to) {
  TYCHO_CHECK(from.sizes() == to.sizes() && from.is_contiguous() && to.is_contiguous() && to.is_cpu(),
              "[copy_to_host] expected contiguous tensors of one shape, the second on the host");
  if (from.is_cpu()) {
    to.copy_(from);
    return;
  }
  constexpr int64_t kMostBytes = int64_t{64} << 20;
  const Tensor source = from.view(-1), target = to.view(-1);
  const int64_t count = source.numel(),
                part = std::min(count, kMostBytes / static_cast<int64_t>(to.element_size()));
  if (count == 0) return;
  const c10::Stream stream = c10::impl::VirtualGuardImpl(from.device().type()).getStream(from.device());
  const auto make_buffer = [&] { return at::empty({part}, to.options().pinned_memory(true)); };
  std::array<Tensor, 2> buffers = {make_buffer(), count > part ? make_buffer() : Tensor()};
  std::array<c10::Event, 2> arrived = {c10::Event(from.device().type()), c10::Event(from.device().type())};
  const auto length = [&](int64_t i) { return std::min(part, count - i * part); };
  // One part is transferred while the previous one is copied on.
  const int64_t num_parts = (count + part - 1) / part;
  for (int64_t i = 0; i <= num_parts; ++i) {
    const auto at = static_cast<size_t>(i % 2), before = 1 - at;
    if (i < num_parts) {
      const Tensor chunk = source.narrow(0, i * part, length(i)).to(to.scalar_type());
      buffers[at].narrow(0, 0, length(i)).copy_(chunk, /*non_blocking=*/true);
      arrived[at].record(stream);
    }
    if (i == 0) continue;
    arrived[before].synchronize();
    target.narrow(0, (i - 1) * part, length(i - 1)).copy_(buffers[before].narrow(0, 0, length(i - 1)));
  }
}

}  // namespace tycho
