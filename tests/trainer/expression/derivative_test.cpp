// Gradients against differences, and at kinks.
#include "trainer/expression/derivative.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/trainer/expression/random_expression.h"
#include "trainer/base/error.h"
#include "trainer/base/random/philox.h"
#include "trainer/expression/expression_text.h"

namespace tycho {
namespace {

Expression of_x(const std::string& nodes, int last) {
  return expression_of("{'inputs':[{'name':'x'},{'name':'y'}],'nodes':[['input',0],['input',1]," + nodes +
                       "],'outputs':[{'name':'z','node':" + std::to_string(last) + "}]}");
}

std::vector<double> slopes(const std::string& nodes, int last, std::vector<double> x, std::vector<double> y) {
  const Expression d = derivative(of_x(nodes, last), "z", {"x"});
  return evaluate(d, {row_of(std::move(x)), row_of(std::move(y))}, Arithmetic::kDouble)[1].numbers;
}

TEST(Derivative, IsWrittenShortly) {
  EXPECT_EQ(text_of(derivative(of_x("['mul',0,1],['tanh',2]", 3), "z", {"x"})),
            "v1 = tanh(x * y)\nz = v1\nd_x = (1 - v1 * v1) * y\n");
  EXPECT_EQ(text_of(derivative(of_x("['exp',1]", 2), "z", {"x"})), "z = exp(y)\nd_x = broadcast(0, x)\n");
}

TEST(Derivative, AtKinksIsThatOfAutograd) {
  using Numbers = std::vector<double>;
  EXPECT_EQ(slopes("['abs',0]", 2, {-2, 0, 2}, {0, 0, 0}), (Numbers{-1, 0, 1}));
  EXPECT_EQ(slopes("['max',0,1]", 2, {-2, 0, 2}, {0, 0, 0}), (Numbers{0, 0.5, 1}));
  EXPECT_EQ(slopes("['min',1,0]", 2, {-2, 0, 2}, {0, 0, 0}), (Numbers{1, 0.5, 0}));
  EXPECT_EQ(slopes("['number',-1],['number',1],['clamp',0,2,3]", 4, {-2, -1, 0, 1, 2}, {0, 0, 0, 0, 0}),
            (Numbers{0, 1, 1, 1, 0}));
  EXPECT_EQ(slopes("['lt',0,1],['where',2,0,1]", 3, {-1, 0, 1}, {0, 0, 0}), (Numbers{1, 0, 0}));
  EXPECT_EQ(slopes("['number',0],['pow',0,2]", 3, {0, 1}, {0, 0}), (Numbers{0, 0}));
  EXPECT_TRUE(std::isnan(slopes("['max',0,1],['mul',2,0]", 3, {NAN}, {1})[0]));
}

TEST(Derivative, SharesAmongEqualLargest) {
  const Expression e = expression_of(
      "{'inputs':[{'name':'x','shape':[2,3]}],'nodes':[['input',0],['largest',0,'row']],"
      "'outputs':[{'name':'z','node':1}]}");
  const auto out = evaluate(derivative(e, "z", {"x"}), {{{2, 3}, {1, 5, 5, 2, 0, 1}}}, Arithmetic::kDouble);
  EXPECT_EQ(out[1].numbers, (std::vector<double>{0, 0.5, 0.5, 1, 0, 0}));
}

TEST(Derivative, OfProductsOfMatrices) {
  const Expression e = expression_of(
      "{'inputs':[{'name':'a','shape':[2,3]},{'name':'b','shape':[3,1]}],'nodes':[['input',0],['input',1],"
      "['mm',0,1],['transpose',2]],'outputs':[{'name':'z','node':3}]}");
  const auto out = evaluate(derivative(e, "z", {"a", "b"}),
                            {{{2, 3}, {1, 2, 3, 4, 5, 6}}, {{3, 1}, {7, 8, 9}}}, Arithmetic::kDouble);
  EXPECT_EQ(out[1].numbers, (std::vector<double>{7, 8, 9, 7, 8, 9}));
  EXPECT_EQ(out[2].numbers, (std::vector<double>{5, 7, 9}));
}

/// Returns numbers without kinks between them and their neighbours at a distance of 1e-6.
NodeValues drawn(uint64_t seed, MatrixShape shape) {
  NodeValues out{shape, {}};
  for (int64_t i = 0; i < shape.rows * shape.columns; ++i)
    out.numbers.push_back(static_cast<double>(philox(seed, static_cast<uint64_t>(i))[0]) * 0x1p-31 - 1.0);
  return out;
}

double total(const Expression& e, const std::vector<NodeValues>& inputs) {
  double sum = 0;
  const std::vector<NodeValues> out = evaluate(e, inputs, Arithmetic::kDouble);
  for (const double z : out[0].numbers) sum += z;
  return sum;
}

TEST(Derivative, OfRandomExpressionsIsTheQuotientOfDifferences) {
  for (const bool flat : {true, false})
    for (uint64_t seed = 0; seed < 60; ++seed) {
      const auto& all = random_operations(flat);
      const Expression e = random_expression(seed, 6, all[seed % all.size()], {.flat = flat});
      const Expression d = derivative(e, "z", {"x", "y"});
      std::vector<NodeValues> inputs;
      for (const ExpressionInput& input : e.inputs)
        inputs.push_back(drawn(seed + 100 * inputs.size(), input.scalar ? MatrixShape{1, 1}
                                                           : flat       ? MatrixShape{1, 4}
                                                                        : input.shape));
      const auto found = evaluate(d, inputs, Arithmetic::kDouble);
      for (size_t which : {size_t{0}, size_t{1}})
        for (size_t i = 0; i < inputs[which].numbers.size(); ++i) {
          auto high = inputs, low = inputs;
          const double h = 1e-6;
          high[which].numbers[i] += h, low[which].numbers[i] -= h;
          const double quotient = (total(e, high) - total(e, low)) / (2 * h);
          EXPECT_NEAR(found[which + 1].numbers[i], quotient, 1e-6 * (1 + std::abs(quotient)))
              << "seed " << seed << "\n"
              << text_of(d);
        }
    }
}

TEST(Derivative, RefusesWhatHasNone) {
  const Expression e = expression_of(
      "{'inputs':[{'name':'x','shape':[1,3]},{'name':'k','scalar':true}],'nodes':[['input',0],['argsort',0]],"
      "'outputs':[{'name':'z','node':1}]}");
  EXPECT_THROW(derivative(e, "z", {"x"}), Error);
  EXPECT_THROW(derivative(e, "z", {"k"}), Error);
  EXPECT_THROW(derivative(e, "w", {"x"}), Error);
}

}  // namespace
}  // namespace tycho
