// The gradient norm, casts and accumulation against ATen in double.
#include "trainer/kernels/optimizer/grad_norm.h"

#include <cmath>
#include <limits>

#include "tests/trainer/kernels/kernel_test.h"

namespace tycho {
namespace {

class FlatTest : public KernelTest {};

TEST_P(FlatTest, SumsSquaresInDouble) {
  for (int64_t n : {0, 1, 9, 8193, 3000001}) {
    const Tensor x = normal_fp32({n});
    const auto run = [&] {
      Tensor sum = on_device(at::full({1}, 2.0, at::kDouble));
      table_->sum_of_squares(n, x.const_data_ptr<float>(), sum.mutable_data_ptr<double>(), stream_of(x));
      return sum.item<double>();
    };
    const double oracle = 2.0 + as_double(x).square().sum().item<double>(), first = run();
    EXPECT_NEAR(first, oracle, 1e-7 * oracle);
    at::set_num_threads(1);
    EXPECT_EQ(first, run());
    at::set_num_threads(2);
  }
}

TEST_P(FlatTest, CastsLikeATenAndKeepsNaN) {
  Tensor x = normal({100001});
  x[77] = std::nan("");
  x[78] = std::numeric_limits<double>::infinity();
  for (const auto to : {at::kFloat, at::kBFloat16}) {
    Tensor y = at::empty(x.sizes(), x.options().dtype(to));
    table_->cast(x.numel(), dtype_, x.const_data_ptr(), to == at::kFloat ? Dtype::kFp32 : Dtype::kBf16,
                 y.mutable_data_ptr(), stream_of(x));
    EXPECT_TRUE(at::equal(y.nan_to_num(), x.to(to).nan_to_num()));
    EXPECT_TRUE(y[77].isnan().item<bool>());
  }
}

TEST_P(FlatTest, RoundsHalvesToEven) {
  const Tensor x =
      on_device(at::tensor({1.0, 1.00390625, 1.01171875, -1.00390625, 3.4e38, 1e-41}).to(at::kFloat));
  Tensor y = at::empty(x.sizes(), x.options().dtype(at::kBFloat16));
  table_->cast(x.numel(), Dtype::kFp32, x.const_data_ptr(), Dtype::kBf16, y.mutable_data_ptr(), stream_of(x));
  EXPECT_TRUE(at::equal(y.cpu(), x.cpu().to(at::kBFloat16)));
}

TEST_P(FlatTest, AddsToFp32) {
  for (int64_t n : {1, 31, 70001}) {
    const Tensor x = normal({n}), before = normal_fp32({n});
    Tensor y = before.clone();
    table_->add_to_fp32(n, dtype_, x.const_data_ptr(), y.mutable_data_ptr<float>(), stream_of(x));
    EXPECT_TRUE(at::equal(y, before + x.to(at::kFloat)));
  }
}

TYCHO_ON_EVERY_TABLE(FlatTest);

TEST(GradNorm, ClipsAboveTheLimitOnly) {
  Tensor sum = at::zeros({1}, at::kDouble), norm = at::empty({1}), scale = at::empty({1});
  add_sum_of_squares(at::full({9}, 2.0), sum);
  add_sum_of_squares(at::full({7}, 2.0), sum);
  clip_scale(sum, 2.0, norm, scale);
  EXPECT_FLOAT_EQ(norm.item<float>(), 8.0f);
  EXPECT_FLOAT_EQ(scale.item<float>(), 2.0 / (8.0 + 1e-6));
  clip_scale(sum, 100.0, norm, scale);
  EXPECT_EQ(scale.item<float>(), 1.0f);
  clip_scale(sum, 0.0, norm, scale);
  EXPECT_EQ(scale.item<float>(), 1.0f);
}

TEST(GradNorm, LetsNaNReachTheScale) {
  Tensor sum = at::zeros({1}, at::kDouble), norm = at::empty({1}), scale = at::empty({1});
  add_sum_of_squares(at::full({3}, std::nan("")), sum);
  clip_scale(sum, 1.0, norm, scale);
  EXPECT_TRUE(std::isnan(norm.item<float>()) && std::isnan(scale.item<float>()));
}

TEST(GradNorm, RefusesANegativeLimitAndAnFp32Sum) {
  Tensor sum = at::zeros({1}, at::kDouble), norm = at::empty({1}), scale = at::empty({1});
  EXPECT_NE(error_of([&] { clip_scale(sum, -1.0, norm, scale); }).find("max_norm"), std::string::npos);
  EXPECT_EQ(error_of([&] { add_sum_of_squares(at::ones({2}), norm); }),
            "[grad_norm] sum: expected Double [1] contiguous on cpu, got Float [1] contiguous on cpu");
}

}  // namespace
}  // namespace tycho
