// LayerNorm against autograd in double.
#include "trainer/kernels/layer_norm.h"

#include "tests/trainer/kernels/kernel_test.h"

namespace tycho {
namespace {

constexpr double kEps = 1e-5;

/// Over groups as wide as the weight.
Tensor oracle_norm(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Tensor grouped = x.reshape({x.size(0), -1, weight.size(0)});
  return at::layer_norm(grouped, {weight.size(0)}, weight, bias, kEps).view(x.sizes());
}

class LayerNormTest : public KernelTest {
 protected:
  struct Result {
    Tensor y, mean, inv_std, dx, dweight, dbias;
  };

  /// Adds to what the gradients were where `before` has them.
  Result run(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& dy,
             const Result& before = {}) {
    const int64_t dim = weight.size(0), groups = x.size(1) / dim, stats = x.size(0) * groups;
    const bool add = before.dx.defined();
    Result r{empty(x.sizes()),
             empty_fp32({stats}),
             empty_fp32({stats}),
             add ? before.dx.clone() : empty(x.sizes()),
             add ? before.dweight.clone() : empty_fp32({dim}),
             add ? before.dbias.clone() : empty_fp32({dim})};
    NormShape shape{x.size(0), groups, dim, x.stride(0), x.size(1), x.size(1)};
    table_->layer_norm(shape, dtype_, x.const_data_ptr(), weight.const_data_ptr(),
                       bias.defined() ? bias.const_data_ptr() : nullptr, kEps, r.y.mutable_data_ptr(),
                       r.mean.mutable_data_ptr<float>(), r.inv_std.mutable_data_ptr<float>(), {}, {},
                       stream_of(x));
    shape.y_step = dy.stride(0);
    Tensor workspace = empty_fp32({table_->layer_norm_backward_workspace(shape)});
    table_->layer_norm_backward(
        shape, dtype_, x.const_data_ptr(), weight.const_data_ptr(), r.mean.const_data_ptr<float>(),
        r.inv_std.const_data_ptr<float>(), dy.const_data_ptr(), r.dx.mutable_data_ptr(), add,
        r.dweight.mutable_data_ptr<float>(), bias.defined() ? r.dbias.mutable_data_ptr<float>() : nullptr,
        add, workspace.mutable_data_ptr<float>(), stream_of(x));
    return r;
  }
};

TEST_P(LayerNormTest, EqualsAutograd) {
  for (const auto& [rows, dim] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {1, 7}, {3, 33}, {70, 256}, {257, 131}, {40, 4096}}) {
    SCOPED_TRACE(testing::Message() << rows << " x " << dim);
    const Tensor x = normal({rows, dim}) + 0.5, weight = normal({dim}), bias = normal({dim});
    const Tensor dy = normal({rows, dim});
    Tensor leaf_x = leaf(x), leaf_weight = leaf(weight), leaf_bias = leaf(bias);
    const Tensor y = oracle_norm(leaf_x, leaf_weight, leaf_bias);
    y.backward(as_double(dy));

    const Result fresh = run(x, weight, bias, dy);
    expect_close(fresh.y, y, 2);
    expect_close(fresh.mean, as_double(x).mean(-1), 2);
    expect_close(fresh.dx, leaf_x.grad(), 4);
    expect_close(fresh.dweight, leaf_weight.grad(), 8);
    expect_close(fresh.dbias, leaf_bias.grad(), 8);
    Result before;
    before.dx = normal({rows, dim}), before.dweight = normal_fp32({dim}), before.dbias = normal_fp32({dim});
    const Result added = run(x, weight, bias, dy, before);
    expect_close(added.dx, leaf_x.grad() + as_double(before.dx), 4);
    expect_close(added.dweight, leaf_weight.grad() + as_double(before.dweight), 8);
    expect_close(added.dbias, leaf_bias.grad() + as_double(before.dbias), 8);
  }
}

TEST_P(LayerNormTest, TakesWidthsWhoseSumsAreJustBelow48KiBOfSharedMemory) {
  for (const int64_t dim : {6128, 6129, 6136, 6144, 6145}) {  // 6144: GPT-NeoX-20B
    SCOPED_TRACE(dim);
    const Tensor x = normal({2, dim}), weight = normal({dim}), bias = normal({dim}), dy = normal({2, dim});
    Tensor leaf_x = leaf(x), leaf_weight = leaf(weight), leaf_bias = leaf(bias);
    oracle_norm(leaf_x, leaf_weight, leaf_bias).backward(as_double(dy));
    const Result r = run(x, weight, bias, dy);
    expect_close(r.dx, leaf_x.grad(), 4);
    expect_close(r.dweight, leaf_weight.grad(), 8);
    expect_close(r.dbias, leaf_bias.grad(), 8);
  }
}

TEST_P(LayerNormTest, DoesWithoutABias) {
  const Tensor x = normal({9, 40}), weight = normal({40}), dy = normal({9, 40});
  Tensor leaf_x = leaf(x), leaf_weight = leaf(weight);
  const Tensor y = oracle_norm(leaf_x, leaf_weight, {});
  y.backward(as_double(dy));
  const Result r = run(x, weight, {}, dy);
  expect_close(r.y, y, 2);
  expect_close(r.dx, leaf_x.grad(), 4);
  expect_close(r.dweight, leaf_weight.grad(), 8);
}

TEST_P(LayerNormTest, NormsGroupsOfPackedRows) {
  for (const auto& [groups, dim] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 24}, {3, 8}, {4, 17}, {2, 64}}) {
    SCOPED_TRACE(testing::Message() << groups << " groups of " << dim);
    const int64_t rows = 37, width = groups * dim;
    const Tensor packed = normal({rows, width + 16}), packed_dy = normal({rows, width + 8});
    const Tensor x = packed.narrow(1, 8, width), dy = packed_dy.narrow(1, 8, width);
    const Tensor weight = normal({dim}), bias = normal({dim});
    Tensor leaf_x = leaf(x.contiguous()), leaf_weight = leaf(weight), leaf_bias = leaf(bias);
    const Tensor y = oracle_norm(leaf_x, leaf_weight, leaf_bias);
    y.backward(as_double(dy));
    const Result r = run(x, weight, bias, dy);
    expect_close(r.y, y, 2);
    expect_close(r.dx, leaf_x.grad(), 4);
    expect_close(r.dweight, leaf_weight.grad(), 8);
    expect_close(r.dbias, leaf_bias.grad(), 8);
  }
}

