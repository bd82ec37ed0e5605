// The norm over all flat buffers, and the factor that clips to it.
#include "trainer/optim/grad_clip.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tycho {
namespace {

/// Gradients of two units, of the norm 5 together.
std::vector<Tensor> grads_of_norm_five() { return {at::tensor({1.0f, 2.0f}), at::tensor({-4.0f, 2.0f})}; }

TEST(SumOfSquaresTest, RunsOverAllBuffersOfEitherDtype) {
  const Tensor sum_1 = sum_of_squares({at::full({1000}, 0.5f), at::full({3}, -2.0f).to(at::kBFloat16)});
  EXPECT_EQ(sum_1.scalar_type(), at::kDouble);
  EXPECT_EQ(sum_1.sizes(), (std::vector<int64_t>{1}));
  EXPECT_EQ(sum_1.item<double>(), 1000 * 0.25 + 3 * 4);
}

TEST(SumOfSquaresTest, IsNotFiniteWhenOneNumberIsNotAndFiniteForTheLargest) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const float bad : {inf, -inf, nan}) {
    std::vector<Tensor> flats = {at::ones({40}), at::ones({41})};
    flats.back()[40] = bad;
    EXPECT_FALSE(std::isfinite(sum_of_squares(flats).item<double>())) << bad;
  }
  const Tensor largest = at::full({1000}, std::numeric_limits<float>::max());
  EXPECT_TRUE(std::isfinite(sum_of_squares({largest}).item<double>()));
}

TEST(GradClipTest, ScalesWhatIsAboveTheNormDownToIt) {
  const std::vector<Tensor> grads = grads_of_norm_five();
  const GradNorm norm = clip_gradients({.norm = 1.0}, grads);
  EXPECT_EQ(norm.norm_1.item<float>(), 5);
  EXPECT_NEAR(norm.scale_1.item<float>(), 0.2, 1e-6);
  EXPECT_EQ(norm.norm_1.scalar_type(), at::kFloat);
  EXPECT_EQ(norm.scale_1.scalar_type(), at::kFloat);
  EXPECT_EQ(grads[1][0].item<float>(), -4) << "the optimizer scales, not the clip";
}

TEST(GradClipTest, LeavesWhatIsBelowTheNormAndEverythingWhenItIsOff) {
  EXPECT_EQ(clip_gradients({.norm = 5.1}, grads_of_norm_five()).scale_1.item<float>(), 1);
  EXPECT_EQ(clip_gradients({.norm = 0}, grads_of_norm_five()).scale_1.item<float>(), 1);
}

}  // namespace
}  // namespace tycho
