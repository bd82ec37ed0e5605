// Activations, alone, after a bias and gated, against autograd in double.
#include "trainer/kernels/activation.h"

#include "tests/trainer/kernels/kernel_test.h"

namespace tycho {
namespace {

constexpr Activation kAll[] = {Activation::kGelu, Activation::kGeluTanh, Activation::kQuickGelu,
                               Activation::kRelu, Activation::kSilu};

const char* name_of(Activation f) { return enum_names(f)[static_cast<size_t>(f)].first; }

Tensor oracle(Activation f, const Tensor& x) {
  switch (f) {
    case Activation::kGelu: return at::gelu(x);
    case Activation::kGeluTanh: return at::gelu(x, "tanh");
    case Activation::kQuickGelu: return x * at::sigmoid(1.702 * x);
    case Activation::kRelu: return at::relu(x);
    case Activation::kSilu: return at::silu(x);
  }
  return {};
}

Tensor gated_oracle(Activation f, const Tensor& gate_up) {
  const int64_t hidden = gate_up.size(1) / 2;
  return oracle(f, gate_up.narrow(1, 0, hidden)) * gate_up.narrow(1, hidden, hidden);
}

class ActivationTest : public KernelTest {
 protected:
  Tensor run(Activation f, const Tensor& x) {
    Tensor y = empty(x.sizes());
    table_->activation(x.numel(), dtype_, f, x.const_data_ptr(), y.mutable_data_ptr(), stream_of(x));
    return y;
  }
  void run_backward(Activation f, const Tensor& x, const Tensor& dy, Tensor& dx, Tensor& y) {
    table_->activation_backward(x.numel(), dtype_, f, x.const_data_ptr(), dy.const_data_ptr(),
                                dx.mutable_data_ptr(), y.mutable_data_ptr(), stream_of(x));
  }
  void run_gated_backward(Activation f, const Tensor& gate_up, const Tensor& dy, Tensor& dgate_up,
                          Tensor& y) {
    table_->gated_activation_backward({y.size(0), y.size(1)}, dtype_, f, gate_up.const_data_ptr(),
                                      dy.const_data_ptr(), dgate_up.mutable_data_ptr(), y.mutable_data_ptr(),
                                      stream_of(y));
  }
};

TEST_P(ActivationTest, EqualsAutograd) {
  for (const Activation f : kAll)
    for (const int64_t n : {1, 5, 64, 100001}) {
      SCOPED_TRACE(testing::Message() << name_of(f) << " of " << n);
      const Tensor x = normal({n}, 3.0), dy = normal({n});
      Tensor leaf_x = leaf(x);
      const Tensor wanted = oracle(f, leaf_x);
      wanted.backward(as_double(dy));
      const Tensor y = run(f, x);
      expect_close(y, wanted);
      Tensor dx = empty({n}), again = empty({n});
      run_backward(f, x, dy, dx, again);
      expect_close(dx, leaf_x.grad(), 2);
      EXPECT_TRUE(at::equal(y, again));
      Tensor in_place = x.clone(), y_in_dy = dy.clone();
      run_backward(f, in_place, y_in_dy, in_place, y_in_dy);
      EXPECT_TRUE(at::equal(in_place, dx) && at::equal(y_in_dy, y));
    }
}

TEST_P(ActivationTest, EqualsAutogradAfterABias) {
  for (const Activation f : kAll)
    for (const auto& [rows, dim] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 5}, {70, 64}, {257, 131}, {600, 40}}) {
      SCOPED_TRACE(testing::Message() << name_of(f) << " of " << rows << " x " << dim);
      const RowsShape shape{rows, dim};
      const Tensor x = normal({rows, dim}, 3.0), dy = normal({rows, dim}), bias = normal({dim}),
                   before = normal_fp32({dim});
      Tensor leaf_x = leaf(x), leaf_bias = leaf(bias);
      const Tensor wanted = oracle(f, leaf_x + leaf_bias);
      wanted.backward(as_double(dy));
      Tensor y = empty(x.sizes()), again = empty(x.sizes()), dx = empty(x.sizes());
      table_->bias_activation(shape, dtype_, f, bias.const_data_ptr(), x.const_data_ptr(),
                              y.mutable_data_ptr(), stream_of(x));
      expect_close(y, wanted, 2);
      Tensor workspace = empty_fp32({table_->bias_activation_backward_workspace(shape)});
      const auto backward = [&](const Tensor& from, const Tensor& d, Tensor& to, Tensor& out, float* dbias,
                                bool add) {
        table_->bias_activation_backward(shape, dtype_, f, bias.const_data_ptr(), from.const_data_ptr(),
                                         d.const_data_ptr(), to.mutable_data_ptr(), out.mutable_data_ptr(),
                                         dbias, add, workspace.mutable_data_ptr<float>(), stream_of(x));
      };
      Tensor dbias = before.clone(), added = before.clone();
      backward(x, dy, dx, again, dbias.mutable_data_ptr<float>(), false);
      expect_close(dx, leaf_x.grad(), 3);
      expect_close(dbias, leaf_bias.grad(), 16);
      EXPECT_TRUE(at::equal(y, again));
      Tensor in_place = x.clone(), y_in_dy = dy.clone();
      backward(in_place, y_in_dy, in_place, y_in_dy, added.mutable_data_ptr<float>(), true);
      expect_close(added, leaf_bias.grad() + as_double(before), 16);
      EXPECT_TRUE(at::equal(in_place, dx) && at::equal(y_in_dy, y));
      in_place = x.clone();
      backward(in_place, dy, in_place, again, nullptr, false);
      EXPECT_TRUE(at::equal(in_place, dx));
    }
}

