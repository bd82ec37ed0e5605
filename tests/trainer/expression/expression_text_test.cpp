// Expressions as text.
#include "trainer/expression/expression_text.h"

#include <gtest/gtest.h>

#include "tests/trainer/expression/random_expression.h"

namespace tycho {
namespace {

std::string text(const std::string& nodes, int last) {
  return text_of(
      expression_of("{'inputs':[{'name':'x','shape':[2,3]},{'name':'h.lr','scalar':true}],"
                    "'nodes':[['input',0],['input',1]," +
                    nodes + "],'outputs':[{'name':'z','node':" + std::to_string(last) + "}]}"));
}

TEST(ExpressionText, HasParenthesesWhereTheOrderMatters) {
  EXPECT_EQ(text("['add',0,1],['mul',2,1]", 3), "z = (x + h.lr) * h.lr\n");
  EXPECT_EQ(text("['mul',0,1],['add',2,1]", 3), "z = x * h.lr + h.lr\n");
  EXPECT_EQ(text("['add',0,1],['add',0,2]", 3), "z = x + (x + h.lr)\n");
  EXPECT_EQ(text("['sub',0,1],['sub',2,1]", 3), "z = x - h.lr - h.lr\n");
  EXPECT_EQ(text("['pow',0,1],['pow',2,1]", 3), "z = (x ^ h.lr) ^ h.lr\n");
  EXPECT_EQ(text("['neg',0],['neg',2]", 3), "z = -(-x)\n");
  EXPECT_EQ(text("['number',-2],['pow',2,0]", 3), "z = (-2) ^ x\n");
  EXPECT_EQ(text("['lt',0,1],['not',2],['and',3,2],['where',4,0,1]", 5),
            "v1 = x < h.lr\nz = where(not v1 and v1, x, h.lr)\n");
}

TEST(ExpressionText, WritesReductionsAndNumbers) {
  EXPECT_EQ(text("['sum',0,'row'],['number',0.1],['fma',2,3,0]", 4), "z = fma(sum(x, \"row\"), 0.1, x)\n");
  EXPECT_EQ(text("['number',2],['number','-inf'],['max',2,3]", 4), "z = max(2, -inf)\n");
}

TEST(ExpressionText, StaysShortWhenEverythingIsShared) {
  std::string nodes = "['add',0,0]";
  for (int i = 2; i < 4000; ++i) nodes += ",['add'," + std::to_string(i) + "," + std::to_string(i) + "]";
  EXPECT_LT(text(nodes, 4000).size(), 200'000u);
  nodes = "['neg',0]";
  for (int i = 2; i < 4000; ++i) nodes += ",['exp'," + std::to_string(i) + "]";
  EXPECT_LT(text(nodes, 4000).size(), 200'000u);
}

}  // namespace
}  // namespace tycho
