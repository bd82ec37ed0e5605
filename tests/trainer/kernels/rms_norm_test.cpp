// RMSNorm against autograd in double.
#include "trainer/kernels/rms_norm.h"

#include "tests/trainer/kernels/kernel_test.h"

namespace tycho {
namespace {

constexpr double kEps = 1e-5;

Tensor oracle_norm(const Tensor& x, const Tensor& weight, double offset = 0) {
  return x * (x.square().mean(-1, true) + kEps).rsqrt() * (offset + weight);
}

class RmsNormTest : public KernelTest {
 protected:
  struct Result {
    Tensor y, inv_rms, dx, dweight;
  };

  Result run(const Tensor& x, const Tensor& weight, const Tensor& dy, const Tensor& dx_before,
             const Tensor& dweight_before, float offset = 0) {
    const int64_t dim = weight.size(0), groups = x.size(1) / dim;
    NormShape shape{x.size(0), groups, dim, x.stride(0), x.size(1), x.size(1)};
    const bool add = dx_before.defined();
    Result r{empty(x.sizes()), empty_fp32({shape.rows * groups}), add ? dx_before.clone() : empty(x.sizes()),
             add ? dweight_before.clone() : empty_fp32({dim})};
    table_->rms_norm(shape, dtype_, x.const_data_ptr(), weight.const_data_ptr(), offset, kEps,
                     r.y.mutable_data_ptr(), r.inv_rms.mutable_data_ptr<float>(), {}, {}, stream_of(x));
    shape.y_step = dy.stride(0);
    Tensor workspace = empty_fp32({table_->rms_norm_backward_workspace(shape)});
    table_->rms_norm_backward(shape, dtype_, x.const_data_ptr(), weight.const_data_ptr(), offset,
                              r.inv_rms.const_data_ptr<float>(), dy.const_data_ptr(), r.dx.mutable_data_ptr(),
                              add, r.dweight.mutable_data_ptr<float>(), add,
                              workspace.mutable_data_ptr<float>(), stream_of(x));
    return r;
  }
};

TEST_P(RmsNormTest, EqualsAutograd) {
  for (const auto& [rows, dim] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {1, 7}, {3, 33}, {70, 256}, {257, 131}, {40, 4096}}) {
    SCOPED_TRACE(testing::Message() << rows << " x " << dim);
    const Tensor x = normal({rows, dim}), weight = normal({dim}), dy = normal({rows, dim});
    const Tensor dx_before = normal({rows, dim}), dweight_before = normal_fp32({dim});
    for (const float offset : {0.0f, 1.0f}) {
      Tensor leaf_x = leaf(x), leaf_weight = leaf(weight);
      const Tensor y = oracle_norm(leaf_x, leaf_weight, offset);
      y.backward(as_double(dy));

      const Result fresh = run(x, weight, dy, {}, {}, offset);
      expect_close(fresh.y, y);
      expect_close(fresh.inv_rms, (as_double(x).square().mean(-1) + kEps).rsqrt());
      expect_close(fresh.dx, leaf_x.grad(), 4);
      expect_close(fresh.dweight, leaf_weight.grad(), 8);
      const Result added = run(x, weight, dy, dx_before, dweight_before, offset);
      expect_close(added.dx, leaf_x.grad() + as_double(dx_before), 4);
      expect_close(added.dweight, leaf_weight.grad() + as_double(dweight_before), 8);
    }
  }
}

TEST_P(RmsNormTest, TakesWidthsWhoseSumsAreJustBelow48KiBOfSharedMemory) {
  for (const int64_t dim : {12256, 12257, 12264, 12288, 12289}) {
    SCOPED_TRACE(dim);
    const Tensor x = normal({2, dim}), weight = normal({dim}), dy = normal({2, dim});
    Tensor leaf_x = leaf(x), leaf_weight = leaf(weight);
    oracle_norm(leaf_x, leaf_weight).backward(as_double(dy));
    const Result r = run(x, weight, dy, {}, {});
    expect_close(r.dx, leaf_x.grad(), 4);
    expect_close(r.dweight, leaf_weight.grad(), 8);
  }
}

TEST_P(RmsNormTest, NormsGroupsOfPackedRows) {
  for (const auto& [groups, dim] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 24}, {3, 8}, {4, 17}, {2, 64}}) {
    SCOPED_TRACE(testing::Message() << groups << " groups of " << dim);
    const int64_t rows = 37, width = groups * dim;
    const Tensor packed = normal({rows, width + 16}), packed_dy = normal({rows, width + 8});
    const Tensor x = packed.narrow(1, 8, width), dy = packed_dy.narrow(1, 8, width), weight = normal({dim});
    Tensor leaf_x = leaf(x.contiguous()), leaf_weight = leaf(weight);
    const Tensor y = oracle_norm(leaf_x.view({rows, groups, dim}), leaf_weight).view({rows, width});
    y.backward(as_double(dy));
    const Result r = run(x, weight, dy, {}, {});
    expect_close(r.y, y);
    expect_close(r.dx, leaf_x.grad(), 4);
    expect_close(r.dweight, leaf_weight.grad(), 8);
  }
}

