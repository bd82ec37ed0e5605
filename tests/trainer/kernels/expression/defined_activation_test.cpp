// Activations of recipes, gated and not, against autograd in double and against the built-in kernels.
#include "trainer/kernels/expression/defined_activation.h"

#include <ATen/ops/clamp.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/where.h>

#include <functional>

#include "tests/trainer/expression/activation_functions.h"
#include "tests/trainer/kernels/kernel_test.h"
#include "trainer/base/error.h"
#include "trainer/kernels/activation.h"

namespace tycho {
namespace {

struct Function {
  const char* name;
  Json defined;
  std::function<Tensor(const Tensor&)> oracle;
};

/// Kinks are at 0 and at 0.5, which the inputs hit.
std::vector<Function> functions() {
  return {
      {"silu", silu_function(), [](const Tensor& x) { return at::silu(x); }},
      {"gelu_tanh",
       function_of_x("['number',0.044715],['mul',0,0],['mul',2,0],['mul',1,3],['add',0,4],"
                     "['number',0.7978845608028654],['mul',6,5],['tanh',7],['number',1],['add',9,8],"
                     "['number',0.5],['mul',11,0],['mul',12,10]"),
       [](const Tensor& x) { return at::gelu(x, "tanh"); }},
      {"squared_relu", squared_relu_function(),
       [](const Tensor& x) { return at::maximum(x, at::zeros({}, x.options())).square(); }},
      {"relu_by_max", function_of_x("['number',0],['max',0,1]"),
       [](const Tensor& x) { return at::maximum(x, at::zeros({}, x.options())); }},
      {"abs_and_clamp", function_of_x("['abs',0],['number',-0.5],['number',0.5],['clamp',0,2,3],['add',1,4]"),
       [](const Tensor& x) { return x.abs() + at::clamp(x, -0.5, 0.5); }},
      {"leaky", function_of_x("['number',0],['gt',0,1],['number',0.01],['mul',3,0],['where',2,0,4]"),
       [](const Tensor& x) { return at::where(x > 0, x, 0.01 * x); }},
      {"identity", function_of_x("['number',1],['mul',0,1]"), [](const Tensor& x) { return x * 1; }}};
}

class DefinedActivationTest : public testing::TestWithParam<at::ScalarType> {
 protected:
  Tensor normal(at::IntArrayRef shape, double scale, uint64_t seed) const {
    return (at::randn(shape, at::detail::createCPUGenerator(seed)) * scale).to(GetParam());
  }
  /// Returns numbers with 0 and 0.5 among them.
  Tensor with_kinks(at::IntArrayRef shape) const {
    Tensor x = normal(shape, 2, 1);
    for (int64_t i = 0; i < x.numel(); i += 3) x.view(-1)[i] = i % 2 == 0 ? 0.0 : 0.5;
    return x;
  }
  /// Gradients are products of up to three normal numbers, whose rounding is a few units of 6e-8 of the
  /// largest factor.
  void expect_close(const Tensor& actual, const Tensor& oracle) const {
    const double bound = GetParam() == at::kFloat ? 2e-5 : 8e-3;
    const Tensor wanted = oracle.detach().to(at::kDouble);
    EXPECT_LT(((as_double(actual) - wanted).abs() / (wanted.abs() + 1)).max().item<double>(), bound);
  }
};

TEST_P(DefinedActivationTest, EqualsAutograd) {
  for (const Function& f : functions())
    for (const int64_t n : {1, 5, 1024, 100001}) {
      SCOPED_TRACE(testing::Message() << f.name << " of " << n);
      const DefinedActivation defined(f.defined, /*gated=*/false);
      const Tensor x = with_kinks({n}), dy = normal({n}, 1, 2);
      const Tensor leaf_x = leaf(x), wanted = f.oracle(leaf_x);
      wanted.backward(as_double(dy));
      Tensor y = at::empty_like(x), again = at::empty_like(x), dx = x.clone();
      defined.forward(x, y);
      expect_close(y, wanted);
      defined.backward(dx, dy, again);
      expect_close(dx, leaf_x.grad());
      EXPECT_TRUE(at::equal(y, again));
    }
}

TEST_P(DefinedActivationTest, EqualsAutogradWhenGated) {
  for (const Function& f : functions())
    for (const auto& [rows, hidden] :
         std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {3, 5}, {70, 64}, {9, 1024}, {33, 1531}}) {
      SCOPED_TRACE(testing::Message() << f.name << " of " << rows << " x " << hidden);
      const DefinedActivation defined(f.defined, /*gated=*/true);
      const Tensor x = with_kinks({rows, 2 * hidden}), dy = normal({rows, hidden}, 1, 2);
      const Tensor leaf_x = leaf(x);
      const Tensor wanted = f.oracle(leaf_x.narrow(1, 0, hidden)) * leaf_x.narrow(1, hidden, hidden);
      wanted.backward(as_double(dy));
      Tensor y = at::empty({rows, hidden}, x.options()), again = at::empty_like(y), dx = x.clone();
      defined.forward(x, y);
      expect_close(y, wanted);
      defined.backward(dx, dy, again);
      expect_close(dx, leaf_x.grad());
      EXPECT_TRUE(at::equal(y, again));
    }
}

// Formulas differ in their order, so fp32 may differ in its last bits, and bf16 by one rounding.
TEST_P(DefinedActivationTest, IsTheBuiltInOneWithinRounding) {
  const int64_t rows = 65, hidden = 333;
  const Tensor x = normal({rows, 2 * hidden}, 3, 1), dy = normal({rows, hidden}, 1, 2);
  const DefinedActivation defined(silu_function(), /*gated=*/true);
  Tensor y = at::empty_like(dy), wanted_y = at::empty_like(dy), dx = x.clone(), wanted_dx = x.clone();
  defined.forward(x, y);
  gated_activation(Activation::kSilu, x, wanted_y);
  expect_close(y, wanted_y);
  defined.backward(dx, dy, y);
  gated_activation_backward(Activation::kSilu, x, dy, wanted_dx, wanted_y);
  expect_close(dx, wanted_dx);
}

TEST_P(DefinedActivationTest, HasTheBitsOfTheBuiltInOneWhereOperationsAreTheSame) {
  const Tensor x = normal({65, 2 * 333}, 3, 1);
  Tensor y = at::empty({65, 333}, x.options()), wanted = at::empty_like(y);
  DefinedActivation(silu_function(), /*gated=*/true).forward(x, y);
  gated_activation(Activation::kSilu, x, wanted);
  EXPECT_TRUE(at::equal(y, wanted));
}

INSTANTIATE_TEST_SUITE_P(Dtypes, DefinedActivationTest, testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& info) { return info.param == at::kFloat ? "fp32" : "bf16"; });

TEST(DefinedActivation, RefusesWhatIsNoFunctionOfAnElement) {
  const auto said = [](const Json& function) {
    return error_of([&] { DefinedActivation(function, /*gated=*/false); });
  };
  EXPECT_NE(said(function_of_x("['number',1]")).find("the same number for all x"), std::string::npos);
  EXPECT_NE(said(function_of_x("['sum',0,'tensor']")).find("operations on one element, got sum"),
            std::string::npos);
  Json two = silu_function();
  two["inputs"].push_back({{"name", "z"}});
  EXPECT_NE(said(two).find("got 2 inputs"), std::string::npos);
}

}  // namespace
}  // namespace tycho
