// Expressions over whole matrices: the reference interpreter's numbers, for any number of threads.
#include "trainer/optim/matrix_evaluator.h"

#include <ATen/ops/tril.h>
#include <gtest/gtest.h>

#include "tests/trainer/aten.h"
#include "tests/trainer/expression/reference.h"
#include "trainer/base/error.h"
#include "trainer/expression/expression_check.h"

namespace tycho {
namespace {

/// An expression of x [5, 8], y [5, 8], row [5, 1], column [1, 8] and the scalar h.
struct Maker {
  Maker() {
    expression.inputs = {{"x", false, {5, 8}},
                         {"y", false, {5, 8}},
                         {"row", false, {5, 1}},
                         {"column", false, {1, 8}},
                         {"h", true, {}}};
    for (int32_t i = 0; i < 5; ++i) expression.nodes.push_back({.op = Op::kInput, .input = i});
  }
  int32_t add(Op op, std::array<int32_t, 3> arguments, ReducedOver over = ReducedOver::kNothing) {
    expression.nodes.push_back({.op = op, .arguments = arguments, .over = over});
    return static_cast<int32_t>(expression.nodes.size() - 1);
  }
  void returns(int32_t node) {
    expression.outputs.push_back({"o" + std::to_string(expression.outputs.size()), node});
  }
  Expression expression;
};

constexpr double kH = 0.3;

MatrixValues random_inputs(const Expression& expression) {
  at::manual_seed(3);
  MatrixValues inputs;
  for (const ExpressionInput& input : expression.inputs) {
    inputs.matrices.push_back(input.scalar ? Tensor()
                                           : at::randn({input.shape.rows, input.shape.columns}, at::kFloat));
    inputs.scalars.push_back(kH);
  }
  return inputs;
}

std::vector<NodeValues> for_reference(const MatrixValues& inputs) {
  std::vector<NodeValues> values;
  for (size_t i = 0; i < inputs.matrices.size(); ++i) {
    if (!inputs.matrices[i].defined()) {
      values.push_back({{1, 1}, {inputs.scalars[i]}});
      continue;
    }
    const Tensor x = inputs.matrices[i].to(at::kDouble);
    values.push_back({{x.size(0), x.size(1)}, {x.data_ptr<double>(), x.data_ptr<double>() + x.numel()}});
  }
  return values;
}

/// Expects the reference interpreter's outputs, up to `ulps` of the largest number of each.
void expect_reference(const Expression& expression, double ulps) {
  const MatrixValues inputs = random_inputs(expression);
  const std::vector<NodeValues> expected = evaluate(expression, for_reference(inputs), Arithmetic::kFp32);
  const std::vector<Tensor> outputs = evaluate_matrices(expression, inputs, at::kCPU);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor numbers = at::tensor(expected[i].numbers, at::kDouble);
    ASSERT_EQ(outputs[i].numel(), numbers.numel()) << expression.outputs[i].name;
    const Tensor off = (outputs[i].flatten().to(at::kDouble) - numbers).abs();
    EXPECT_LE(off.max().item<double>(), ulps * 0x1p-23 * numbers.abs().max().item<double>())
        << expression.outputs[i].name;
  }
}

TEST(MatrixEvaluatorTest, ElementwiseOperationsAreTheReferences) {
  Maker exact, close;
  for (const Op op : {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv, Op::kMin, Op::kMax})
    for (const std::array<int32_t, 3>& arguments :
         {std::array{0, 1, -1}, {0, 2, -1}, {3, 0, -1}, {0, 4, -1}, {4, 2, -1}})
      exact.returns(exact.add(op, arguments));
  for (const Op op : {Op::kNeg, Op::kAbs, Op::kSign, Op::kFloor}) exact.returns(exact.add(op, {0, -1, -1}));
  exact.returns(exact.add(Op::kSqrt, {exact.add(Op::kAbs, {0, -1, -1}), -1, -1}));
  exact.returns(exact.add(Op::kRsqrt, {exact.add(Op::kAbs, {0, -1, -1}), -1, -1}));
  exact.returns(exact.add(Op::kFma, {0, 2, 3}));
  exact.returns(exact.add(Op::kClamp, {0, 4, 2}));
  for (const Op op : {Op::kLt, Op::kLe, Op::kGt, Op::kGe, Op::kEq, Op::kNe})
    exact.returns(exact.add(Op::kWhere, {exact.add(op, {0, 2, -1}), 1, 4}));
  const int32_t above = exact.add(Op::kGt, {0, 4, -1}), below = exact.add(Op::kLt, {1, 2, -1});
  for (const Op op : {Op::kAnd, Op::kOr})
    exact.returns(
        exact.add(Op::kWhere, {exact.add(op, {above, exact.add(Op::kNot, {below, -1, -1}), -1}), 1, 0}));
  exact.returns(exact.add(Op::kBroadcast, {2, 0, -1}));
  expect_reference(exact.expression, 0);
  for (const Op op : {Op::kExp, Op::kTanh, Op::kSigmoid, Op::kErf}) close.returns(close.add(op, {0, -1, -1}));
  const int32_t positive = close.add(Op::kAbs, {0, -1, -1});
  close.returns(close.add(Op::kLog, {positive, -1, -1}));
  close.returns(close.add(Op::kPow, {positive, 4, -1}));
  close.returns(close.add(Op::kPow, {positive, 2, -1}));
  expect_reference(close.expression, 2);
}

TEST(MatrixEvaluatorTest, ReductionsAndProductsAreTheReferences) {
  Maker exact, close;
  for (const ReducedOver over :
       {ReducedOver::kRow, ReducedOver::kColumn, ReducedOver::kMatrix, ReducedOver::kTensor})
    for (const Op op : {Op::kLargest, Op::kSmallest, Op::kSum, Op::kMean}) {
      exact.returns(exact.add(op, {0, -1, -1}, over));
      exact.returns(exact.add(op, {exact.add(Op::kTranspose, {1, -1, -1}), -1, -1}, over));
    }
  exact.returns(exact.add(Op::kTranspose, {0, -1, -1}));
  const int32_t order = exact.add(Op::kArgsort, {3, -1, -1});
  exact.returns(order);
  exact.returns(exact.add(Op::kTake, {0, order, -1}));
  expect_reference(exact.expression, 1);
  const int32_t x_t = close.add(Op::kTranspose, {0, -1, -1}), y_t = close.add(Op::kTranspose, {1, -1, -1});
  const int32_t gram = close.add(Op::kMm, {0, y_t, -1});
  close.returns(gram);
  close.returns(close.add(Op::kMm, {x_t, 1, -1}));
  close.returns(close.add(Op::kMm, {gram, 0, -1}));
  close.returns(close.add(Op::kMm, {x_t, close.add(Op::kTranspose, {gram, -1, -1}), -1}));
  close.returns(close.add(Op::kMm, {3, x_t, -1}));
  expect_reference(close.expression, 4);
}

TEST(MatrixEvaluatorTest, DecompositionsAreThoseOfTheirMatrix) {
  Maker make;
  const int32_t gram = make.add(Op::kMm, {0, make.add(Op::kTranspose, {0, -1, -1}), -1});
  for (const Op op : {Op::kEighValues, Op::kEighVectors, Op::kQr}) make.returns(make.add(op, {gram, -1, -1}));
  const MatrixValues inputs = random_inputs(make.expression);
  const std::vector<Tensor> out = evaluate_matrices(make.expression, inputs, at::kCPU);
  const Tensor expected = at::matmul(inputs.matrices[0], inputs.matrices[0].t());
  const Tensor again = at::matmul(out[1] * out[0], out[1].t());
  EXPECT_TRUE(at::allclose(again, expected, 1e-4, 1e-4));
  EXPECT_TRUE(at::allclose(at::matmul(out[2].t(), out[2]), at::diag(at::ones({5}, at::kFloat)), 1e-5, 1e-5));
  const Tensor upper = at::matmul(out[2].t(), expected);
  EXPECT_LE(at::tril(upper, -1).abs().max().item<float>(), 1e-4f);
}

TEST(MatrixEvaluatorTest, NumbersDoNotDependOnThreads) {
  Expression e;
  e.inputs = {{"x", false, {300, 517}}};
  e.nodes = {{.op = Op::kInput}};
  const auto add = [&](Op op, int32_t a, int32_t b, ReducedOver over = ReducedOver::kNothing) {
    e.nodes.push_back({.op = op, .arguments = {a, b, -1}, .over = over});
    return static_cast<int32_t>(e.nodes.size() - 1);
  };
  const int32_t gram = add(Op::kMm, 0, add(Op::kTranspose, 0, -1));
  for (const ReducedOver over : {ReducedOver::kRow, ReducedOver::kColumn, ReducedOver::kMatrix})
    e.outputs.push_back({"sum", add(Op::kSum, 0, -1, over)});
  for (const Op op : {Op::kQr, Op::kEighVectors, Op::kTanh}) e.outputs.push_back({"of", add(op, gram, -1)});
  const MatrixValues inputs = random_inputs(e);
  const int before = at::get_num_threads();
  std::vector<Tensor> one;
  for (const int threads : {1, 2, 4}) {
    at::set_num_threads(threads);
    const std::vector<Tensor> now = evaluate_matrices(e, inputs, at::kCPU);
    EXPECT_EQ(at::get_num_threads(), threads);
    if (one.empty()) one = now;
    for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(at::equal(one[i], now[i])) << i << ", " << threads;
  }
  at::set_num_threads(before);
}

TEST(MatrixEvaluatorTest, AMatrixWithoutDecompositionNamesItsLine) {
  Expression e;
  e.inputs = {{"x", false, {3, 3}}};
  e.nodes = {{.op = Op::kInput}, {.op = Op::kEighVectors, .arguments = {0, -1, -1}}};
  e.outputs = {{"q", 1}};
  e.lines = {"", "soap.lua:31"};
  MatrixValues inputs = random_inputs(e);
  inputs.matrices[0].fill_(std::numeric_limits<float>::quiet_NaN());
  try {
    evaluate_matrices(e, inputs, at::kCPU);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("soap.lua:31: eigh_vectors: expected finite numbers"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tycho
