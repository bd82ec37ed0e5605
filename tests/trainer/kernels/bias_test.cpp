// The bias of a linear layer against sums in double.
#include "trainer/kernels/bias.h"

#include "tests/trainer/kernels/kernel_test.h"

namespace tycho {
namespace {

class BiasTest : public KernelTest {
 protected:
  Tensor gradient(const Tensor& dy, const Tensor& before, bool add) {
    const RowsShape shape{dy.size(0), dy.size(1)};
    Tensor dbias = before.clone(), workspace = empty_fp32({table_->bias_gradient_workspace(shape)});
    table_->bias_gradient(shape, dtype_, dy.const_data_ptr(), dbias.mutable_data_ptr<float>(), add,
                          workspace.mutable_data_ptr<float>(), stream_of(dy));
    return dbias;
  }
};

TEST_P(BiasTest, IsAddedToEveryRowAndSumsItsGradient) {
  for (const auto& [rows, dim] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 7}, {70, 256}, {257, 131}, {1000, 40}}) {
    SCOPED_TRACE(testing::Message() << rows << " x " << dim);
    const Tensor x = normal({rows, dim}), bias = normal({dim}), before = normal_fp32({dim});
    Tensor y = x.clone();
    table_->add_bias({rows, dim}, dtype_, bias.const_data_ptr(), y.const_data_ptr(), y.mutable_data_ptr(),
                     stream_of(y));
    expect_close(y, as_double(x) + as_double(bias));
    const Tensor sums = as_double(x).sum(0);
    expect_close(gradient(x, before, false), sums, 8);
    expect_close(gradient(x, before, true), sums + as_double(before), 8);
  }
}

TEST_P(BiasTest, GivesTheSameBitsOnAnyNumberOfThreads) {
  const Tensor dy = normal({515, 200}), before = normal_fp32({200});
  const Tensor first = gradient(dy, before, true);
  for (int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    EXPECT_TRUE(at::equal(first, gradient(dy, before, true)));
  }
  at::set_num_threads(2);
}

TYCHO_ON_EVERY_TABLE(BiasTest);

TEST(BiasOp, NamesTheTensorThatDoesNotFit) {
  Tensor y = at::zeros({4, 8}), dbias = at::empty({8});
  add_bias(at::full({8}, 0.5), at::zeros({4, 8}), y);
  EXPECT_EQ(y.sum().item<float>(), 16.0f);
  bias_gradient(y, dbias, false);
  EXPECT_EQ(dbias[7].item<float>(), 2.0f);
  EXPECT_EQ(error_of([&] { add_bias(at::ones({7}), y, y); }),
            "[add_bias] bias: expected Float [8] contiguous on cpu, got Float [7] contiguous on cpu");
  Tensor coarse = at::empty({8}, at::kBFloat16);
  EXPECT_EQ(
      error_of([&] { bias_gradient(y, coarse, false); }),
      "[bias_gradient] dbias: expected Float [8] contiguous on cpu, got BFloat16 [8] contiguous on cpu");
}

}  // namespace
}  // namespace tycho
