// Which products the stand-in's cuBLASLt refuses, and what is done where it has no algorithm.
#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string>

#include <ATen/ops/gelu.h>
#include <ATen/ops/gelu_backward.h>

#include "tests/trainer/kernels/kernel_test.h"
#include "trainer/base/hash.h"
#include "trainer/kernels/matmul.h"
#include "trainer/kernels/tuned_products.h"
#include "trainer/kernels/twins/library_products.h"

namespace tycho {
namespace {

/// Sets TYCHO_STANDIN_LT while it lives.
struct Mode {
  explicit Mode(const char* mode) { setenv("TYCHO_STANDIN_LT", mode, 1); }
  ~Mode() { unsetenv("TYCHO_STANDIN_LT"); }
  Mode(const Mode&) = delete;
  Mode& operator=(const Mode&) = delete;
};

class StandinProducts : public testing::Test {
 protected:
  void SetUp() override { ASSERT_NE(find_table("cuda"), nullptr); }
  static Tensor normal(at::IntArrayRef shape) { return at::randn(shape).to(at::kBFloat16).to(at::kCUDA); }

  /// Sums of a product and what is added, each rounded to bf16 on its way.
  static void expect_near_twice(const Tensor& y, const Tensor& product, const Tensor& added) {
    const Tensor allowed = 0x1p-7 * (product.abs() + added.abs()) + 1e-4;
    EXPECT_TRUE(((as_double(y) - product - added).abs() < allowed).all().item<bool>());
  }

  /// gelu_tanh of a product, and back through a product with the same matrix to what GELU was given.
  static void gelu_forms(const Tensor& x, const Tensor& w, const Tensor& bias) {
    Tensor pre = at::empty({x.size(0), w.size(0)}, x.options()), y = at::empty_like(pre),
           dx = at::empty_like(x), y_again = at::empty_like(x);
    matmul_gelu({w, /*in_out=*/false, bias}, x, pre, y);
    expect_near_twice(pre, as_double(x).matmul(as_double(w).t()),
                      as_double(bias).expand({x.size(0), w.size(0)}));
    EXPECT_TRUE(at::allclose(as_double(y), at::gelu(as_double(pre), "tanh"), 0x1p-6, 0x1p-6));
    matmul_gelu_backward({w, /*in_out=*/false, {}}, pre, x, dx, y_again);
    const Tensor d_hidden = as_double(pre).matmul(as_double(w));
    EXPECT_TRUE(at::allclose(as_double(dx), at::gelu_backward(d_hidden, as_double(x), "tanh"), 0x1p-6, 0.5));
    EXPECT_TRUE(at::allclose(as_double(y_again), at::gelu(as_double(x), "tanh"), 0x1p-6, 0x1p-6));
  }

