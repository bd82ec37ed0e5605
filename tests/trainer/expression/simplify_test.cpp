// Simplification: fewer nodes, equal bits.
#include "trainer/expression/simplify.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tests/trainer/expression/random_expression.h"
#include "trainer/expression/expression_check.h"
#include "trainer/expression/expression_text.h"

namespace tycho {
namespace {

std::string simplified(const std::string& nodes, int last) {
  return text_of(simplify(
      expression_of("{'inputs':[{'name':'x'},{'name':'k','scalar':true}],'nodes':[['input',0],['input',1]," +
                    nodes + "],'outputs':[{'name':'z','node':" + std::to_string(last) + "}]}")));
}

TEST(Simplify, FoldsWhatIsNeutralAndConstant) {
  EXPECT_EQ(simplified("['number',1],['mul',0,2],['div',3,2]", 4), "z = x\n");
  EXPECT_EQ(simplified("['number',1],['number',0.9],['sub',2,3],['mul',4,0]", 5),
            "z = 0.09999999999999998 * x\n");
  EXPECT_EQ(simplified("['neg',0],['neg',2]", 3), "z = x\n");
  EXPECT_EQ(simplified("['number',1],['number',2],['lt',2,3],['where',4,0,1]", 5), "z = x\n");
  EXPECT_EQ(simplified("['exp',0],['exp',0],['add',2,3]", 4), "v1 = exp(x)\nz = v1 + v1\n");
  EXPECT_EQ(simplified("['number',3],['broadcast',2,0],['mul',3,0]", 4), "z = 3 * x\n");
}

TEST(Simplify, LeavesWhatWouldChangeABit) {
  EXPECT_EQ(simplified("['number',0],['add',0,2]", 3), "z = x + 0\n");
  EXPECT_EQ(simplified("['number',0],['mul',0,2]", 3), "z = x * 0\n");
  EXPECT_EQ(simplified("['sub',0,0]", 2), "z = x - x\n");
  EXPECT_EQ(simplified("['number',1],['broadcast',2,0]", 3), "z = broadcast(1, x)\n")
      << "a scalar is not flat";
  EXPECT_EQ(simplified("['lt',0,1],['where',2,1,1]", 3), "z = where(x < k, k, k)\n");
}

TEST(Simplify, KeepsBitsOfRandomExpressions) {
  const std::vector<double> values = {0.0,   -0.0, 1,        -1,        0.3, -2.5,
                                      1e-40, 3e38, INFINITY, -INFINITY, NAN, 0.7};
  std::vector<double> others(values.rbegin(), values.rend());
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const Expression expression =
        random_expression(seed, 24, random_operations(true)[seed % random_operations(true).size()], {});
    const Expression simpler = simplify(expression);
    EXPECT_LE(simpler.nodes.size(), expression.nodes.size());
    EXPECT_EQ(simplify(simpler).nodes.size(), simpler.nodes.size());
    check_expression(simpler);
    const std::vector<NodeValues> inputs = {row_of(values), row_of(others), scalar_of(0.4)};
    const auto before = evaluate(expression, inputs, Arithmetic::kFp32)[0].numbers;
    const auto after = evaluate(simpler, inputs, Arithmetic::kFp32)[0].numbers;
    for (size_t i = 0; i < before.size(); ++i)
      if (!std::isnan(before[i]) || !std::isnan(after[i])) {
        EXPECT_EQ(std::bit_cast<uint64_t>(before[i]), std::bit_cast<uint64_t>(after[i])) << text_of(simpler);
      }
  }
}

}  // namespace
}  // namespace tycho