TEST_P(ActivationTest, EqualsAutogradWhenGated) {
  for (const Activation f : kAll)
    for (const auto& [rows, hidden] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 5}, {2, 64}, {129, 341}}) {
      SCOPED_TRACE(testing::Message() << name_of(f) << " of " << rows << " x " << hidden);
      const Tensor gate_up = normal({rows, 2 * hidden}, 3.0), dy = normal({rows, hidden});
      Tensor y = empty({rows, hidden}), again = empty({rows, hidden}), dgate_up = empty({rows, 2 * hidden});
      table_->gated_activation({rows, hidden}, dtype_, f, gate_up.const_data_ptr(), y.mutable_data_ptr(),
                               stream_of(y));
      Tensor leaf_in = leaf(gate_up);
      const Tensor wanted = gated_oracle(f, leaf_in);
      wanted.backward(as_double(dy));
      expect_close(y, wanted, 1.5);
      run_gated_backward(f, gate_up, dy, dgate_up, again);
      expect_close(dgate_up, leaf_in.grad(), 3);
      EXPECT_TRUE(at::equal(y, again));
      Tensor in_place = gate_up.clone();
      run_gated_backward(f, in_place, dy, in_place, again);
      EXPECT_TRUE(at::equal(in_place, dgate_up));
    }
}

TEST_P(ActivationTest, StaysFiniteFarFromZeroAndLetsNaNShow) {
  const Tensor x = on_device(at::tensor({-1e4, -100.0, -20.0, 0.0, 20.0, 100.0, 1e4}).to(type_));
  const Tensor dy = on_device(at::ones({7}).to(type_));
  for (const Activation f : kAll) {
    SCOPED_TRACE(name_of(f));
    Tensor dx = empty({7}), y = empty({7});
    run_backward(f, x, dy, dx, y);
    Tensor leaf_x = leaf(x);
    const Tensor wanted = oracle(f, leaf_x);
    wanted.sum().backward();
    expect_close(y, wanted);
    expect_close(dx, leaf_x.grad());
    const Tensor nan = on_device(at::full({3}, NAN, at::kFloat).to(type_));
    EXPECT_TRUE(run(f, nan).isnan().all().item<bool>());
  }
}

TYCHO_ON_EVERY_TABLE(ActivationTest);

TEST(ActivationOp, RejectsTensorsOfDifferentShapes) {
  Tensor y = at::empty({4, 8});
  EXPECT_EQ(error_of([&] {
              activation(Activation::kRelu, at::ones({4, 4}), y);
            }),
            "[activation] y: expected Float [4, 4] contiguous on cpu, got Float [4, 8] contiguous on cpu");
  const Tensor x = at::full({4, 8}, -1.0);
  activation(Activation::kRelu, x, y);
  EXPECT_EQ(y.sum().item<float>(), 0.0f);
  Tensor dx = at::empty({4, 8});
  activation_backward(Activation::kSilu, x, at::ones({4, 8}), dx, y);
  EXPECT_NEAR(y[0][0].item<float>(), -0.26894142, 1e-6);
  EXPECT_NEAR(dx[3][7].item<float>(), 0.07232949, 1e-6);
}

TEST(ActivationOp, RejectsABiasOfAnotherWidth) {
  Tensor y = at::empty({4, 8}), none;
  const Tensor x = at::full({4, 8}, -3.0);
  EXPECT_EQ(error_of([&] { bias_activation(Activation::kGelu, at::ones({4}), x, y); }),
            "[bias_activation] bias: expected Float [8] contiguous on cpu, got Float [4] contiguous on cpu");
  bias_activation(Activation::kRelu, at::full({8}, 5.0), x, y);
  EXPECT_EQ(y.sum().item<float>(), 64.0f);
  Tensor dx = at::empty({4, 8}), dbias = at::ones({8});
  bias_activation_backward(Activation::kRelu, at::full({8}, 5.0), x, at::ones({4, 8}), dx, y, dbias, true);
  EXPECT_EQ(dbias[3].item<float>(), 5.0f);
  bias_activation_backward(Activation::kRelu, at::full({8}, -5.0), x, at::ones({4, 8}), dx, y, none, false);
  EXPECT_EQ(dx.abs().max().item<float>(), 0.0f);
}

TEST(ActivationOp, RejectsGateAndUpThatAreNotAdjacent) {
  Tensor y = at::empty({4, 8});
  EXPECT_EQ(
      error_of([&] {
        gated_activation(Activation::kSilu, at::ones({4, 8}), y);
      }),
      "[gated_activation] gate_up: expected Float [4, 16] contiguous on cpu, got Float [4, 8] contiguous "
      "on cpu");
  const Tensor gate_up = at::ones({4, 16});
  gated_activation(Activation::kSilu, gate_up, y);
  EXPECT_NEAR(y[0][0].item<float>(), 0.7310586, 1e-6);
  Tensor dgate_up = at::empty({4, 16});
  gated_activation_backward(Activation::kSilu, gate_up, at::ones({4, 8}), dgate_up, y);
  EXPECT_NEAR(dgate_up[0][8].item<float>(), 0.7310586, 1e-6);
}

}  // namespace
}  // namespace tycho