  /// Every fused form at a depth that no other test has: algorithms are chosen once. Numbers may be rounded
  /// twice. Returns what was said.
  static std::string all_forms(int64_t k) {
    const Tensor x = normal({24, k}), w = normal({40, k}), bias = normal({40}), residual = normal({24, 40}),
                 dy = normal({24, 40});
    const Tensor both = as_double(bias) + as_double(residual);
    const Tensor product = as_double(x).matmul(as_double(w).t());
    Tensor y = at::empty_like(residual);
    testing::internal::CaptureStderr();
    for (int i = 0; i < 2; ++i) matmul_nt(x, w, y, {bias, residual});
    expect_near_twice(y, product, both);
    matmul_nt(x, w, y, {.bias_M = bias});
    expect_near_twice(y, product, as_double(bias).expand({24, 40}));
    const auto fp32 = y.options().dtype(at::kFloat);
    Tensor dw = at::zeros({40, k}, fp32), db = at::ones({40}, fp32);
    for (int i = 0; i < 2; ++i) matmul_tn(dy, x, dw, /*accumulate=*/i == 1, {.of_dy_M = &db});
    const Tensor once = as_double(dy).t().matmul(as_double(x));
    EXPECT_LT((as_double(dw) - 2 * once).abs().max().item<double>(), 1e-3);
    EXPECT_LT((as_double(db) - 2 * as_double(dy).sum(0)).abs().max().item<double>(), 1e-4);
    gelu_forms(x, w, bias);
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(StandinProducts, WithoutAnAlgorithmForAnEpilogueOwnKernelsAddAndSaySoOnce) {
  const Mode mode("plain");
  EXPECT_EQ(
      all_forms(56),
      "[matmul_nt] cuBLASLt 13.1.0 has no bias with products of 24 x 40, 56 deep, BFloat16 to BFloat16: "
      "a kernel of its own does it, here and wherever else it has none\n"
      "[matmul_tn] cuBLASLt 13.1.0 has no sums of columns with products of 40 x 56, 24 deep, BFloat16 "
      "to Float: a kernel of its own does it, here and wherever else it has none\n"
      "[matmul_gelu] cuBLASLt 13.1.0 has no GELU with products of 24 x 40, 56 deep, BFloat16 to BFloat16: "
      "a kernel of its own does it, here and wherever else it has none\n"
      "[matmul_gelu_backward] cuBLASLt 13.1.0 has no gradient of GELU with products of 24 x 56, 40 deep, "
      "BFloat16 to BFloat16: a kernel of its own does it, here and wherever else it has none\n");
  EXPECT_EQ(all_forms(48), "") << "other forms are not said";
}

TEST_F(StandinProducts, WithoutAnyAlgorithmATenMultiplies) {
  const Mode mode("none");
  all_forms(64);
}

TEST_F(StandinProducts, AnAlgorithmThatFailsAtTheProductIsNotTakenAgain) {
  {
    const Mode mode("late");
    all_forms(72);
  }
  all_forms(72);
}

/// A product of [8, 16] · [24, 16]ᵀ in bf16 by the table's entry, with some arguments changed.
struct Raw {
  MatmulShape shape = {8, 24, 16};
  Tensor x = at::ones({8, 16}, bf16()), w = at::ones({24, 16}, bf16()), y = at::ones({8, 24}, bf16());
  MatmulOperand left = {x.const_data_ptr(), Dtype::kBf16, 16, 1},
                right = {w.const_data_ptr(), Dtype::kBf16, 16, 1};
  MatmulResult to = {y.mutable_data_ptr(), Dtype::kBf16, nullptr};

  static at::TensorOptions bf16() { return at::TensorOptions(at::kCUDA).dtype(at::kBFloat16); }

  /// Returns what the stand-in says; "" if it multiplies. Says `then` after the algorithm is chosen.
  std::string refusal(const std::function<void(Raw&)>& then = {}) {
    testing::internal::CaptureStderr();
    const std::string error = error_text([&] {
      const LibraryProducts& library = *library_products();
      const int64_t bytes = library.workspace(shape, left, right, to, {});
      const Tensor workspace = at::empty({bytes + 1}, bf16().dtype(at::kByte));
      if (then) then(*this);
      library.multiply(shape, left, right, to, {}, keeps_workspace ? workspace.mutable_data_ptr() : nullptr,
                       stream_of(y));
    });
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_EQ(error.empty(), said.empty()) << error << said;
    return said;
  }
  static std::string error_text(const std::function<void()>& call) {
    try {
      call();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "";
  }
  bool keeps_workspace = true;
};

TEST_F(StandinProducts, WhatBreaksTheLibrarysRulesIsRefused) {
  EXPECT_EQ(Raw().refusal(), "");
  const std::string asked = "[standin] cublasLtMatmulAlgoGetHeuristic: ", done = "[standin] cublasLtMatmul: ";
  Raw steps;
  steps.left.row_step = 15;
  EXPECT_EQ(steps.refusal(), asked + "a leading dimension shorter than a column\n");
  Raw types;
  types.right.dtype = Dtype::kFp32;
  EXPECT_EQ(types.refusal(), asked + "A and B of two types\n");
  Raw narrow;
  narrow.left.dtype = narrow.right.dtype = Dtype::kFp32;
  EXPECT_EQ(narrow.refusal(), asked + "fp32 does not give bf16\n");
  EXPECT_EQ(Raw().refusal([](Raw& raw) { raw.left.data = nullptr; }), done + "B is null\n");
  Raw far;
  far.shape.rows = 1 << 28;
  EXPECT_EQ(far.refusal(), done + "B reaches beyond the memory of a device\n");
  Raw inside;
  inside.to.data = const_cast<void*>(inside.left.data);
  EXPECT_EQ(inside.refusal(), done + "D lies in A or B\n");
  Raw part;
  part.to.added = static_cast<const char*>(part.to.data) + 256;
  EXPECT_EQ(part.refusal(), done + "D lies in a part of C\n");
  Raw deep;
  deep.keeps_workspace = false;
  EXPECT_EQ(deep.refusal(), done + "expected workspace at a multiple of 16 bytes\n");
}

/// Sums of products whose order shows in their bits.
Tensor product_in_fp32(const Tensor& dy, const Tensor& x) {
  Tensor dw = at::empty({dy.size(1), x.size(1)}, dy.options().dtype(at::kFloat));
  matmul_tn(dy, x, dw, /*accumulate=*/false);
  return dw.cpu();
}

TEST_F(StandinProducts, TakesTheFastestOfSeveralAlgorithms) {
  const Mode mode("many");
  const Tensor dy = normal({301, 24}), x = normal({301, 40});
  const Tensor by_first = product_in_fp32(dy, x);
  std::istringstream met(untuned_products(at::kCUDA));
  std::string form;
  for (std::string line; std::getline(met, line);)
    if (line.starts_with("24 40 301 ")) form = line;
  ASSERT_FALSE(form.empty()) << met.str();
  Tensor idle = at::empty({1 << 20}, at::TensorOptions(at::kCUDA).dtype(at::kByte)),
         small = idle.narrow(0, 0, 1024);
  const std::string choice = time_products(form + "\n", idle), unchanged = time_products(form + "\n", small);
  EXPECT_NE(choice, unchanged);
  use_products(unchanged, at::kCUDA);
  EXPECT_TRUE(at::equal(product_in_fp32(dy, x), by_first)) << "what does not fit keeps the first";
  EXPECT_TRUE(choice.starts_with(form + " : ")) << choice;
  EXPECT_TRUE(at::equal(product_in_fp32(dy, x), by_first)) << "timing alone changes nothing";
  use_products(choice, at::kCUDA);
  const Tensor by_third = product_in_fp32(dy, x);
  EXPECT_FALSE(at::equal(by_third, by_first));
  EXPECT_TRUE(at::allclose(by_third, by_first, 1e-4, 1e-3));
  EXPECT_EQ(untuned_products(at::kCUDA).find(form), std::string::npos);
  EXPECT_EQ(matmul_route(at::kCUDA, at::kBFloat16), "bf16 by cuBLASLt 13.1.0, tuned " + hash_hex(choice));
  EXPECT_EQ(error_of([&] { use_products(form + " : 0 12\n", at::kCUDA); }),
            "[matmul] expected a form and its algorithm, got \"" + form + " : 0 12\"");
}

TEST_F(StandinProducts, TimesEveryEpilogueAndAlignment) {
  const Mode mode("many");
  all_forms(104);
  const Tensor x = normal({9, 33}), w = normal({17, 33});
  Tensor y = at::empty({9 * 17 + 1}, x.options()).narrow(0, 1, 9 * 17).view({9, 17});
  matmul_nt(x, w, y);
  Tensor idle = at::empty({1 << 20}, at::TensorOptions(at::kCUDA).dtype(at::kByte));
  const std::string forms = untuned_products(at::kCUDA), choices = time_products(forms, idle);
  EXPECT_EQ(std::count(choices.begin(), choices.end(), '\n'), std::count(forms.begin(), forms.end(), '\n'));
  use_products(choices, at::kCUDA);
  all_forms(104);
  matmul_nt(x, w, y);
  expect_near_twice(y, as_double(x).matmul(as_double(w).t()), at::zeros({9, 17}, at::kDouble));
}

TEST_F(StandinProducts, SaysWhoMultiplies) {
  EXPECT_TRUE(matmul_route(at::kCUDA, at::kBFloat16).starts_with("bf16 by cuBLASLt 13.1.0"));
}

}  // namespace
}  // namespace tycho
