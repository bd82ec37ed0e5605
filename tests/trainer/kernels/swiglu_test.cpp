// SwiGLU against autograd in double.
#include "trainer/kernels/swiglu.h"

#include "tests/trainer/kernels/kernel_test.h"

namespace tycho {
namespace {

class SwigluTest : public KernelTest {};

Tensor oracle_swiglu(const Tensor& gate_up) {
  const int64_t hidden = gate_up.size(1) / 2;
  return at::silu(gate_up.narrow(1, 0, hidden)) * gate_up.narrow(1, hidden, hidden);
}

TEST_P(SwigluTest, EqualsAutograd) {
  for (const auto& [rows, hidden] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 5}, {2, 64}, {129, 341}}) {
    SCOPED_TRACE(testing::Message() << rows << " x " << hidden);
    const Tensor gate_up = normal({rows, 2 * hidden}, 3.0), dy = normal({rows, hidden});
    Tensor y = empty({rows, hidden}), again = empty({rows, hidden}), dgate_up = empty({rows, 2 * hidden});
    table_->swiglu({rows, hidden}, dtype_, gate_up.const_data_ptr(), y.mutable_data_ptr(), stream_of(y));
    Tensor leaf_in = leaf(gate_up);
    const Tensor oracle = oracle_swiglu(leaf_in);
    oracle.backward(as_double(dy));
    expect_close(y, oracle);
    table_->swiglu_backward({rows, hidden}, dtype_, gate_up.const_data_ptr(), dy.const_data_ptr(),
                            dgate_up.mutable_data_ptr(), again.mutable_data_ptr(), stream_of(y));
    expect_close(dgate_up, leaf_in.grad(), 2);
    EXPECT_TRUE(at::equal(y, again));
    Tensor in_place = gate_up.clone();
    table_->swiglu_backward({rows, hidden}, dtype_, in_place.const_data_ptr(), dy.const_data_ptr(),
                            in_place.mutable_data_ptr(), again.mutable_data_ptr(), stream_of(y));
    EXPECT_TRUE(at::equal(in_place, dgate_up));
  }
}

TEST_P(SwigluTest, StaysFiniteForLargeGates) {
  const Tensor gate_up =
      on_device(at::tensor({-1e4, -100.0, 100.0, 1e4, 1.0, 1.0, 1.0, 1.0}).view({1, 8}).to(type_));
  const Tensor dy = on_device(at::ones({1, 4}).to(type_));
  Tensor y = empty({1, 4}), dgate_up = empty({1, 8});
  table_->swiglu_backward({1, 4}, dtype_, gate_up.const_data_ptr(), dy.const_data_ptr(),
                          dgate_up.mutable_data_ptr(), y.mutable_data_ptr(), stream_of(y));
  EXPECT_TRUE(y.isfinite().all().item<bool>() && dgate_up.isfinite().all().item<bool>());
  expect_close(y, oracle_swiglu(as_double(gate_up)));
}

TYCHO_ON_EVERY_TABLE(SwigluTest);

TEST(SwigluOp, WantsGateAndUpSideBySide) {
  Tensor y = at::empty({4, 8});
  EXPECT_EQ(error_of([&] {
              swiglu(at::ones({4, 8}), y);
            }),
            "[swiglu] gate_up: wanted Float [4, 16] contiguous on cpu, got Float [4, 8] contiguous on cpu");
  const Tensor gate_up = at::ones({4, 16});
  swiglu(gate_up, y);
  EXPECT_NEAR(y[0][0].item<float>(), 0.7310586, 1e-6);
  Tensor dgate_up = at::empty({4, 16});
  swiglu_backward(gate_up, at::ones({4, 8}), dgate_up, y);
  EXPECT_NEAR(dgate_up[0][8].item<float>(), 0.7310586, 1e-6);
}

}  // namespace
}  // namespace tycho