TEST_P(RmsNormTest, GivesTheSameBitsAgainAndOnAnyNumberOfThreads) {
  const Tensor x = normal({515, 200}), weight = normal({200}), dy = normal({515, 200});
  const Result first = run(x, weight, dy, {}, {});
  for (int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    const Result again = run(x, weight, dy, {}, {});
    EXPECT_TRUE(at::equal(first.y, again.y) && at::equal(first.dx, again.dx) &&
                at::equal(first.dweight, again.dweight));
  }
  at::set_num_threads(2);
}

TEST_P(RmsNormTest, MayOverwriteItsInput) {
  const Tensor x = normal({5, 19}), weight = normal({19});
  Tensor in_place = x.clone(), inv_rms = empty_fp32({5});
  table_->rms_norm({5, 1, 19, 19, 19}, dtype_, in_place.const_data_ptr(), weight.const_data_ptr(), 0, kEps,
                   in_place.mutable_data_ptr(), inv_rms.mutable_data_ptr<float>(), {}, {}, stream_of(x));
  expect_close(in_place, oracle_norm(as_double(x), as_double(weight)));
}

TYCHO_ON_EVERY_TABLE(RmsNormTest);

TEST(RmsNormOp, NamesTheTensorThatDoesNotFit) {
  const Tensor x = at::ones({4, 8}), weight = at::ones({8});
  Tensor y = at::empty({4, 8}), inv_rms = at::empty({4});
  rms_norm(x, weight, 0, kEps, y, inv_rms);
  EXPECT_NEAR(y[3][7].item<float>(), 1.0, 1e-4);
  Tensor short_rms = at::empty({3});
  EXPECT_EQ(error_of([&] { rms_norm(x, weight, 0, kEps, y, short_rms); }),
            "[rms_norm] inv_rms: expected Float [4] contiguous on cpu, got Float [3] contiguous on cpu");
  EXPECT_NE(error_of([&] { rms_norm(x, at::ones({8}, at::kBFloat16), 0, kEps, y, inv_rms); }).find("weight"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              rms_norm(at::ones({8, 4}).t(), weight, 0, kEps, y, inv_rms);
            }).find("not contiguous"),
            std::string::npos);
  EXPECT_EQ(error_of([&] { rms_norm(x, at::ones({3}), 0, kEps, y, inv_rms); }),
            "[rms_norm] x: expected rows that are a multiple of the weight's 3 elements, got 8");
}

TEST(RmsNormOp, NormsQueriesAndKeysInPlaceOfTheirGradients) {
  const Tensor qkv = at::randn({6, 20}), weight = at::randn({4}), dqkv = at::randn({6, 20});
  Tensor normed = at::zeros({6, 20}), inv_rms = at::empty({12}), dweight = at::empty({4});
  Tensor y = normed.narrow(1, 4, 8), dx = dqkv.clone().narrow(1, 4, 8);
  const Tensor x = qkv.narrow(1, 4, 8);
  rms_norm(x, weight, 0, kEps, y, inv_rms);
  rms_norm_backward(x, weight, 0, inv_rms, dx, dx, false, dweight, false);
  Tensor leaf_x = leaf(x.contiguous());
  const Tensor wanted = oracle_norm(leaf_x.view({6, 2, 4}), as_double(weight)).view({6, 8});
  wanted.backward(as_double(dqkv.narrow(1, 4, 8)));
  EXPECT_TRUE(at::allclose(as_double(y), wanted, 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(as_double(dx), leaf_x.grad(), 1e-4, 1e-5));
  EXPECT_EQ(normed.narrow(1, 0, 4).abs().sum().item<float>(), 0.0f);
  EXPECT_EQ(normed.narrow(1, 12, 8).abs().sum().item<float>(), 0.0f);
}

TEST(RmsNormOp, AddsTheOffsetToEveryWeight) {
  const Tensor x = at::randn({6, 10}), weight = at::randn({10}), dy = at::randn({6, 10});
  Tensor y = at::empty({6, 10}), inv_rms = at::empty({6}), dx = at::empty({6, 10}), dweight = at::zeros({10});
  const auto run = [&](const Tensor& stored, double offset) {
    rms_norm(x, stored, offset, kEps, y, inv_rms);
    rms_norm_backward(x, stored, offset, inv_rms, dy, dx, false, dweight, false);
    return std::vector<Tensor>{y.clone(), dx.clone(), dweight.clone()};
  };
  const auto around_zero = run(weight, 1), around_one = run(weight + 1, 0);
  for (size_t i = 0; i < around_one.size(); ++i) EXPECT_TRUE(at::equal(around_zero[i], around_one[i])) << i;
}

TEST(RmsNormOp, RunsBackwardThroughTensors) {
  const Tensor x = at::randn({6, 10}), weight = at::randn({10}), dy = at::randn({6, 10});
  Tensor y = at::empty({6, 10}), inv_rms = at::empty({6}), dx = at::empty({6, 10}), dweight = at::zeros({10});
  rms_norm(x, weight, 0, kEps, y, inv_rms);
  rms_norm_backward(x, weight, 0, inv_rms, dy, dx, false, dweight, true);
  Tensor leaf_x = leaf(x), leaf_weight = leaf(weight);
  oracle_norm(leaf_x, leaf_weight).backward(as_double(dy));
  EXPECT_TRUE(at::allclose(as_double(dx), leaf_x.grad(), 1e-4, 1e-5));
  EXPECT_TRUE(at::allclose(as_double(dweight), leaf_weight.grad(), 1e-4, 1e-5));
}

}  // namespace
}  // namespace tycho
