// NCCL on one GPU: joins a group of one, as the ranks of a run do, and times sums of 64 MiB in it. Prints one
// line of JSON.
#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/ones.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/core.h>

#include <chrono>

#include "trainer/base/error.h"
#include "trainer/comm/nccl/nccl_group.h"
#include "trainer/device/device.h"

namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void measure() {
  constexpr int kRounds = 20;
  const at::Device device = tycho::choose_device(tycho::DeviceKind::kCuda);
  const auto world = tycho::make_world_of_one();
  const auto start = Clock::now();
  tycho::NcclGroup group(*world, device);
  const double join_s = since(start);
  const at::Tensor x = at::ones({int64_t{16} << 20}, at::TensorOptions().device(device).dtype(at::kFloat));
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  const auto sum = [&] {
    tycho::nccl().all_reduce(group.get(), x.data_ptr(), x.numel(), tycho::NcclTable::Number::kFp32,
                             stream.native_handle());
  };
  sum();
  stream.synchronize();
  const auto timed = Clock::now();
  for (int i = 0; i < kRounds; ++i) sum();
  stream.synchronize();
  const double seconds = since(timed);
  group.check();
  const float least = x.min().item<float>(), most = x.max().item<float>();
  if (least != 1 || most != 1)
    tycho::fail(tycho::ExitCode::kNumerics, "[nccl] a sum over one rank gave {} to {}", least, most);
  fmt::print("{{\"num_gpus\": {}, \"join_s\": {:.4f}, \"gb_per_s\": {:.2f}}}\n",
             at::detail::getCUDAHooks().deviceCount(), join_s,
             kRounds * static_cast<double>(x.nbytes()) / seconds / 1e9);
}

}  // namespace

int main() {
  try {
    measure();
  } catch (const tycho::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.code());
  }
}
