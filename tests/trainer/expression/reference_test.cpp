// The reference interpreter: the definition of every operation, with its odd values.
#include "tests/trainer/expression/reference.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/trainer/expression/random_expression.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr double kNan = NAN, kInf = INFINITY;

/// Returns op(x, y) of two flat inputs.
std::vector<double> binary(const std::string& op, std::vector<double> x, std::vector<double> y,
                           Arithmetic arithmetic = Arithmetic::kFp32) {
  const Expression e =
      expression_of("{'inputs':[{'name':'x'},{'name':'y'}],'nodes':[['input',0],['input',1],['" + op +
                    "',0,1]],'outputs':[{'name':'z','node':2}]}");
  return evaluate(e, {row_of(std::move(x)), row_of(std::move(y))}, arithmetic)[0].numbers;
}

std::vector<double> unary(const std::string& op, std::vector<double> x) {
  const Expression e = expression_of("{'inputs':[{'name':'x'}],'nodes':[['input',0],['" + op +
                                     "',0]],'outputs':[{'name':'z','node':1}]}");
  return evaluate(e, {row_of(std::move(x))}, Arithmetic::kFp32)[0].numbers;
}

std::vector<double> of_matrix(const std::string& nodes, int last) {
  const Expression e = expression_of("{'inputs':[{'name':'x','shape':[2,3]}],'nodes':[['input',0]," + nodes +
                                     "],'outputs':[{'name':'z','node':" + std::to_string(last) + "}]}");
  return evaluate(e, {{{2, 3}, {1, 5, -2, 4, 0, 3}}}, Arithmetic::kFp32)[0].numbers;
}

using Numbers = std::vector<double>;

TEST(Reference, RoundsToFp32AfterEachOperation) {
  EXPECT_EQ(binary("add", {1}, {1e-9}), Numbers{1});
  EXPECT_EQ(binary("add", {1}, {1e-9}, Arithmetic::kDouble), Numbers{1 + 1e-9});
  EXPECT_EQ(binary("mul", {0.1}, {0.1}), Numbers{double(0.1f * 0.1f)});
}

TEST(Reference, MinAndMaxPropagateNan) {
  EXPECT_EQ(binary("min", {1, 2}, {2, 1}), (Numbers{1, 1}));
  EXPECT_EQ(binary("max", {1, 2}, {2, 1}), (Numbers{2, 2}));
  for (const char* op : {"min", "max"})
    for (const double x : binary(op, {kNan, 1}, {1, kNan})) EXPECT_TRUE(std::isnan(x)) << op;
}

TEST(Reference, SignRootsAndPowersAtOddValues) {
  EXPECT_EQ(unary("sign", {-3, -0.0, 0, 2}), (Numbers{-1, 0, 0, 1}));
  EXPECT_TRUE(std::isnan(unary("sign", {kNan})[0]));
  EXPECT_EQ(unary("rsqrt", {0, 4, kInf}), (Numbers{kInf, 0.5, 0}));
  EXPECT_EQ(unary("floor", {-1.5, 1.5}), (Numbers{-2, 1}));
  EXPECT_EQ(binary("pow", {2, 0, -2}, {3, 0, 3}), (Numbers{8, 1, -8}));
}

TEST(Reference, ScalarsAreDoublesUntilTheyMeetElements) {
  const Expression e = expression_of(
      "{'inputs':[{'name':'x'},{'name':'k','scalar':true}],'nodes':[['input',0],['input',1],['number',1],"
      "['sub',2,1],['mul',3,0]],'outputs':[{'name':'z','node':4},{'name':'k','node':3}]}");
  const auto out = evaluate(e, {row_of({3}), scalar_of(0.999)}, Arithmetic::kFp32);
  EXPECT_EQ(out[0].numbers[0], double(static_cast<float>(1 - 0.999) * 3.0f));
  EXPECT_EQ(out[1].numbers[0], 1 - 0.999);
}

TEST(Reference, ReducesAndMovesMatrices) {
  EXPECT_EQ(of_matrix("['sum',0,'row']", 1), (Numbers{4, 7}));
  EXPECT_EQ(of_matrix("['mean',0,'column']", 1), (Numbers{2.5, 2.5, 0.5}));
  EXPECT_EQ(of_matrix("['largest',0,'matrix']", 1), Numbers{5});
  EXPECT_EQ(of_matrix("['smallest',0,'row']", 1), (Numbers{-2, 0}));
  EXPECT_EQ(of_matrix("['transpose',0]", 1), (Numbers{1, 4, 5, 0, -2, 3}));
  EXPECT_EQ(of_matrix("['transpose',0],['mm',0,1]", 2), (Numbers{30, -2, -2, 25}));
  EXPECT_EQ(of_matrix("['sum',0,'column'],['argsort',1],['take',0,2]", 3), (Numbers{-2, 1, 5, 3, 4, 0}));
  EXPECT_EQ(of_matrix("['sum',0,'row'],['sub',0,1]", 2), (Numbers{-3, 1, -6, -3, -7, -4}));
}

TEST(Reference, RefusesWorkAndInputsThatDoNotFit) {
  const Expression large = expression_of(
      "{'inputs':[{'name':'r','shape':[100000,1]},{'name':'c','shape':[1,100000]}],'nodes':[['input',0],"
      "['input',1],['mm',0,1]],'outputs':[{'name':'z','node':2}]}");
  const Numbers many(100000);
  EXPECT_THROW(evaluate(large, {{{100000, 1}, many}, {{1, 100000}, many}}, Arithmetic::kFp32), Error);
  EXPECT_THROW(evaluate(large, {row_of({1})}, Arithmetic::kFp32), Error);
  EXPECT_THROW(of_matrix("['qr',0]", 1), Error);
  EXPECT_THROW(of_matrix("['sum',0,'column'],['take',0,1]", 2), Error) << "5 is no column";
}

}  // namespace
}  // namespace tycho
