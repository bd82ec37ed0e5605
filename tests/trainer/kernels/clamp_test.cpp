// Bounds on every element against ATen's.
#include "trainer/kernels/clamp.h"

#include "tests/trainer/kernels/kernel_test.h"

namespace tycho {
namespace {

class ClampTest : public KernelTest {};

TEST_P(ClampTest, EqualsAutogradInPlace) {
  for (const int64_t n : {1, 7, 64, 100001}) {
    Tensor x = normal({n}, 2.0);
    if (n > 5) x[0] = 1.5, x[1] = -1.5, x[2] = INFINITY, x[3] = -INFINITY, x[4] = NAN;
    const Tensor dy = normal({n});
    Tensor leaf_x = leaf(x), y = x.clone(), dx = dy.clone();
    const Tensor wanted = at::clamp(leaf_x, -1.5, 1.5);
    wanted.backward(as_double(dy));
    table_->clamp(n, dtype_, 1.5f, y.const_data_ptr(), y.mutable_data_ptr(), stream_of(x));
    table_->clamp_backward(n, dtype_, 1.5f, x.const_data_ptr(), dx.const_data_ptr(), dx.mutable_data_ptr(),
                           stream_of(x));
    EXPECT_TRUE(at::allclose(as_double(y), wanted, 0, 0, /*equal_nan=*/true));
    EXPECT_TRUE(at::allclose(as_double(dx), leaf_x.grad(), 0, 0));
  }
}

TYCHO_ON_EVERY_TABLE(ClampTest);

TEST(ClampOp, RejectsALimitOfZeroOrLess) {
  const Tensor x = at::tensor({-2.0f, 0.5f, 2.0f});
  Tensor y = at::empty({3}), dx = at::empty({3});
  clamp(1.0, x, y);
  EXPECT_TRUE(at::equal(y, at::tensor({-1.0f, 0.5f, 1.0f})));
  clamp_backward(2.0, x, x, dx);
  EXPECT_TRUE(at::equal(dx, x));
  EXPECT_EQ(error_of([&] { clamp(0, x, y); }), "[clamp] expected a limit above 0, got 0");
  EXPECT_EQ(error_of([&] { clamp_backward(-1, x, x, dx); }),
            "[clamp_backward] expected a limit above 0, got -1");
}

}  // namespace
}  // namespace tycho
