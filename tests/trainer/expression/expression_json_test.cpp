// JSON of expressions: round trips, and hostile input that ends with a clear error.
#include "trainer/expression/expression_json.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/trainer/expression/random_expression.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

std::string error_of(const std::string& text) {
  try {
    expression_of(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kRecipe) << error.what();
    return error.what();
  }
  return "none";
}

void expect_refused(const std::string& nodes, const std::string& message) {
  const std::string error =
      error_of("{'inputs':[{'name':'x'}],'nodes':" + nodes + ",'outputs':[{'name':'y','node':0}]}");
  EXPECT_NE(error.find(message), std::string::npos) << nodes << "\n" << error;
}

TEST(ExpressionJson, RandomExpressionsReadBackEqual) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const Expression expression = random_expression(seed, 20, Op::kFma, {.flat = seed % 2 == 0});
    EXPECT_EQ(read_expression(write_expression(expression)), expression);
    EXPECT_EQ(read_expression(parse_json(write_expression(expression).dump(), "test")), expression);
  }
}

TEST(ExpressionJson, KeepsNumbersThatJsonLacks) {
  const Expression read = expression_of(
      "{'inputs':[],'nodes':[['number','inf'],['number','-inf'],['number','nan'],['number','-0'],['number',0."
      "1]],"
      "'outputs':[{'name':'y','node':4}],'lines':['a.lua:1','','','','a.lua:2']}");
  EXPECT_EQ(read.nodes[0].number, INFINITY);
  EXPECT_EQ(read.nodes[1].number, -INFINITY);
  EXPECT_TRUE(std::isnan(read.nodes[2].number));
  EXPECT_TRUE(std::signbit(read.nodes[3].number));
  EXPECT_EQ(read.nodes[4].number, 0.1);
  const Expression again = read_expression(parse_json(write_expression(read).dump(), "test"));
  EXPECT_EQ(again, read) << "NaN equals itself here";
  EXPECT_EQ(again.lines, read.lines);
}

TEST(ExpressionJson, LinesAreNoPartOfIdentity) {
  const std::string text = "{'inputs':[],'nodes':[['number',1]],'outputs':[{'name':'y','node':0}]";
  EXPECT_EQ(expression_of(text + ",'lines':['a.lua:1']}"), expression_of(text + "}"));
}

TEST(ExpressionJson, RefusesNodesThatDoNotFit) {
  expect_refused("[['frobnicate',0]]", "node 0: expected the name of an operation, got \"frobnicate\"");
  expect_refused("[['input',1]]", "node 0: expected an input from 0 to 0, got 1");
  expect_refused("[['input',-1]]", "got -1");
  expect_refused("[['input',18446744073709551615]]", "got 18446744073709551615");
  expect_refused("[['input',0.5]]", "got 0.5");
  expect_refused("[['input',0],['neg',1]]",
                 "node 1: neg expected an argument that stands before it, from 0 to 0, got 1");
  expect_refused("[['input',0],['neg',5]]", "got 5");
  expect_refused("[['input',0],['add',0]]", "node 1: expected add with 2 items after it, got 1");
  expect_refused("[['input',0],['sum',0]]", "expected sum with 2 items");
  expect_refused("[['input',0],['sum',0,'diagonal']]",
                 "expected \"row\", \"column\", \"matrix\" or \"tensor\", got \"diagonal\"");
  expect_refused("[['neg',0]]", "node 0: expected a number or an input");
  expect_refused("[['number','seven']]", "expected a number");
  expect_refused("[[]]", "expected [operation, arguments ...]");
  expect_refused("[7]", "expected [operation, arguments ...], got 7");
  expect_refused("{}", "expected the list 'nodes', got none");
}

TEST(ExpressionJson, RefusesInputsAndOutputsThatDoNotFit) {
  const auto with = [](const char* inputs, const char* outputs) {
    return error_of(std::string("{'inputs':") + inputs + ",'nodes':[['number',1]],'outputs':" + outputs +
                    "}");
  };
  const char* right = "[{'name':'y','node':0}]";
  EXPECT_NE(with("[{'name':'x'},{'name':'x'}]", right).find("expected a name of its own, got 'x' again"),
            std::string::npos);
  EXPECT_NE(with("[{'name':'x','shape':[0,3]}]", right).find("expected a shape of at least [1, 1]"),
            std::string::npos);
  EXPECT_NE(with("[{'name':'x','scalar':true,'shape':[2,3]}]", right).find("without a shape"),
            std::string::npos);
  EXPECT_NE(with("[{'name':'x','size':3}]", right).find("got size 3"), std::string::npos);
  EXPECT_NE(with("[]", "[]").find("at least one output"), std::string::npos);
  EXPECT_NE(with("[]", "[{'name':'y','node':1}]").find("expected a node from 0 to 0, got 1"),
            std::string::npos);
  EXPECT_NE(with("[]", "[{'name':'y'}]").find("expected a name and a node"), std::string::npos);
}

TEST(ExpressionJson, RefusesAMillionNodesByTheirNumber) {
  std::string nodes = "[['input',0]";
  for (int i = 0; i < 1'000'000; ++i) nodes += ",['neg',0]";
  expect_refused(nodes + "]", "expected at most 4096 nodes, got 1000001");
}

}  // namespace
}  // namespace tycho
