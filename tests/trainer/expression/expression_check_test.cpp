// Dtypes and shapes of expressions, and the messages about wrong ones.
#include "trainer/expression/expression_check.h"

#include <gtest/gtest.h>

#include "tests/trainer/expression/random_expression.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr const char* kInputs =
    "{'inputs':[{'name':'x'},{'name':'k','scalar':true},{'name':'m','shape':[3,5]},{'name':'r','shape':[3,1]}"
    ","
    "{'name':'c','shape':[1,5]},{'name':'o','shape':[1,1]}],'nodes':[['input',0],['input',1],['input',2],"
    "['input',3],['input',4],['input',5],";

Expression with(const std::string& node) {
  return expression_of(kInputs + node + "],'outputs':[{'name':'y','node':0}]}");
}

NodeType last_type(const std::string& node) { return check_expression(with(node)).back(); }

void expect_misfit(const std::string& node, const std::string& message) {
  try {
    check_expression(with(node));
    ADD_FAILURE() << node << " is taken";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kRecipe);
    EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
  }
}

TEST(ExpressionCheck, ShapesBroadcast) {
  EXPECT_EQ(last_type("['add',2,3]").shape, (MatrixShape{3, 5}));
  EXPECT_EQ(last_type("['add',4,3]").shape, (MatrixShape{3, 5}));
  EXPECT_EQ(last_type("['add',5,3]").shape, (MatrixShape{3, 1}));
  EXPECT_EQ(last_type("['fma',1,4,5]").shape, (MatrixShape{1, 5}));
  EXPECT_TRUE(last_type("['add',0,5]").shape.is_flat());
  EXPECT_TRUE(last_type("['add',1,0]").shape.is_flat());
  EXPECT_TRUE(last_type("['mul',1,1]").scalar);
  EXPECT_FALSE(last_type("['mul',1,5]").scalar);
  EXPECT_EQ(last_type("['broadcast',1,2]").shape, (MatrixShape{3, 5}));
}

TEST(ExpressionCheck, ReductionsAndMatricesHaveTheirShapes) {
  EXPECT_EQ(last_type("['sum',2,'row']").shape, (MatrixShape{3, 1}));
  EXPECT_EQ(last_type("['mean',2,'column']").shape, (MatrixShape{1, 5}));
  EXPECT_EQ(last_type("['largest',2,'matrix']").shape, (MatrixShape{1, 1}));
  EXPECT_EQ(last_type("['sum',0,'tensor']").shape, (MatrixShape{1, 1}));
  EXPECT_EQ(last_type("['transpose',2]").shape, (MatrixShape{5, 3}));
  EXPECT_EQ(last_type("['mm',3,4]").shape, (MatrixShape{3, 5}));
  EXPECT_EQ(last_type("['take',2,4]").shape, (MatrixShape{3, 5}));
  EXPECT_EQ(last_type("['argsort',4]").shape, (MatrixShape{1, 5}));
  EXPECT_EQ(last_type("['qr',2]").shape, (MatrixShape{3, 3}));
  EXPECT_EQ(last_type("['mm',3,4],['transpose',6],['mm',6,7],['eigh_values',8]").shape, (MatrixShape{1, 3}));
}

TEST(ExpressionCheck, ComparisonsGiveBooleansAndWhereTakesThem) {
  EXPECT_TRUE(last_type("['lt',0,1]").boolean);
  EXPECT_TRUE(last_type("['lt',0,1],['not',6]").boolean);
  EXPECT_FALSE(last_type("['lt',0,1],['where',6,0,1]").boolean);
  EXPECT_TRUE(last_type("['gt',1,1],['every',6,0,0]").shape.is_flat());
}

TEST(ExpressionCheck, RefusesWhatDoesNotFit) {
  expect_misfit(
      "['add',0,2]",
      "node 6: add: expected shapes that broadcast, got elements without a shape and [3, 5]: rows and "
      "columns must be equal or 1, and state \"like\" has the parameter's");
  expect_misfit("['mm',2,2]", "as many columns on the left as rows on the right, got [3, 5] and [3, 5]");
  expect_misfit("['sum',0,'row']",
                "expected a matrix as argument 1, got elements without a shape: activations, losses and "
                "initial values see one element at a time");
  expect_misfit("['sum',1,'tensor']", "expected a matrix as argument 1, got a scalar");
  expect_misfit("['lt',0,0],['add',6,0]", "expected a number as argument 1, got a boolean");
  expect_misfit("['where',0,0,0]", "expected a boolean as argument 1, such as x:gt(y), got a number");
  expect_misfit("['lt',0,0],['where',6,6,0]", "two numbers or two booleans");
  expect_misfit("['lt',0,0],['every',6,0,0]", "expected a condition on scalars");
  expect_misfit("['eigh_values',2]", "expected a square matrix, got [3, 5]");
  expect_misfit("['argsort',2]", "expected one row to sort");
  expect_misfit("['broadcast',2,4]", "expected a value that broadcasts to [1, 5], got [3, 5]");
}

TEST(ExpressionCheck, NamesTheLine) {
  try {
    check_expression(expression_of(
        "{'inputs':[{'name':'x'}],'nodes':[['input',0],['lt',0,0]],'outputs':[{'name':'y','node':1}],"
        "'lines':['r.lua:3','r.lua:4']}"));
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "[expression] r.lua:4: lt: expected numbers for the output 'y', got booleans; "
                 "write  t.where(condition, 1, 0)");
  }
}

}  // namespace
}  // namespace tycho
