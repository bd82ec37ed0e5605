// The engine's tensors as Lua computes with them, against plain loops.
#include "trainer/run/live_tensor.h"

#include <gtest/gtest.h>

#include "tests/bindings/run/fake_tensor.h"
#include "tests/trainer/aten.h"

namespace tycho {
namespace {

class LiveTensorTest : public ::testing::Test {
 protected:
  /// The same numbers in both.
  void SetUp() override {
    const Tensor x = at::randn({3, 5}, at::kDouble);
    live_ = make_view(x.to(at::kFloat));
    fake_ = std::make_unique<FakeTensor>(std::vector<int64_t>{3, 5}, live_->values());
  }
  static void expect_same(const TensorView& live, const TensorView& fake) {
    ASSERT_EQ(live.shape(), fake.shape());
    const std::vector<double> a = live.values(), b = fake.values();
    for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5) << i;
  }
  std::unique_ptr<TensorView> live_;
  std::unique_ptr<FakeTensor> fake_;
};

TEST_F(LiveTensorTest, ReducesEachDimensionAndAll) {
  for (const TensorReduction how : {TensorReduction::kSum, TensorReduction::kMean, TensorReduction::kMax,
                                    TensorReduction::kMin, TensorReduction::kArgmax})
    for (const std::optional<int64_t> dim :
         {std::optional<int64_t>{}, std::optional<int64_t>{0}, std::optional<int64_t>{1}})
      expect_same(*live_->reduced(how, dim), *fake_->reduced(how, dim));
}

TEST_F(LiveTensorTest, MultipliesTransposesAndTakesShares) {
  expect_same(*live_->transposed(0, 1), *fake_->transposed(0, 1));
  expect_same(*live_->matmul(*live_->transposed(0, 1)), *fake_->matmul(*fake_->transposed(0, 1)));
  expect_same(*live_->softmax(0), *fake_->softmax(0));
  expect_same(*live_->softmax(1), *fake_->softmax(1));
}

TEST_F(LiveTensorTest, FindsTheLargestAndMasks) {
  const auto [values, positions] = live_->largest(3);
  const auto [wanted_values, wanted_positions] = fake_->largest(3);
  expect_same(*values, *wanted_values);
  expect_same(*positions, *wanted_positions);
  expect_same(*live_->masked(*live_->combined(TensorOp::kGt, *live_->scalar(0))),
              *fake_->masked(*fake_->combined(TensorOp::kGt, *fake_->scalar(0))));
}

TEST_F(LiveTensorTest, AViewSharesTheBytesAndAResultOwnsThem) {
  Tensor x = at::zeros({2, 6});
  const auto view = make_view(x);
  const auto other = view->reshaped({3, 4});
  x.fill_(7);
  EXPECT_EQ(other->values(), std::vector<double>(12, 7));
  EXPECT_EQ(other->num_bytes(), 0);
  EXPECT_EQ(view->softmax(1)->num_bytes(), 48);
}

TEST_F(LiveTensorTest, NamesWhatDoesNotFit) {
  const auto message = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kUsage);
      return error.what();
    }
    return "nothing";
  };
  EXPECT_EQ(message([&] { live_->matmul(*live_); }),
            "[tensor] mm expected [M x K] and [K x N], or batches of these, got [3 x 5] and [3 x 5]");
  EXPECT_EQ(message([&] { live_->softmax(2); }), "[tensor] expected one of 2 dimensions, got 3");
  EXPECT_EQ(message([&] { live_->largest(6); }), "[tensor] topk expected 1 to 5 elements, got 6");
  EXPECT_EQ(message([&] {
              live_->reshaped({4, 4});
            }),
            "[tensor] view expected sizes of 15 elements, got sizes of 16");
  EXPECT_EQ(message([&] { live_->masked(*live_->transposed(0, 1)); }),
            "[tensor] a mask expected the shape [3 x 5], got [5 x 3]");
}

}  // namespace
}  // namespace tycho
