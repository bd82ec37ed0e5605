// Gradients of random expressions against autograd: flat ones by programs in fp32 and bf16, matrices with
// reductions and broadcasts by the reference interpreter, losses of all statistics of a token.
#include <ATen/ops/clamp.h>
#include <ATen/ops/erf.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/floor.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/maximum.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/where.h>

#include <array>
#include <map>

#include "tests/trainer/expression/random_expression.h"
#include "tests/trainer/kernels/kernel_test.h"
#include "trainer/base/random/philox.h"
#include "trainer/expression/derivative.h"
#include "trainer/expression/expression_text.h"
#include "trainer/expression/loss_expression.h"
#include "trainer/kernels/expression/run_program.h"

namespace tycho {
namespace {

constexpr int kGraphs = 60, kSize = 12;
constexpr double kScalar = 0.37;

Tensor reduced(const Node& node, const Tensor& x) {
  const std::vector<int64_t> dims = node.over == ReducedOver::kRow      ? std::vector<int64_t>{1}
                                    : node.over == ReducedOver::kColumn ? std::vector<int64_t>{0}
                                                                        : std::vector<int64_t>{0, 1};
  switch (node.op) {
    case Op::kSum: return x.sum(dims, true);
    case Op::kMean: return x.mean(dims, true);
    case Op::kLargest: return x.amax(dims, true);
    default: return x.amin(dims, true);
  }
}

/// One operation by ATen, on tensors of double.
Tensor by_aten(const Node& node, const Tensor& a, const Tensor& b, const Tensor& c) {
  switch (node.op) {
    case Op::kAdd: return a + b;
    case Op::kSub: return a - b;
    case Op::kMul: return a * b;
    case Op::kDiv: return a / b;
    case Op::kPow: return a.pow(b);
    case Op::kMin: return at::minimum(a, b);
    case Op::kMax: return at::maximum(a, b);
    case Op::kFma: return a * b + c;
    case Op::kClamp: return at::clamp(a, b, c);
    case Op::kNeg: return -a;
    case Op::kAbs: return a.abs();
    case Op::kSign: return a.sign();
    case Op::kFloor: return at::floor(a);
    case Op::kSqrt: return a.sqrt();
    case Op::kRsqrt: return a.rsqrt();
    case Op::kExp: return at::exp(a);
    case Op::kLog: return a.log();
    case Op::kTanh: return a.tanh();
    case Op::kSigmoid: return a.sigmoid();
    case Op::kErf: return at::erf(a);
    case Op::kLt: return a < b;
    case Op::kLe: return a <= b;
    case Op::kGt: return a > b;
    case Op::kGe: return a >= b;
    case Op::kEq: return a == b;
    case Op::kNe: return a != b;
    case Op::kAnd: return at::logical_and(a, b);
    case Op::kOr: return at::logical_or(a, b);
    case Op::kNot: return at::logical_not(a);
    case Op::kWhere: return at::where(a, b, c);
    default: return reduced(node, a);
  }
}

/// Returns the output, as autograd can differentiate it.
Tensor by_aten(const Expression& e, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> values;
  for (const Node& node : e.nodes) {
    if (node.op == Op::kNumber || node.op == Op::kInput) {
      values.push_back(node.op == Op::kInput ? inputs[static_cast<size_t>(node.input)]
                                             : at::full({}, node.number, at::kDouble));
      continue;
    }
    Tensor x[3];
    for (int i = 0; i < operation(node.op).arguments; ++i)
      x[i] = values[static_cast<size_t>(node.arguments[static_cast<size_t>(i)])];
    values.push_back(by_aten(node, x[0], x[1], x[2]));
  }
  return values[static_cast<size_t>(e.outputs[0].node)];
}

Expression graph(int index, bool flat) {
  const std::vector<Op>& all = random_operations(flat);
  return random_expression(1000 + static_cast<uint64_t>(index), kSize,
                           all[static_cast<size_t>(index) % all.size()], {.flat = flat});
}

Tensor numbers(uint64_t seed, at::IntArrayRef shape, at::ScalarType type) {
  Tensor out = at::empty(shape);
  for (int64_t i = 0; i < out.numel(); ++i)
    out.mutable_data_ptr<float>()[i] =
        static_cast<float>(philox(seed, static_cast<uint64_t>(i))[0] * 0x1p-31 - 1.0);
  return out.to(type);
}

void expect_near(const Tensor& found, const Tensor& wanted, double bound, const Expression& e) {
  const Tensor difference = (as_double(found) - as_double(wanted)).abs();
  const double largest = (difference / (as_double(wanted).abs() + 1)).max().item<double>();
  EXPECT_LT(largest, bound) << text_of(e);
}

TEST(ProgramGradients, GraphsUseEveryOperationInAtLeastFive) {
  for (const bool flat : {true, false}) {
    std::map<Op, int> graphs;
    for (int i = 0; i < kGraphs; ++i) {
      std::map<Op, bool> used;
      for (const Node& node : graph(i, flat).nodes) used[node.op] = true;
      for (const auto& [op, is_used] : used) graphs[op] += is_used;
    }
    for (const Op op : random_operations(flat)) EXPECT_GE(graphs[op], 5) << operation(op).name;
  }
}

class ProgramGradientsTest : public testing::TestWithParam<at::ScalarType> {};

TEST_P(ProgramGradientsTest, OfFlatGraphsAreAutograds) {
  const double bound = GetParam() == at::kFloat ? 2e-4 : 1e-2;
  for (int i = 0; i < kGraphs; ++i) {
    const Expression e = graph(i, true);
    const Tensor x = numbers(2 * static_cast<uint64_t>(i), {97}, GetParam()),
                 y = numbers(2 * static_cast<uint64_t>(i) + 1, {97}, GetParam());
    const Tensor leaf_x = leaf(x), leaf_y = leaf(y);
    const Tensor z = by_aten(e, {leaf_x, leaf_y, at::full({}, kScalar, at::kDouble)});
    z.sum().backward();
    const Program program(derivative(e, "z", {"x", "y"}));
    std::vector<ProgramTensor> arrays;
    for (const ProgramArray& array : program.arrays())
      arrays.push_back({array.name == "x" ? x : array.name == "y" ? y : at::zeros({97}, GetParam())});
    run_program(program, {kScalar}, arrays);
    ASSERT_EQ(arrays.size(), 5u);
    expect_near(arrays[2].tensor, z, bound, e);
    expect_near(arrays[3].tensor, leaf_x.grad(), bound, e);
    expect_near(arrays[4].tensor, leaf_y.grad(), bound, e);
  }
}

INSTANTIATE_TEST_SUITE_P(Dtypes, ProgramGradientsTest, testing::Values(at::kFloat, at::kBFloat16),
                         [](const auto& info) { return info.param == at::kFloat ? "fp32" : "bf16"; });

NodeValues values_of(const Tensor& matrix) {
  NodeValues out{{matrix.size(0), matrix.size(1)}, {}};
  for (int64_t i = 0; i < matrix.numel(); ++i) out.numbers.push_back(matrix.const_data_ptr<float>()[i]);
  return out;
}

TEST(ProgramGradients, OfMatricesWithReductionsAndBroadcastsAreAutograds) {
  for (int i = 0; i < kGraphs; ++i) {
    const Expression e = graph(i, false);
    const MatrixShape rows = e.inputs[1].shape;
    const Tensor x = numbers(2 * static_cast<uint64_t>(i), {3, 5}, at::kFloat),
                 y = numbers(2 * static_cast<uint64_t>(i) + 1, {rows.rows, rows.columns}, at::kFloat);
    const Tensor leaf_x = leaf(x), leaf_y = leaf(y);
    const Tensor z = by_aten(e, {leaf_x, leaf_y, at::full({}, kScalar, at::kDouble)});
    z.sum().backward();
    const auto out = evaluate(derivative(e, "z", {"x", "y"}),
                              {values_of(x), values_of(y), scalar_of(kScalar)}, Arithmetic::kFp32);
    const auto as_tensor = [](const NodeValues& values) {
      return at::tensor(values.numbers, at::kDouble).reshape({values.shape.rows, values.shape.columns});
    };
    expect_near(as_tensor(out[0]), z, 2e-4, e);
    expect_near(as_tensor(out[1]), leaf_x.grad(), 2e-4, e);
    expect_near(as_tensor(out[2]), leaf_y.grad(), 2e-4, e);
  }
}

/// Appends a random graph of two inputs of a loss to a term. Returns its output.
int32_t append_graph(Expression& term, const Expression& graph, std::array<int32_t, 2> inputs) {
  std::vector<int32_t> moved;
  for (Node node : graph.nodes) {
    if (node.op == Op::kInput && node.input < 2) {
      moved.push_back(inputs[static_cast<size_t>(node.input)]);
      continue;
    }
    if (node.op == Op::kInput) node = {.op = Op::kNumber, .number = kScalar};
    for (int32_t& argument : node.arguments)
      if (argument >= 0) argument = moved[static_cast<size_t>(argument)];
    term.nodes.push_back(node);
    moved.push_back(static_cast<int32_t>(term.nodes.size()) - 1);
  }
  return moved[static_cast<size_t>(graph.outputs[0].node)];
}

/// Returns a loss of all that is known of a token: the sum of random graphs of neighbours among its inputs.
Expression random_loss(int index) {
  Expression term;
  constexpr auto kInputs = static_cast<int32_t>(kLossInputs.size());
  for (int32_t i = 0; i < kInputs; ++i) {
    term.inputs.push_back({.name = kLossInputs[static_cast<size_t>(i)]});
    term.nodes.push_back({.op = Op::kInput, .input = i});
  }
  int32_t total = -1;
  for (int32_t i = 0; i < kInputs; ++i) {
    const int32_t added =
        append_graph(term, graph(kInputs * index + i, true), {i, static_cast<int32_t>((i + 1) % kInputs)});
    if (total >= 0) term.nodes.push_back({.op = Op::kAdd, .arguments = {total, added, -1}});
    total = total < 0 ? added : static_cast<int32_t>(term.nodes.size()) - 1;
  }
  term.outputs.push_back({"loss", total});
  return term;
}

TEST(ProgramGradients, OfRandomLossesOverAllStatisticsAreAutograds) {
  constexpr int64_t kTokens = 97;
  for (int i = 0; i < 8; ++i) {
    const Expression term = random_loss(i);
    std::map<std::string, Tensor> memory;
    std::vector<Tensor> leaves;
    for (size_t k = 0; k < kLossInputs.size(); ++k) {
      memory[kLossInputs[k]] = numbers(100 * static_cast<uint64_t>(i) + k, {kTokens}, at::kFloat);
      leaves.push_back(leaf(memory[kLossInputs[k]]));
    }
    const Tensor wanted = leaves[5].abs() * by_aten(term, leaves);
    wanted.sum().backward();
    const Program program(loss_expression({{"random", write_expression(term)}}, /*with_gradients=*/true));
    std::vector<ProgramTensor> arrays;
    for (const ProgramArray& array : program.arrays())
      arrays.push_back({memory.try_emplace(array.name, at::zeros({kTokens})).first->second});
    run_program(program, {}, arrays);
    expect_near(memory.at(term_output("random")), wanted, 2e-4, term);
    for (size_t k = 0; k < kNumLossStatistics; ++k)
      expect_near(memory.at(std::string("d_") + kLossInputs[k]), leaves[k].grad(), 2e-4, term);
  }
}

}  // namespace
}  // namespace tycho
