// Matrix products of linear layers against double, on the route that this process takes.
#include "trainer/kernels/matmul.h"

#include <array>
#include <cstdlib>

#include "tests/trainer/kernels/kernel_test.h"
#include "tests/trainer/kernels/matmul_oracle.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

class MatmulTest : public testing::TestWithParam<at::ScalarType> {};

/// N, M, K: few rows, ends of tiles, and several blocks of each.
const std::vector<std::array<int64_t, 3>> kShapes = {{1, 1, 1},       {1, 40, 7},      {8, 33, 65},
                                                     {33, 65, 17},    {5, 130, 300},   {64, 96, 530},
                                                     {1600, 30, 700}, {30, 1600, 700}, {700, 1600, 30}};

TEST_P(MatmulTest, EqualsDouble) {
  const auto type = GetParam();
  const bool ours = type == at::kFloat ? fp32_is_ours() : bf16_is_ours();
  for (const auto& [n, m, k] : kShapes) {
    SCOPED_TRACE(testing::Message() << "N " << n << " M " << m << " K " << k);
    const int roundings = ours || n <= 8 ? 1 : 2;
    const Tensor x = at::randn({n, k}).to(type), w = at::randn({m, k}).to(type),
                 dy = at::randn({n, m}).to(type), residual = at::randn({n, m}).to(type),
                 dx_before = at::randn({n, k}).to(type), dw_before = at::randn({m, k});
    const ProductOracle forward(x, w), to_x(dy, w.t()), to_w(dy.t(), x.t());
    Tensor y = at::empty({n, m}, type), dx = at::empty({n, k}, type), dw = at::empty({m, k});
    matmul_nt(x, w, y);
    forward.expect_near(y, nullptr, roundings);
    matmul_nt(x, w, y, {.residual_NM = residual});
    forward.expect_near(y, &residual, roundings);
    y.copy_(residual);
    matmul_nt(x, w, y, {.residual_NM = y});
    forward.expect_near(y, &residual, roundings);
    matmul_nn(dy, w, dx);
    to_x.expect_near(dx, nullptr, roundings);
    dx.copy_(dx_before);
    matmul_nn(dy, w, dx, {.residual_NM = dx});
    to_x.expect_near(dx, &dx_before, roundings);
    matmul_tn(dy, x, dw, false);  // fp32 sums on every route
    to_w.expect_near(dw);
    dw.copy_(dw_before);
    matmul_tn(dy, x, dw, true);
    to_w.expect_near(dw, &dw_before);
  }
}

TEST_P(MatmulTest, GivesTheSameBitsAgain) {
  const Tensor x = at::randn({300, 500}).to(GetParam()), w = at::randn({400, 500}).to(GetParam());
  Tensor y = at::empty({300, 400}, GetParam()), again = at::empty_like(y);
  matmul_nt(x, w, y);
  matmul_nt(x, w, again);
  EXPECT_TRUE(at::equal(y, again));
}

/// Many tokens have the weights laid out for them, few are laid out themselves; tasks differ, too.
TEST_P(MatmulTest, GivesARowTheSameBitsAmongManyRowsAndFew) {
  if (!(GetParam() == at::kFloat ? fp32_is_ours() : bf16_is_ours())) GTEST_SKIP() << "ATen multiplies";
  constexpr int64_t kRows = 1536, kPart = 48;
  for (const auto& [m, k] :
       std::vector<std::array<int64_t, 2>>{{128, 128}, {65, 128}, {512, 130}, {130, 512}}) {
    SCOPED_TRACE(testing::Message() << "M " << m << " K " << k);
    const Tensor x = at::randn({kRows, k}).to(GetParam()), w = at::randn({m, k}).to(GetParam()),
                 dy = at::randn({kRows, m}).to(GetParam()), residual = at::randn({kRows, m}).to(GetParam());
    Tensor y = at::empty({kRows, m}, GetParam()), y_part = at::empty({kPart, m}, GetParam()),
           dx = at::empty({kRows, k}, GetParam()), dx_part = at::empty({kPart, k}, GetParam());
    matmul_nt(x, w, y, {.residual_NM = residual});
    matmul_nn(dy, w, dx);
    for (int64_t row = 0; row < kRows; row += kPart) {
      matmul_nt(x.narrow(0, row, kPart), w, y_part, {.residual_NM = residual.narrow(0, row, kPart)});
      matmul_nn(dy.narrow(0, row, kPart), w, dx_part);
      EXPECT_TRUE(at::equal(y_part, y.narrow(0, row, kPart))) << "rows from " << row;
      EXPECT_TRUE(at::equal(dx_part, dx.narrow(0, row, kPart))) << "rows from " << row;
    }
  }
}

TEST_P(MatmulTest, WritesIntoTheGivenOutput) {
  // ATen replaces an output that does not fit; ours must keep its memory.
  Tensor y = at::empty({5, 4}, GetParam());
  const void* memory = y.const_data_ptr();
  matmul_nt(at::ones({5, 3}, GetParam()), at::ones({4, 3}, GetParam()), y);
  EXPECT_EQ(y.const_data_ptr(), memory);
  EXPECT_EQ(y.sum().item<float>(), 60.0f);
}

INSTANTIATE_TEST_SUITE_P(Dtypes, MatmulTest, testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& info) { return info.param == at::kFloat ? "fp32" : "bf16"; });

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
  const std::string table = std::string(cpu_kernels().name).substr(4);
  const auto ours = [&](const char* dtype) {
    return std::string(dtype) + " by Tycho's " + table + " kernel";
  };
  EXPECT_EQ(matmul_route(at::kCPU, at::kFloat), fp32_is_ours() ? ours("fp32") : "fp32 by ATen");
  const char* note = bf16_is_native(at::kCPU) ? "" : ", multiplied in fp32";
  EXPECT_EQ(matmul_route(at::kCPU, at::kBFloat16), bf16_is_ours() ? ours("bf16") + note : "bf16 by ATen");
}

/// "own own": who multiplies fp32 and bf16 in a process of its own.
void expect_multipliers(const char* forced, const std::string& wanted) {
  EXPECT_EXIT(
      {
        forced ? setenv("TYCHO_GEMM", forced, 1) : unsetenv("TYCHO_GEMM");
        const auto name = [](bool ours) { return ours ? "own" : "aten"; };
        const std::string got = std::string(name(fp32_is_ours())) + " " + name(bf16_is_ours());
        std::exit(got == wanted ? 0 : 1);
      },
      testing::ExitedWithCode(0), "")
      << wanted;
}

TEST(MatmulOpDeathTest, LetsTheEnvironmentChooseForBothDtypes) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  expect_multipliers("own", "own own");
  expect_multipliers("aten", "aten aten");
  expect_multipliers(nullptr, find_table("avx2") ? "own own" : "aten own");
  EXPECT_EXIT(
      {
        setenv("TYCHO_GEMM", "mkl", 1);
        try {
          bf16_is_ours();
        } catch (const Error& error) {
          std::fputs(error.what(), stderr);
          std::exit(static_cast<int>(error.code()));
        }
      },
      testing::ExitedWithCode(2), "TYCHO_GEMM expected own or aten, got 'mkl'");
}

}  // namespace
}  // namespace tycho
