// Dropout against its mask drawn number by number.
#include "trainer/kernels/dropout.h"

#include "tests/trainer/kernels/kernel_test.h"
#include "trainer/base/random/philox.h"

namespace tycho {
namespace {

/// 1 where kept.
Tensor oracle_mask(const DropoutMask& mask, int64_t rows, int64_t dim) {
  Tensor kept = at::zeros({rows, dim}, at::kDouble);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < dim; ++i) {
      const auto words = philox(mask.key, static_cast<uint64_t>(i / 64 * 16 + i % 16),
                                static_cast<uint64_t>(mask.first_row + r));
      kept[r][i] = words[static_cast<size_t>(i % 64 / 16)] * 0x1p-32 >= mask.p ? 1.0 : 0.0;
    }
  return kept;
}

class DropoutTest : public KernelTest {
 protected:
  Tensor run(const DropoutMask& mask, const Tensor& x, const Tensor& residual) {
    Tensor y = empty(x.sizes());
    table_->dropout({x.size(0), x.size(1)}, dtype_, mask, x.const_data_ptr(),
                    residual.defined() ? residual.const_data_ptr() : nullptr, y.mutable_data_ptr(),
                    stream_of(x));
    return y;
  }
};

TEST_P(DropoutTest, DropsByItsKeyAndAddsTheResidual) {
  for (const auto& [rows, dim] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 33}, {5, 64}, {2, 131}, {4, 200}}) {
    SCOPED_TRACE(testing::Message() << rows << " x " << dim);
    const DropoutMask mask{.p = 0.3, .key = 0x123456789abcdef0, .first_row = (int64_t{1} << 33) + 5};
    const Tensor x = normal({rows, dim}), residual = normal({rows, dim});
    const Tensor kept = oracle_mask(mask, rows, dim) / (1 - mask.p);
    expect_close(run(mask, x, residual), as_double(residual) + as_double(x) * kept);
    expect_close(run(mask, x, {}), as_double(x) * kept);
  }
}

TEST_P(DropoutTest, KeepsTheExpectedShareAndDiffersByKeyAndRow) {
  const Tensor x = on_device(at::ones({300, 500}).to(type_));
  const DropoutMask mask{.p = 0.1, .key = 7};
  const Tensor y = run(mask, x, {});
  EXPECT_NEAR((y != 0).to(at::kDouble).mean().item<double>(), 0.9, 0.004);
  EXPECT_FALSE(at::equal(y, run({.p = 0.1, .key = 8}, x, {})));
  EXPECT_FALSE(at::equal(y[0], y[1]));
  EXPECT_TRUE(at::equal(run({.p = 0.0, .key = 7}, x, {}), x));
  EXPECT_TRUE(
      at::equal(y.narrow(0, 100, 200), run({.p = 0.1, .key = 7, .first_row = 100}, x.narrow(0, 0, 200), {})));
}

TEST_P(DropoutTest, GivesTheSameBitsOnAnyNumberOfThreadsAndInPlace) {
  const DropoutMask mask{.p = 0.5, .key = 99};
  const Tensor x = normal({200, 300});
  const Tensor first = run(mask, x, {});
  at::set_num_threads(1);
  EXPECT_TRUE(at::equal(first, run(mask, x, {})));
  at::set_num_threads(2);
  Tensor in_place = x.clone();
  table_->dropout({200, 300}, dtype_, mask, in_place.const_data_ptr(), nullptr, in_place.mutable_data_ptr(),
                  stream_of(x));
  EXPECT_TRUE(at::equal(first, in_place));
}

TYCHO_ON_EVERY_TABLE(DropoutTest);

TEST(DropoutOp, RejectsAProbabilityOfOneOrMore) {
  const Tensor x = at::ones({4, 8});
  Tensor y = at::empty({4, 8});
  dropout({.p = 0.5, .key = 3}, x, x, y);
  EXPECT_TRUE(((y == 1.0) | (y == 3.0)).all().item<bool>());
  EXPECT_EQ(error_of([&] { dropout({.p = 1.0}, x, {}, y); }),
            "[dropout] expected a probability in [0, 1), got 1");
  EXPECT_NE(error_of([&] {
              dropout({.p = 0.1}, x, at::ones({4, 7}), y);
            }).find("residual: expected"),
            std::string::npos);
}

}  // namespace
}  // namespace tycho
