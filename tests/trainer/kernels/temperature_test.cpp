// Temperature tuning against its formula in double.
#include "trainer/kernels/temperature.h"

#include "tests/trainer/kernels/kernel_test.h"

namespace tycho {
namespace {

class TemperatureTest : public KernelTest {};

Tensor oracle(const Tensor& x, const Tensor& position_N, TemperatureRule rule) {
  const Tensor steps =
      ((position_N.to(at::kDouble) + rule.counts_from) / static_cast<double>(rule.floor_scale)).floor();
  return x * (1 + static_cast<double>(rule.attn_scale) * (steps + 1).log()).unsqueeze(1);
}

TEST_P(TemperatureTest, ScalesRowsByPositionAndNothingElse) {
  struct Case {
    int64_t batch, seq, first, dim, width;
    TemperatureRule rule;
  };
  for (const Case& c : {Case{1, 1, 0, 1, 1, {0.1f, 8192}}, Case{2, 37, 0, 22, 40, {0.3f, 4}},
                        Case{3, 40, 8190, 64, 128, {0.1f, 8192}}, Case{1, 9, 5, 24, 24, {2, 0.5f}},
                        Case{2, 37, 0, 22, 40, {0.3f, 4, 0}}, Case{1, 40, 16380, 24, 24, {0.1f, 16384, 0}}}) {
    const int64_t rows = c.batch * c.seq;
    const Tensor all = normal({rows, c.width});
    const Tensor position_N = at::arange(c.first, c.first + c.seq, at::kInt).repeat({c.batch});
    const Tensor wanted = at::concat({oracle(as_double(all.narrow(1, 0, c.dim)), position_N, c.rule),
                                      as_double(all.narrow(1, c.dim, c.width - c.dim))},
                                     1);
    Tensor counted = all.clone(), named = all.clone();
    table_->temperature({rows, c.dim}, c.width, dtype_, c.rule, {c.seq, c.first}, counted.mutable_data_ptr(),
                        stream_of(all));
    expect_close(counted, wanted, 2);
    const Tensor given = on_device(position_N);
    table_->temperature({rows, c.dim}, c.width, dtype_, c.rule,
                        {.position_N = given.const_data_ptr<int32_t>()}, named.mutable_data_ptr(),
                        stream_of(all));
    EXPECT_TRUE(at::equal(named, counted));
  }
}

TYCHO_ON_EVERY_TABLE(TemperatureTest);

TEST(TemperatureOp, GrowsWhereFloorScaleSays) {
  Tensor x = at::ones({4, 1});
  temperature({1, 2}, 4, 0, {}, x);  // positions 0 to 3: floor(0.5), floor(1), floor(1.5), floor(2)
  EXPECT_TRUE(at::allclose(x.flatten(), 1 + at::tensor({1.0f, 2.0f, 2.0f, 3.0f}).log()));
}

TEST(TemperatureOp, CountsFromZeroAsMinistralDoes) {
  Tensor x = at::ones({5, 1});
  temperature({1, 2, 0}, 5, 0, {},
              x);  // positions 0 to 4: floor(0), floor(0.5), floor(1), floor(1.5), floor(2)
  EXPECT_TRUE(at::allclose(x.flatten(), 1 + at::tensor({1.0f, 1.0f, 2.0f, 2.0f, 3.0f}).log()));
}

TEST(TemperatureOp, RefusesPositionsThatDoNotFit) {
  Tensor x = at::ones({4, 2});
  EXPECT_EQ(error_of([&] {
              temperature({1, 0}, 4, 0, {}, x);
            }),
            "[temperature] expected a floor_scale above 0, got 0");
  EXPECT_EQ(error_of([&] {
              temperature({1, 2, 2}, 4, 0, {}, x);
            }),
            "[temperature] expected counts_from 0 or 1, got 2");
  EXPECT_EQ(
      error_of([&] { temperature({}, 0, -1, {}, x); }),
      "[temperature] expected sequences of 1 or more tokens from a position that is not negative, got 0 "
      "from -1");
  EXPECT_NE(error_of([&] {
              temperature({}, 4, 0, at::zeros({3}, at::kInt), x);
            }).find("[temperature] positions: expected Int"),
            std::string::npos);
}

}  // namespace
}  // namespace tycho
