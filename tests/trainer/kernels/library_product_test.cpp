// Products of the GPU's library against double: on a GPU, or on its stand-in, whose library keeps the rules.
#include <array>
#include <cmath>
#include <vector>

#include "tests/trainer/kernels/kernel_test.h"
#include "tests/trainer/kernels/matmul_oracle.h"
#include "trainer/kernels/matmul.h"

namespace tycho {
namespace {

class LibraryProduct : public testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override {
    if (!find_table("cuda")) GTEST_SKIP() << "no GPU";
    if (!gpu_library_multiplies()) GTEST_SKIP() << "no cuBLASLt";
  }
  Tensor normal(at::IntArrayRef shape) const { return at::randn(shape).to(GetParam()).to(at::kCUDA); }
  static Tensor normal_fp32(at::IntArrayRef shape) { return at::randn(shape).to(at::kCUDA); }
};

/// N, M, K: one of each, widths that are no multiple of eight, and sums so deep that they are split.
const std::vector<std::array<int64_t, 3>> kSizes = {{1, 1, 1},    {1, 40, 7},   {9, 33, 65},
                                                    {33, 65, 17}, {64, 96, 80}, {16, 24, 500}};

void expect_near(const ProductOracle& oracle, const Tensor& actual, const Tensor& added) {
  oracle.expect_near(actual.cpu(), &added);
}
void expect_near(const ProductOracle& oracle, const Tensor& actual) { oracle.expect_near(actual.cpu()); }

TEST_P(LibraryProduct, AddsBiasesAndResidualsBeforeItRounds) {
  for (const auto& [n, m, k] : kSizes) {
    SCOPED_TRACE(testing::Message() << "N " << n << " M " << m << " K " << k);
    const Tensor x = normal({n, k}), w = normal({m, k}), w_in_out = normal({k, m}), bias = normal({m}),
                 residual = normal({n, m});
    const Tensor both = as_double(bias) + as_double(residual), rows = as_double(bias).expand({n, m});
    Tensor y = at::full_like(residual, NAN);
    const auto expect = [&](const ProductOracle& oracle, const auto& multiply) {
      multiply(AddedTerms{});
      expect_near(oracle, y);
      multiply(AddedTerms{.bias_M = bias});
      expect_near(oracle, y, rows);
      multiply(AddedTerms{.residual_NM = residual});
      expect_near(oracle, y, as_double(residual));
      multiply(AddedTerms{bias, residual});
      expect_near(oracle, y, both);
      y.copy_(residual);
      multiply(AddedTerms{bias, y});
      expect_near(oracle, y, both);
    };
    testing::internal::CaptureStderr();
    expect(ProductOracle(x.cpu(), w.cpu()), [&](const AddedTerms& added) { matmul_nt(x, w, y, added); });
    expect(ProductOracle(x.cpu(), w_in_out.cpu().t()),
           [&](const AddedTerms& added) { matmul_nn(x, w_in_out, y, added); });
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "a form had no algorithm";
  }
}

TEST_P(LibraryProduct, SumsGradientsInFp32AndColumnsAlongWithThem) {
  for (const auto& [n, m, k] : kSizes) {
    SCOPED_TRACE(testing::Message() << "N " << n << " M " << m << " K " << k);
    const Tensor dy = normal({n, m}), x = normal({n, k}), before = normal_fp32({m, k});
    const ProductOracle oracle(dy.cpu().t(), x.cpu().t());
    for (const bool of_dy : {true, false}) {
      const Tensor& summed = of_dy ? dy : x;
      const Tensor sums_before = normal_fp32({summed.size(1)});
      const Tensor ones = at::ones({1, n});
      const ProductOracle sums_oracle(ones, summed.cpu().t());
      Tensor dw = at::full_like(before, NAN), sums = at::full_like(sums_before, NAN);
      const ColumnSums wanted = of_dy ? ColumnSums{.of_dy_M = &sums} : ColumnSums{.of_x_K = &sums};
      testing::internal::CaptureStderr();
      matmul_tn(dy, x, dw, /*accumulate=*/false, wanted);
      ASSERT_EQ(dw.scalar_type(), at::kFloat);
      oracle.expect_near(dw.cpu());
      sums_oracle.expect_near(sums.cpu().view({1, -1}));
      dw.copy_(before), sums.copy_(sums_before);
      matmul_tn(dy, x, dw, /*accumulate=*/true, wanted);
      const Tensor added = before.cpu(), sums_added = sums_before.cpu().view({1, -1});
      oracle.expect_near(dw.cpu(), &added);
      sums_oracle.expect_near(sums.cpu().view({1, -1}), &sums_added);
      EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "a form had no algorithm";
    }
  }
}

Tensor gelu_tanh(const Tensor& x) {
  return 0.5 * x * (1 + (0.7978845608028654 * (x + 0.044715 * x.pow(3))).tanh());
}

TEST_P(LibraryProduct, ComputesTheTanhGeluAlongWithIt) {
  const double rounding = GetParam() == at::kFloat ? 1e-5 : 0x1p-6;
  for (const auto& [n, m, k] : {std::array<int64_t, 3>{9, 40, 64}, {33, 96, 17}, {5, 8, 300}}) {
    SCOPED_TRACE(testing::Message() << "N " << n << " M " << m << " K " << k);
    const Tensor x = normal({n, k}), bias = normal({m}), dy = normal({n, k});
    for (const bool in_out : {false, true})
      for (const Tensor& added : {bias, Tensor()}) {
        const Tensor up = normal(in_out ? at::IntArrayRef{k, m} : at::IntArrayRef{m, k}),
                     down = normal(in_out ? at::IntArrayRef{m, k} : at::IntArrayRef{k, m});
        Tensor pre = at::full({n, m}, NAN, x.options()), y = at::full_like(pre, NAN),
               dpre = at::full_like(pre, NAN);
        testing::internal::CaptureStderr();
        matmul_gelu({up, in_out, added}, x, pre, y);
        Tensor product = as_double(x).matmul(in_out ? as_double(up) : as_double(up).t());
        if (added.defined()) product = product + as_double(added);
        EXPECT_TRUE(at::allclose(as_double(pre), product, rounding, rounding));
        EXPECT_TRUE(at::allclose(as_double(y), gelu_tanh(product), rounding, rounding));
        const Tensor at_pre = leaf(pre);
        gelu_tanh(at_pre).backward(as_double(dy).matmul(in_out ? as_double(down).t() : as_double(down)));
        y.fill_(NAN);
        matmul_gelu_backward({down, in_out, {}}, dy, pre, dpre, y);
        EXPECT_TRUE(at::allclose(as_double(dpre), at_pre.grad(), rounding,
                                 rounding * std::sqrt(static_cast<double>(k))));
        EXPECT_TRUE(at::allclose(as_double(y), gelu_tanh(as_double(pre)), rounding, rounding));
        EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "a form had no algorithm";
      }
  }
}

TEST_P(LibraryProduct, GivesTheSameBitsAgain) {
  const Tensor x = normal({300, 500}), w = normal({400, 500}), bias = normal({400});
  Tensor y = at::empty({300, 400}, x.options()), again = at::empty_like(y);
  matmul_nt(x, w, y, {.bias_M = bias});
  matmul_nt(x, w, again, {.bias_M = bias});
  EXPECT_TRUE(at::equal(y.cpu(), again.cpu()));
}

INSTANTIATE_TEST_SUITE_P(Dtypes, LibraryProduct, testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& info) { return info.param == at::kFloat ? "fp32" : "bf16"; });

}  // namespace
}  // namespace tycho