TEST_P(LayerNormTest, KeepsTheVarianceOfRowsFarFromZero) {
  if (type_ != at::kFloat) GTEST_SKIP() << "bf16 cannot hold such rows";
  const Tensor x = normal({4, 300}) + 1000.0, weight = on_device(at::ones({300}));
  const Result r = run(x, weight, {}, weight.expand({4, 300}).contiguous());
  expect_close(r.y, oracle_norm(as_double(x), as_double(weight), {}), 100);
}

TEST_P(LayerNormTest, GivesTheSameBitsAgainAndOnAnyNumberOfThreads) {
  const Tensor x = normal({515, 200}), weight = normal({200}), bias = normal({200}), dy = normal({515, 200});
  const Result first = run(x, weight, bias, dy);
  for (int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    const Result again = run(x, weight, bias, dy);
    EXPECT_TRUE(at::equal(first.y, again.y) && at::equal(first.dx, again.dx) &&
                at::equal(first.dweight, again.dweight) && at::equal(first.dbias, again.dbias));
  }
  at::set_num_threads(2);
}

TYCHO_ON_EVERY_TABLE(LayerNormTest);

TEST(LayerNormOp, NamesTheTensorThatDoesNotFit) {
  const Tensor x = at::randn({4, 8}), weight = at::ones({8}), bias = at::ones({8});
  Tensor y = at::empty({4, 8}), mean = at::empty({4}), inv_std = at::empty({4}), short_mean = at::empty({3});
  layer_norm(x, weight, bias, kEps, y, mean, inv_std);
  EXPECT_NEAR(y.mean().item<float>(), 1.0, 1e-5);
  EXPECT_EQ(error_of([&] { layer_norm(x, weight, bias, kEps, y, short_mean, inv_std); }),
            "[layer_norm] mean: expected Float [4] contiguous on cpu, got Float [3] contiguous on cpu");
  EXPECT_NE(
      error_of([&] { layer_norm(x, weight, at::ones({7}), kEps, y, mean, inv_std); }).find("bias: expected"),
      std::string::npos);
  EXPECT_EQ(error_of([&] { layer_norm(x, at::ones({3}), {}, kEps, y, mean, inv_std); }),
            "[layer_norm] x: expected rows that are a multiple of the weight's 3 elements, got 8");
}

TEST(LayerNormOp, NormsQueriesOfPackedRowsAndTheirGradientsInPlace) {
  const Tensor qkv = at::randn({6, 20}), weight = at::randn({4}), bias = at::randn({4});
  Tensor normed = qkv.clone(), d_qkv = at::randn({6, 20});
  const Tensor dy = d_qkv.clone();
  Tensor mean = at::empty({12}), inv_std = at::empty({12}), dweight = at::ones({4}), dbias = at::ones({4});
  Tensor y = normed.narrow(1, 4, 8), dx = d_qkv.narrow(1, 4, 8);
  layer_norm(y, weight, bias, kEps, y, mean, inv_std);
  layer_norm_backward(qkv.narrow(1, 4, 8), weight, mean, inv_std, dx, dx, false, dweight, dbias, true);
  Tensor leaf_x = leaf(qkv.narrow(1, 4, 8).contiguous()), leaf_weight = leaf(weight), leaf_bias = leaf(bias);
  const Tensor wanted = oracle_norm(leaf_x, leaf_weight, leaf_bias);
  wanted.backward(as_double(dy.narrow(1, 4, 8)));
  EXPECT_TRUE(at::allclose(as_double(y), wanted, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(as_double(dx), leaf_x.grad(), 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(as_double(dweight) - 1, leaf_weight.grad(), 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(as_double(dbias) - 1, leaf_bias.grad(), 1e-4, 1e-5));
  EXPECT_TRUE(at::equal(normed.narrow(1, 0, 4), qkv.narrow(1, 0, 4)));
  EXPECT_TRUE(at::equal(d_qkv.narrow(1, 12, 8), dy.narrow(1, 12, 8)));
}

}  // namespace
}  // namespace tycho
