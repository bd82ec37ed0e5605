// Lion, SGD, Muon's passes and the forms of weights, against their formulas in double.
#include <ATen/core/IListRef.h>
#include <ATen/ops/cat.h>

#include <cmath>

#include "tests/trainer/kernels/kernel_test.h"
#include "trainer/base/random/philox.h"
#include "trainer/kernels/optimizer/adamw_step.h"
#include "trainer/kernels/optimizer/lion_step.h"
#include "trainer/kernels/optimizer/muon_step.h"
#include "trainer/kernels/optimizer/sgd_step.h"
#include "trainer/kernels/twins/rounding_noise.h"

namespace tycho {
namespace {

class OptimizerStepsTest : public KernelTest {
 protected:
  WeightTensors weights(int64_t n) const {
    WeightTensors made{.params = normal({n})};
    if (dtype_ == Dtype::kBf16) made.master = made.params.to(at::kFloat);
    return made;
  }
  void expect_weights(const WeightTensors& made, const Tensor& oracle) const {
    expect_close(made.master.defined() ? made.master : made.params, oracle, 4);
    if (made.master.defined()) {
      EXPECT_TRUE(at::equal(made.params, made.master.to(at::kBFloat16)));
    }
  }
  Tensor half() const { return on_device(at::full({1}, 0.5)); }
};
constexpr int64_t kLengths[] = {1, 13, 100003};

TEST_P(OptimizerStepsTest, LionFollowsItsFormula) {
  for (const int64_t n : kLengths) {
    const WeightTensors made = weights(n);
    Tensor m = on_device(at::zeros({n}));
    Tensor weight = as_double(made.params), mean = at::zeros({n}, at::kDouble);
    const Tensor scale = half();
    for (int step = 0; step < 5; ++step) {
      const Tensor grads = normal_fp32({n}, 0.1);
      table_->lion_step(n, {.lr = 3e-3, .beta1 = 0.9, .beta2 = 0.99, .decay = 1e-3},
                        scale.const_data_ptr<float>(), optimized_weights("test", made),
                        grads.const_data_ptr<float>(), m.mutable_data_ptr<float>(), stream_of(m));
      const Tensor g = as_double(grads) * 0.5;
      weight = weight * (1 - 1e-3) - 3e-3 * at::sign(mean * 0.9 + g * 0.1);
      mean = mean * 0.99 + g * 0.01;
    }
    expect_weights(made, weight);
    expect_close(m, mean);
  }
}

TEST_P(OptimizerStepsTest, LionDoesNothingWithoutAGradientAndKeepsNaNVisible) {
  const WeightTensors made = weights(20);
  const Tensor before = made.params.clone(), scale = half();
  Tensor m = on_device(at::zeros({20})), grads = on_device(at::zeros({20}));
  grads[11] = std::nan("");
  table_->lion_step(20, {.lr = 1e-2, .beta1 = 0.9, .beta2 = 0.99, .decay = 0}, scale.const_data_ptr<float>(),
                    optimized_weights("test", made), grads.const_data_ptr<float>(),
                    m.mutable_data_ptr<float>(), stream_of(m));
  EXPECT_TRUE(made.params[11].isnan().item<bool>());
  EXPECT_TRUE(at::equal(made.params.narrow(0, 0, 11), before.narrow(0, 0, 11)));
  EXPECT_TRUE(at::equal(made.params.narrow(0, 12, 8), before.narrow(0, 12, 8)));
}

TEST_P(OptimizerStepsTest, SgdFollowsItsFormula) {
  for (const int64_t n : kLengths)
    for (const auto& [momentum, nesterov] : {std::pair{0.0, false}, {0.9, false}, {0.9, true}}) {
      const WeightTensors made = weights(n);
      Tensor b = on_device(at::zeros({n}));
      Tensor weight = as_double(made.params), velocity = at::zeros({n}, at::kDouble);
      const Tensor scale = half();
      for (int step = 0; step < 5; ++step) {
        const Tensor grads = normal_fp32({n}, 0.1);
        const SgdScalars s = {.lr = 0.1, .momentum = momentum, .weight_decay = 0.01, .nesterov = nesterov};
        table_->sgd_step(n, s, scale.const_data_ptr<float>(), optimized_weights("test", made),
                         grads.const_data_ptr<float>(), momentum == 0 ? nullptr : b.mutable_data_ptr<float>(),
                         stream_of(b));
        const Tensor g = as_double(grads) * 0.5 + weight * 0.01;
        velocity = velocity * momentum + g;
        weight = weight - 0.1 * (nesterov ? g + velocity * momentum : velocity);
      }
      expect_weights(made, weight);
    }
}

TEST_P(OptimizerStepsTest, MuonMixesMomentumAndAddsItsUpdate) {
  for (const int64_t n : kLengths)
    for (const bool nesterov : {true, false}) {
      const WeightTensors made = weights(n);
      Tensor b = normal_fp32({n}), update = empty({n});
      const Tensor grads = normal_fp32({n}), scale = half();
      const Tensor g = as_double(grads) * 0.5, mean = as_double(b) * 0.95 + g * 0.05;
      table_->muon_momentum(n, 0.95, nesterov, scale.const_data_ptr<float>(), grads.const_data_ptr<float>(),
                            b.mutable_data_ptr<float>(), dtype_, update.mutable_data_ptr(), stream_of(b));
      expect_close(b, mean, 2);
      expect_close(update, nesterov ? g * 0.05 + mean * 0.95 : mean, 2);
      const Tensor weight = as_double(made.params) * 0.9 - 0.3 * as_double(update);
      table_->add_update(n, 0.3, 0.1, optimized_weights("test", made), dtype_, update.const_data_ptr(),
                         stream_of(b));
      expect_weights(made, weight);
    }
}

TEST_P(OptimizerStepsTest, InPlaceBf16IsTheRoundedResult) {
  if (dtype_ != Dtype::kBf16) GTEST_SKIP() << "about bf16";
  const int64_t n = 100003;
  const WeightTensors alone{.params = normal({n})}, pair{alone.params.clone(), alone.params.to(at::kFloat)};
  const Tensor grads = normal_fp32({n}), scale = half();
  for (const WeightTensors* made : {&alone, &pair})
    table_->sgd_step(n, {.lr = 0.1, .momentum = 0, .weight_decay = 0, .nesterov = false},
                     scale.const_data_ptr<float>(), optimized_weights("test", *made),
                     grads.const_data_ptr<float>(), nullptr, stream_of(grads));
  EXPECT_TRUE(at::equal(alone.params, pair.params));
}

TEST_P(OptimizerStepsTest, StochasticRoundingOfAPartIsThatOfTheWhole) {
  if (dtype_ != Dtype::kBf16) GTEST_SKIP() << "about bf16";
  const int64_t rows = 37, row = 211;
  const Tensor params = normal({rows, row}), grads = normal_fp32({rows, row}), scale = half();
  const auto step = [&](const Tensor& weights, const Tensor& with, const ParamRuns& place) {
    WeightTensors made{weights.contiguous(), {}, true, 42, 7};
    made.place = place;
    const Tensor own = with.contiguous();
    table_->sgd_step(own.numel(), {.lr = 0.1, .momentum = 0, .weight_decay = 0, .nesterov = false},
                     scale.const_data_ptr<float>(), optimized_weights("test", made),
                     own.const_data_ptr<float>(), nullptr, stream_of(own));
    return made.params;
  };
  const Tensor whole = step(params.clone(), grads, {});
  const auto flat = [](const Tensor& x, int64_t first, int64_t count) {
    return x.reshape({-1}).narrow(0, first, count).clone();
  };
  for (const int64_t first : {1, 8, 13, 211, 3001})
    for (const int64_t count : {1, 5, 64, 1000})
      EXPECT_TRUE(at::equal(step(flat(params, first, count), flat(grads, first, count), {.first = first}),
                            flat(whole, first, count)))
          << first << " " << count;
  // Columns 5 to 11, 20 to 28 and 100 to 160 of every row, from the third element of the part on.
  const auto part = [&](const Tensor& x) {
    return flat(at::cat(std::vector<Tensor>{x.narrow(1, 5, 7), x.narrow(1, 20, 9), x.narrow(1, 100, 61)}, 1),
                3, rows * 77 - 3);
  };
  ParamRuns columns{.first = 3, .row = 77, .whole_row = row};
  columns.here[1] = 7, columns.here[2] = 16;
  columns.there[0] = 5, columns.there[1] = 20, columns.there[2] = 100;
  EXPECT_TRUE(at::equal(step(part(params), part(grads), columns), part(whole)));
  EXPECT_FALSE(at::equal(step(part(params), part(grads), {}), part(whole))) << "the noise does not matter";
}

TEST_P(OptimizerStepsTest, StochasticRoundingGoesUpAsOftenAsMuchIsCutOff) {
  if (dtype_ != Dtype::kBf16) GTEST_SKIP() << "about bf16";
  const int64_t n = 1 << 18;
  const double between = 1.0 - 0x1p-10;  // 1 - 0x1p-8 and 1 are neighbours: three quarters of the way
  Tensor grads = on_device(at::full({n}, 0x1p-10));
  WeightTensors made{on_device(at::ones({n}, at::kBFloat16)), {}, true, 42, 7};
  const auto step = [&] {
    table_->sgd_step(n, {.lr = 2, .momentum = 0, .weight_decay = 0, .nesterov = false},
                     half().const_data_ptr<float>(), optimized_weights("test", made),
                     grads.const_data_ptr<float>(), nullptr, stream_of(grads));
  };
  step();
  EXPECT_NEAR(as_double(made.params).mean().item<double>(), between, 0x1p-8 * 0.433 / 512 * 5);
  EXPECT_EQ(as_double(made.params).min().item<double>(), 1 - 0x1p-8);
  EXPECT_EQ(as_double(made.params).max().item<double>(), 1);
  // The bits are those of the scalar definition, whatever the table.
  const Tensor host = made.params.cpu().to(at::kFloat);
  for (int64_t i = 0; i < 1000; ++i) {
    const auto words = philox(42, static_cast<uint64_t>(i / 8), 7);
    const uint32_t noise = words[static_cast<size_t>(i % 8 / 2)] >> (i % 2 * 16) & 0xffffu;
    ASSERT_EQ(host[i].item<float>(), noise >= 0x4000 ? 1.0f : 1.0f - 0x1p-8f) << i;
  }
  const Tensor first = made.params.clone();
  made.params.fill_(1), step();
  EXPECT_TRUE(at::equal(made.params, first));
  made.params.fill_(1), made.step = 8, step();
  EXPECT_FALSE(at::equal(made.params, first));
  const auto add = [&] {
    table_->add_update(n, 0.5, 0, optimized_weights("test", made), Dtype::kFp32, grads.const_data_ptr(),
                       stream_of(grads));
  };
  made.params.fill_(INFINITY), add();
  EXPECT_TRUE(at::isinf(made.params).all().item<bool>());
  made.params.fill_(NAN), add();
  EXPECT_TRUE(at::isnan(made.params).all().item<bool>());
}

TYCHO_ON_EVERY_TABLE(OptimizerStepsTest);

TEST(OptimizerStepsOp, ChecksWhatItIsGiven) {
  const WeightTensors fp32{at::ones({4}), {}};
  const Tensor grads = at::ones({4}), scale = at::ones({1});
  Tensor m = at::zeros({3}), update = at::zeros({5});
  EXPECT_EQ(error_of([&] { lion_step({}, scale, fp32, grads, m); }),
            "[lion_step] m: expected Float [4] contiguous on cpu, got Float [3] contiguous on cpu");
  EXPECT_EQ(error_of([&] { sgd_step({.lr = 1, .momentum = 0.9}, scale, fp32, grads, m); }),
            "[sgd_step] momentum: expected Float [4] contiguous on cpu, got Float [3] contiguous on cpu");
  EXPECT_EQ(error_of([&] { add_update(1, 0, fp32, update); }),
            "[add_update] update: expected 4 contiguous elements, got 5");
}

}  // namespace
}  // namespace tycho
