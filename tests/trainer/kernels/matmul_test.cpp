// Matrix products against ATen in double.
#include "trainer/kernels/matmul.h"

#include <algorithm>
#include <array>

#include "tests/trainer/kernels/kernel_test.h"

namespace tycho {
namespace {

void expect_near(const Tensor& actual, const Tensor& oracle) {
  // What is added up is around 1, also where it cancels.
  const double scale = std::max(1.0, oracle.abs().max().item<double>());
  const double tolerance = actual.scalar_type() == at::kBFloat16 ? 0x1p-8 : 4e-6;
  EXPECT_LE((as_double(actual) - oracle).abs().max().item<double>(), tolerance * scale);
}

class MatmulTest : public testing::TestWithParam<at::ScalarType> {};

// The last shapes take several blocks in rows, columns and depth.
const std::vector<std::array<int64_t, 3>> kShapes = {{1, 1, 1},        {1, 40, 7},      {33, 65, 17},
                                                     {5, 130, 300},    {64, 96, 530},   {1600, 30, 2100},
                                                     {30, 1600, 2100}, {2100, 1600, 30}};

TEST_P(MatmulTest, EqualsDouble) {
  for (const auto& [n, m, k] : kShapes) {
    SCOPED_TRACE(testing::Message() << "N " << n << " M " << m << " K " << k);
    const auto type = GetParam();
    const Tensor x = at::randn({n, k}).to(type), w = at::randn({m, k}).to(type),
                 dy = at::randn({n, m}).to(type);
    const Tensor x64 = as_double(x), w64 = as_double(w), dy64 = as_double(dy);
    const Tensor residual = at::randn({n, m}).to(type), dx_before = at::randn({n, k}).to(type),
                 dw_before = at::randn({m, k});
    Tensor y = at::empty({n, m}, type), dx = at::empty({n, k}, type), dw = at::empty({m, k});
    matmul_nt(x, w, y);
    expect_near(y, at::matmul(x64, w64.t()));
    matmul_nt_add(x, w, residual, y);
    expect_near(y, at::matmul(x64, w64.t()) + as_double(residual));
    y.copy_(residual);
    matmul_nt_add(x, w, y, y);
    expect_near(y, at::matmul(x64, w64.t()) + as_double(residual));
    matmul_nn(dy, w, dx);
    expect_near(dx, at::matmul(dy64, w64));
    dx.copy_(dx_before);
    matmul_nn(dy, w, dx, true);
    expect_near(dx, at::matmul(dy64, w64) + as_double(dx_before));
    matmul_tn(dy, x, dw, false);
    expect_near(dw, at::matmul(dy64.t(), x64));
    dw.copy_(dw_before);
    matmul_tn(dy, x, dw, true);
    expect_near(dw, at::matmul(dy64.t(), x64) + as_double(dw_before));
  }
}

TEST_P(MatmulTest, GivesTheSameBitsAgain) {
  const Tensor x = at::randn({300, 500}).to(GetParam()), w = at::randn({400, 500}).to(GetParam());
  Tensor y = at::empty({300, 400}, GetParam()), again = at::empty_like(y);
  matmul_nt(x, w, y);
  matmul_nt(x, w, again);
  EXPECT_TRUE(at::equal(y, again));
}

TEST_P(MatmulTest, WritesWhereItWasTold) {
  // ATen replaces an output that does not fit; ours must keep its memory.
  Tensor y = at::empty({5, 4}, GetParam());
  const void* memory = y.const_data_ptr();
  matmul_nt(at::ones({5, 3}, GetParam()), at::ones({4, 3}, GetParam()), y);
  EXPECT_EQ(y.const_data_ptr(), memory);
  EXPECT_EQ(y.sum().item<float>(), 60.0f);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, MatmulTest, testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& info) { return info.param == at::kFloat ? "fp32" : "bf16"; });

/// Left and right operands, straight and transposed, in both dtypes, on every table: whichever route a
/// machine takes, this is tested.
TEST(MatmulKernel, HasOneDefinitionOnEveryTable) {
  for (const char* name : {"generic", "avx2", "avx512"}) {
    const KernelTable* table = find_table(name);
    if (!table) continue;
    for (const auto& [rows, columns, depth] : kShapes)
      for (const int choice : {0, 1, 2, 3, 4, 5, 6, 7}) {
        const bool left_t = choice & 1, right_t = choice & 2;
        const auto type = choice & 4 ? at::kBFloat16 : at::kFloat;
        const Dtype dtype = choice & 4 ? Dtype::kBf16 : Dtype::kFp32;
        const Tensor left = at::randn({rows, depth}).to(type), right = at::randn({columns, depth}).to(type);
        const auto operand = [&](const Tensor& laid, bool transposed, int64_t n) {
          return MatmulOperand{laid.const_data_ptr(), dtype, transposed ? 1 : depth, transposed ? n : 1};
        };
        const Tensor left_laid = left_t ? left.t().contiguous() : left,
                     right_laid = right_t ? right.t().contiguous() : right;
        const Tensor added = at::randn({rows, columns});
        Tensor out = at::full({rows, columns}, 7.0);
        table->matmul({rows, columns, depth}, operand(left_laid, left_t, rows),
                      operand(right_laid, right_t, columns),
                      {out.mutable_data_ptr(), Dtype::kFp32, added.const_data_ptr()}, nullptr);
        SCOPED_TRACE(testing::Message()
                     << name << " " << rows << "x" << columns << "x" << depth << " " << choice);
        expect_near(out, at::matmul(as_double(left), as_double(right).t()) + as_double(added));
      }
  }
}

TEST(MatmulOp, NamesOperandsThatDoNotFit) {
  const Tensor x = at::ones({5, 3}), w = at::ones({4, 3});
  Tensor y = at::empty({5, 4}), dw = at::empty({4, 3});
  EXPECT_EQ(error_of([&] {
              matmul_nt(x, at::ones({4, 2}), y);
            }),
            "[matmul_nt] the operands do not fit: their common dim is 3 on the left and 2 on the right");
  EXPECT_NE(error_of([&] { matmul_nt(x, w.to(at::kBFloat16), y); }).find("right operand"), std::string::npos);
  EXPECT_NE(error_of([&] { matmul_nn(y, w, y); }).find("result"), std::string::npos);
  EXPECT_NE(error_of([&] {
              matmul_tn(at::ones({4, 4}), x, dw, false);
            }).find("do not fit"),
            std::string::npos);
}

TEST(MatmulOp, SaysHowItMultiplies) {
  EXPECT_EQ(matmul_route(at::kCPU, at::kFloat), fp32_is_ours() ? "fp32, Tycho's kernel" : "fp32, MKL");
  EXPECT_EQ(matmul_route(at::kCPU, at::kBFloat16) == "bf16", bf16_is_native(at::kCPU));
}

}  // namespace
}  // namespace tycho
