// Updates of matrices in three phases have the bits of the uncut expression.
#include "trainer/expression/update_phases.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "tests/trainer/expression/reference.h"
#include "trainer/base/json_reader.h"
#include "trainer/expression/expression_check.h"
#include "trainer/expression/expression_json.h"
#include "trainer/expression/simplify.h"
#include "trainer/expression/step_scalars.h"

namespace tycho {
namespace {

constexpr MatrixShape kShape = {3, 4};
const std::set<std::string> kParts = {"p", "g", "s.m"};

/// An expression of p, g, s.m (parts), s.row and s.square (of other shapes) and h.lr.
struct Maker {
  Maker() {
    expression.inputs = {{"p", false, kShape},     {"g", false, kShape},        {"s.m", false, kShape},
                         {"s.row", false, {3, 1}}, {"s.square", false, {3, 3}}, {"h.lr", true, {}}};
    for (int32_t i = 0; i < 6; ++i) expression.nodes.push_back({.op = Op::kInput, .input = i});
  }
  int32_t add(Op op, std::array<int32_t, 3> arguments, ReducedOver over = ReducedOver::kNothing) {
    expression.nodes.push_back({.op = op, .arguments = arguments, .over = over});
    return static_cast<int32_t>(expression.nodes.size() - 1);
  }
  Expression expression;
};

std::map<std::string, NodeValues> named(const Expression& expression, const std::vector<NodeValues>& values) {
  std::map<std::string, NodeValues> out;
  for (size_t i = 0; i < values.size(); ++i) out[expression.outputs[i].name] = values[i];
  return out;
}

NodeValues random_values(MatrixShape shape, std::mt19937& random) {
  NodeValues values{shape, {}};
  for (int64_t i = 0; i < shape.rows * shape.columns; ++i)
    values.numbers.push_back(static_cast<float>(std::normal_distribution<float>(0, 1)(random)));
  return values;
}

NodeValues broadcast(const NodeValues& x, MatrixShape shape) {
  NodeValues out{shape, {}};
  for (int64_t row = 0; row < shape.rows; ++row)
    for (int64_t column = 0; column < shape.columns; ++column)
      out.numbers.push_back(x.numbers[static_cast<size_t>((x.shape.rows == 1 ? 0 : row) * x.shape.columns +
                                                          (x.shape.columns == 1 ? 0 : column))]);
  return out;
}

NodeValues flat(NodeValues x) {
  x.shape = {1, static_cast<int64_t>(x.numbers.size())};
  return x;
}

/// Evaluates one phase from known values, and adds its outputs to them.
void run_phase(const Expression& phase, std::map<std::string, NodeValues> known,
               std::map<std::string, NodeValues>& outputs) {
  std::vector<NodeValues> inputs;
  for (const ExpressionInput& input : phase.inputs) {
    const NodeValues& value = known.at(input.name);
    inputs.push_back(input.scalar || !input.shape.is_flat() ? value : flat(broadcast(value, kShape)));
  }
  for (auto& [name, value] : named(phase, evaluate(phase, inputs, Arithmetic::kFp32))) {
    if (name.starts_with("v.") && value.numbers.size() == 12) value.shape = kShape;
    outputs[name] = value;
  }
}

std::map<std::string, NodeValues> in_phases(const Expression& expression,
                                            const std::vector<NodeValues>& inputs) {
  const Phases phases = cut_in_phases(expression, kParts);
  std::map<std::string, NodeValues> known, outputs;
  for (size_t i = 0; i < inputs.size(); ++i) known[expression.inputs[i].name] = inputs[i];
  for (const Expression* phase : {&phases.before, &phases.whole, &phases.after}) {
    check_expression(*phase);
    run_phase(*phase, known, outputs);
    for (const auto& [name, value] : outputs)
      if (name.starts_with("v.")) known[name] = value;
  }
  return outputs;
}

/// Draws nodes of three shapes; values stay near 1.
Expression random_update(std::mt19937& random) {
  Maker make;
  std::vector<int32_t> like = {0, 1, 2}, rows = {3}, squares = {4};
  const auto one = [&](const std::vector<int32_t>& list) { return list[random() % list.size()]; };
  for (int i = 0; i < 25; ++i) {
    const Op ops[] = {Op::kAdd, Op::kSub, Op::kMul, Op::kMax, Op::kMin};
    const Op op = ops[random() % 5];
    switch (random() % 8) {
      case 0: like.push_back(make.add(op, {one(like), one(like), -1})); break;
      case 1: like.push_back(make.add(op, {one(like), 5, -1})); break;
      case 2: like.push_back(make.add(Op::kTanh, {make.add(op, {one(like), one(rows), -1}), -1, -1})); break;
      case 3:
        like.push_back(
            make.add(Op::kWhere, {make.add(Op::kGt, {one(like), one(like), -1}), one(like), one(rows)}));
        break;
      case 4: rows.push_back(make.add(Op::kMean, {one(like), -1, -1}, ReducedOver::kRow)); break;
      case 5:
        squares.push_back(make.add(
            Op::kTanh,
            {make.add(Op::kMm, {one(like), make.add(Op::kTranspose, {one(like), -1, -1}), -1}), -1, -1}));
        break;
      case 6: like.push_back(make.add(Op::kMm, {one(squares), one(like), -1})); break;
      default: rows.push_back(make.add(op, {one(rows), 5, -1})); break;
    }
  }
  make.expression.outputs = {
      {"p", one(like)}, {"s.m", one(like)}, {"s.row", one(rows)}, {"s.square", one(squares)}};
  return make.expression;
}

TEST(PhasesTest, HaveTheBitsOfTheUncutExpression) {
  std::mt19937 random(35);
  for (int i = 0; i < 300; ++i) {
    const Expression update = simplify(random_update(random));
    std::vector<NodeValues> inputs;
    for (const ExpressionInput& input : update.inputs)
      inputs.push_back(random_values(input.scalar ? MatrixShape{1, 1} : input.shape, random));
    const auto cut = in_phases(update, inputs);
    for (const auto& [name, value] : named(update, evaluate(update, inputs, Arithmetic::kFp32)))
      EXPECT_EQ(cut.at(name).numbers, value.numbers) << name << " of update " << i << "\n"
                                                     << write_expression(update).dump();
  }
}

TEST(PhasesTest, OnlyWhatReductionsNeedIsComputedBefore) {
  Maker make;
  const int32_t momentum = make.add(Op::kAdd, {1, 2, -1});
  const int32_t mean = make.add(Op::kMean, {momentum, -1, -1}, ReducedOver::kRow);
  const int32_t decayed = make.add(Op::kMul, {0, 5, -1});
  const int32_t update = make.add(Op::kDiv, {momentum, mean, -1});
  make.expression.outputs = {{"p", make.add(Op::kSub, {decayed, update, -1})}, {"s.m", momentum}};
  const Phases phases = cut_in_phases(make.expression, kParts);
  ASSERT_EQ(phases.before.outputs.size(), 1u);
  EXPECT_EQ(phases.before.outputs[0].name, "v.6");
  ASSERT_EQ(phases.whole.outputs.size(), 1u);
  EXPECT_EQ(phases.whole.outputs[0].name, "v.7");
  EXPECT_EQ(phases.whole.inputs.size(), 1u) << "p is not gathered";
  EXPECT_EQ(phases.after.outputs.size(), 2u);
}

TEST(PhasesTest, AnElementwiseUpdateIsAllAfter) {
  Maker make;
  make.expression.outputs = {{"p", make.add(Op::kSub, {0, 1, -1})}};
  EXPECT_FALSE(needs_whole_matrix(make.expression));
  const Phases phases = cut_in_phases(make.expression, kParts);
  EXPECT_TRUE(phases.before.nodes.empty());
  EXPECT_TRUE(phases.whole.nodes.empty());
}

TEST(ScalarsTest, BranchesAreTakenByTheScalarsOfTheStep) {
  Maker make;
  make.expression.nodes.push_back({.op = Op::kNumber, .number = 2});
  const int32_t two = 6, late = make.add(Op::kGe, {5, two, -1});
  const int32_t product = make.add(Op::kMm, {4, 1, -1});
  const int32_t branch = make.add(Op::kEvery, {late, product, 1});
  make.expression.outputs = {{"p", branch}};
  for (const double lr : {1.0, 2.0}) {
    const std::vector<double> scalars = scalar_values(make.expression, {0, 0, 0, 0, 0, lr});
    const std::vector<bool> taken = taken_branches(make.expression, scalars);
    EXPECT_EQ(taken, std::vector<bool>{lr == 2});
    const Expression chosen = with_branches(make.expression, taken);
    EXPECT_EQ(needs_whole_matrix(chosen), lr == 2) << "what is not taken is not computed";
    EXPECT_EQ(chosen.inputs.size(), 6u);
  }
}

}  // namespace
}  // namespace tycho
