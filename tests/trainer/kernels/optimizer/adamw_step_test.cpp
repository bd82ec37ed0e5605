// AdamW against torch.optim.AdamW's formula in double.
#include "trainer/kernels/optimizer/adamw_step.h"

#include <cmath>

#include "tests/trainer/kernels/kernel_test.h"

namespace tycho {
namespace {

AdamWScalars scalars_at(int step) {
  return {.lr = 3e-3,
          .beta1 = 0.9,
          .beta2 = 0.95,
          .eps = 1e-8,
          .decay = 3e-4,
          .bias_correction1 = 1 - std::pow(0.9, step),
          .bias_correction2 = 1 - std::pow(0.95, step)};
}

class AdamWStepTest : public KernelTest {};

TEST_P(AdamWStepTest, FollowsTorchForTenSteps) {
  for (int64_t n : {1, 13, 100003}) {
    Tensor params = normal({n}), master = dtype_ == Dtype::kBf16 ? params.to(at::kFloat) : Tensor();
    Tensor m = on_device(at::zeros({n})), v = on_device(at::zeros({n}));
    const Tensor scale = on_device(at::full({1}, 0.5));
    Tensor weight = as_double(params), mean = at::zeros({n}, at::kDouble),
           square = at::zeros({n}, at::kDouble);
    for (int step = 1; step <= 10; ++step) {
      const Tensor grads = normal_fp32({n}, 0.1);
      const AdamWScalars s = scalars_at(step);
      table_->adamw_step(n, s, scale.const_data_ptr<float>(), optimized_weights("test", {params, master}),
                         grads.const_data_ptr<float>(), m.mutable_data_ptr<float>(),
                         v.mutable_data_ptr<float>(), stream_of(params));
      const Tensor g = as_double(grads) * 0.5;
      mean = mean * s.beta1 + g * (1 - s.beta1);
      square = square * s.beta2 + g * g * (1 - s.beta2);
      weight = weight * (1 - s.decay) -
               s.lr * (mean / s.bias_correction1) / ((square / s.bias_correction2).sqrt() + s.eps);
    }
    expect_close(master.defined() ? master : params, weight, 4);
    expect_close(m, mean);
    expect_close(v, square);
    if (master.defined()) {
      EXPECT_TRUE(at::equal(params, master.to(at::kBFloat16)));
    }
  }
}

TEST_P(AdamWStepTest, KeepsNaNGradientsVisible) {
  Tensor params = normal({20}), master = dtype_ == Dtype::kBf16 ? params.to(at::kFloat) : Tensor();
  Tensor m = on_device(at::zeros({20})), v = on_device(at::zeros({20})), grads = on_device(at::ones({20}));
  grads[11] = std::nan("");
  const Tensor scale = on_device(at::ones({1}));
  table_->adamw_step(20, scalars_at(1), scale.const_data_ptr<float>(),
                     optimized_weights("test", {params, master}), grads.const_data_ptr<float>(),
                     m.mutable_data_ptr<float>(), v.mutable_data_ptr<float>(), stream_of(params));
  EXPECT_TRUE(params[11].isnan().item<bool>());
  EXPECT_EQ(params.isnan().sum().item<int64_t>(), 1);
}

TYCHO_ON_EVERY_TABLE(AdamWStepTest);

TEST(AdamWStepOp, RejectsMasterWeightsOfAnotherShapeOrDtype) {
  Tensor params = at::ones({4}, at::kBFloat16), master = at::ones({4}), m = at::zeros({4}),
         v = at::zeros({4});
  const Tensor grads = at::ones({4}), scale = at::ones({1});
  EXPECT_EQ(error_of([&] {
              adamw_step(scalars_at(1), scale, {params, at::ones({3})}, grads, m, v);
            }),
            "[adamw_step] master: expected Float [4] contiguous on cpu, got Float [3] contiguous on cpu");
  adamw_step(scalars_at(1), scale, {params, master}, grads, m, v);
  EXPECT_NEAR(master[0].item<float>(), 1 - 3e-4 - 3e-3, 1e-6);
  EXPECT_NE(error_of([&] {
              adamw_step(scalars_at(1), scale, {at::ones({4}), master}, grads, m, v);
            }).find("own master"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              adamw_step(scalars_at(1), scale, {params, master, true}, grads, m, v);
            }).find("only bf16 params without a master"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              adamw_step(scalars_at(0), scale, {params, master}, grads, m, v);
            }).find("step >= 1"),
            std::string::npos);
}

}  // namespace
}  // namespace tycho
