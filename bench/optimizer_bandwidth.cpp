// How near an AdamW step, and the update of a moving average of the weights (ema), come to the memory: their
// bytes per second over those of a copy, alternating in one process.
//   bench_optimizer_bandwidth [--bf16] [MILLIONS_OF_PARAMETERS] [ROUNDS]
#include <ATen/ops/ones.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <chrono>
#include <cstring>

#include "bench/timing.h"
#include "trainer/device/device.h"
#include "trainer/kernels/optimizer/adamw_step.h"
#include "trainer/kernels/optimizer/muon_step.h"
#include "trainer/kernels/twins/kernel_work.h"
#include "trainer/sharding/arena.h"

namespace {

using namespace tycho;

// Like all of the engine's large memory: on huge pages, touched before it is timed.
Tensor buffer(int64_t numel, at::ScalarType dtype, double value) {
  const auto bytes = numel * static_cast<int64_t>(at::elementSize(dtype));
  return arena_view(make_arena(bytes, at::kCPU), 0, {numel}, dtype).fill_(value);
}

}  // namespace

int main(int argc, char** argv) {
  bool bf16 = false;
  std::vector<int64_t> numbers;
  for (int i = 1; i < argc; ++i)
    std::strcmp(argv[i], "--bf16") == 0 ? void(bf16 = true) : numbers.push_back(std::atoll(argv[i]));
  const int64_t numel = (numbers.empty() ? 124 : numbers[0]) * 1000000;
  const int64_t rounds = numbers.size() > 1 ? numbers[1] : 15;
  const c10::InferenceMode no_autograd;
  const int threads = set_threads(0);

  WeightTensors weights;
  weights.params = buffer(numel, bf16 ? at::kBFloat16 : at::kFloat, 0.5);
  if (bf16) weights.master = buffer(numel, at::kFloat, 0.5);
  Tensor grads = buffer(numel, at::kFloat, 1e-3), m = buffer(numel, at::kFloat, 1e-3),
         v = buffer(numel, at::kFloat, 1e-6);
  const Tensor scale_1 = at::ones({1});
  const WorkOf work(cpu_kernels());
  const auto bytes_of = [](const KernelWork& one) { return one.bytes_read() + one.bytes_written(); };
  const double step_bytes = bytes_of(work.adamw_step(
      numel, {}, scale_1.const_data_ptr<float>(), optimized_weights("bench", weights),
      grads.const_data_ptr<float>(), m.mutable_data_ptr<float>(), v.mutable_data_ptr<float>(), nullptr));
  Tensor from = buffer(numel, at::kFloat, 1), to = buffer(numel, at::kFloat, 2);
  const double copy_bytes = static_cast<double>(numel) * 8;
  // Averages weights as WeightAverage::update does.
  const WeightTensors average = {.params = buffer(numel, at::kFloat, 0.5)};
  const Tensor& averaged = bf16 ? weights.master : weights.params;
  const double average_bytes = bytes_of(work.add_update(numel, 0, 0, optimized_weights("bench", average),
                                                        Dtype::kFp32, averaged.const_data_ptr(), nullptr));

  std::vector<double> step_gb_s, average_gb_s, copy_gb_s;
  for (int64_t round = -2; round < rounds; ++round) {  // two to warm up
    const AdamWScalars scalars = {1e-4, 0.9, 0.95, 1e-8, 1e-6, 0.5, 0.5};
    const double step_s = seconds([&] { adamw_step(scalars, scale_1, weights, grads, m, v); });
    const double average_s = seconds([&] { add_update(-0.01, 0.01, average, averaged); });
    const double copy_s = seconds([&] { to.copy_(from); });
    if (round < 0) continue;
    step_gb_s.push_back(step_bytes / step_s / 1e9);
    average_gb_s.push_back(average_bytes / average_s / 1e9);
    copy_gb_s.push_back(copy_bytes / copy_s / 1e9);
  }
  fmt::print("AdamW, {} million parameters, {}, {} threads\n", numel / 1000000,
             bf16 ? "bf16 with fp32 master weights" : "fp32", threads);
  const double copy = median(copy_gb_s);
  const auto print = [&](const char* what, const std::vector<double>& gb_s, double bytes) {
    fmt::print("{:<16} {:6.2f} GB/s  ({:.1f} ms)  {:.2f} of a copy's\n", what, median(gb_s),
               bytes / median(gb_s) / 1e6, median(gb_s) / copy);
  };
  print("step", step_gb_s, step_bytes);
  print("average update", average_gb_s, average_bytes);
  fmt::print("{:<16} {:6.2f} GB/s\n", "copy", copy);
}
