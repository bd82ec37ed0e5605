// Optimizers round every product before they add it: all tables give the same bits.
#include <ATen/core/IListRef.h>
#include <ATen/ops/cat.h>

#include "tests/trainer/kernels/kernel_test.h"
#include "trainer/kernels/optimizer/optimized_weights.h"

namespace tycho {
namespace {

constexpr int64_t kNumel = 1003;  // whole vectors of every width, and a rest

/// Returns the bytes of a kernel's results on one table, which `run` leaves in the tensors.
using Run = std::function<void(const KernelTable&, const OptimizedWeights&, const float* scale,
                               const float* grads, float* first, float* second, Stream)>;

struct Form {
  bool bf16, master, stochastic;
};
constexpr Form kForms[] = {
    {false, false, false}, {true, true, false}, {true, false, false}, {true, false, true}};

Tensor numbers(uint64_t seed, double scale) {
  auto generator = at::detail::createCPUGenerator(seed);
  return at::randn({kNumel}, generator, at::TensorOptions()).mul_(scale);
}

/// Three steps of `run` from the same numbers; returns all that they changed.
Tensor steps(const std::string& name, const Form& form, const Run& run) {
  const at::Device device = name == "cuda" ? at::kCUDA : at::kCPU;
  WeightTensors weights{.params = numbers(1, 1.0).to(device, form.bf16 ? at::kBFloat16 : at::kFloat)};
  if (form.master) weights.master = numbers(1, 1.0).to(device);
  weights.stochastic = form.stochastic, weights.key = 77;
  Tensor first = at::zeros({kNumel}).to(device), second = at::zeros({kNumel}).to(device);
  const Tensor scale = at::full({1}, 0.37).to(device);
  for (int step = 1; step <= 3; ++step) {
    weights.step = static_cast<uint64_t>(step);
    const Tensor grads = numbers(10 + static_cast<uint64_t>(step), 0.1).to(device);
    run(*find_table(name), optimized_weights("test", weights), scale.const_data_ptr<float>(),
        grads.const_data_ptr<float>(), first.mutable_data_ptr<float>(), second.mutable_data_ptr<float>(),
        stream_of(first));
  }
  const Tensor kept = form.master ? weights.master : weights.params.to(at::kFloat);
  return at::cat({kept.cpu(), weights.params.to(at::kFloat).cpu(), first.cpu(), second.cpu()});
}

void expect_equal_bits(const Run& run) {
  for (const Form& form : kForms) {
    const Tensor expected = steps("generic", form, run);
    for (const std::string& name : kWholeTables) {
      if (!find_table(name)) continue;
      EXPECT_TRUE(at::equal(steps(name, form, run), expected))
          << name << (form.bf16 ? " bf16" : " fp32") << (form.master ? " with a master" : "")
          << (form.stochastic ? " rounded stochastically" : "");
    }
  }
}

TEST(OptimizerBits, OfAdamWAreThoseOfEveryTable) {
  expect_equal_bits([](const KernelTable& table, const OptimizedWeights& weights, const float* scale,
                       const float* grads, float* m, float* v, Stream stream) {
    table.adamw_step(kNumel, {3e-3, 0.9, 0.95, 1e-8, 3e-4, 0.1, 0.05}, scale, weights, grads, m, v, stream);
  });
}

TEST(OptimizerBits, OfLionAreThoseOfEveryTable) {
  expect_equal_bits([](const KernelTable& table, const OptimizedWeights& weights, const float* scale,
                       const float* grads, float* m, float*, Stream stream) {
    table.lion_step(kNumel, {3e-3, 0.9, 0.99, 1e-3}, scale, weights, grads, m, stream);
  });
}

TEST(OptimizerBits, OfSgdAreThoseOfEveryTable) {
  for (const bool nesterov : {false, true})
    expect_equal_bits([&](const KernelTable& table, const OptimizedWeights& weights, const float* scale,
                          const float* grads, float* m, float*, Stream stream) {
      table.sgd_step(kNumel, {0.1, 0.9, 0.01, nesterov}, scale, weights, grads, m, stream);
    });
}

TEST(OptimizerBits, OfMuonAreThoseOfEveryTable) {
  expect_equal_bits([](const KernelTable& table, const OptimizedWeights& weights, const float* scale,
                       const float* grads, float* m, float* update, Stream stream) {
    table.muon_momentum(kNumel, 0.95, true, scale, grads, m, Dtype::kFp32, update, stream);
    table.add_update(kNumel, 0.02, 1e-3, weights, Dtype::kFp32, update, stream);
  });
}

}  // namespace
}  // namespace tycho
