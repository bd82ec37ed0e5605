// Losses joined from terms: their values, their derivatives, and terms that are refused.
#include "trainer/expression/loss_expression.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/trainer/expression/loss_terms.h"
#include "tests/trainer/expression/reference.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

Json smoothed() { return term_of("sub sub lse mul 0.9 target mul 0.1 mean"); }
Json z_loss() { return term_of("mul 0.01 mul lse lse"); }

/// Outputs by name, for one token of these values in the order of kLossInputs.
std::map<std::string, double> values(const Expression& expression, const std::array<double, 7>& token) {
  std::vector<NodeValues> inputs;
  for (const double value : token) inputs.push_back({.shape = {1, 1}, .numbers = {value}});
  const std::vector<NodeValues> outputs = evaluate(expression, inputs, Arithmetic::kDouble);
  std::map<std::string, double> named;
  for (size_t i = 0; i < outputs.size(); ++i) named[expression.outputs[i].name] = outputs[i].numbers.at(0);
  return named;
}

std::string error_of(const LossTerms& terms) {
  try {
    loss_expression(terms, true);
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "expected an Error";
  return "";
}

constexpr std::array<double, 7> kToken = {3.0, 1.0, -0.5, 2.0, 1.5, -2.0, 7.0};  // weight -2: a mark

TEST(LossExpression, WithoutTermsIsTheWeightedCrossEntropy) {
  const auto found = values(loss_expression({}, true), kToken);
  EXPECT_EQ(
      found,
      (std::map<std::string, double>{
          {"cross_entropy", 4}, {"d_lse", 2}, {"d_max", 0}, {"d_mean", 0}, {"d_px", 0}, {"d_target", -2}}));
}

TEST(LossExpression, AddsTermsAndDerivatesTheirSum) {
  const LossTerms terms = {{"smoothed", smoothed()}, {"z", z_loss()}};
  const auto found = values(loss_expression(terms, true), kToken);
  EXPECT_DOUBLE_EQ(found.at("cross_entropy"), 2 * (3.0 - 1.0));
  EXPECT_DOUBLE_EQ(found.at("loss.smoothed"), 2 * (3.0 - 0.9 * 1.0 + 0.1 * 0.5));
  EXPECT_DOUBLE_EQ(found.at("loss.z"), 2 * 0.01 * 9.0);
  EXPECT_DOUBLE_EQ(found.at("d_lse"), 2 * (1 + 0.02 * 3.0));
  EXPECT_DOUBLE_EQ(found.at("d_target"), 2 * -0.9);
  EXPECT_DOUBLE_EQ(found.at("d_mean"), 2 * -0.1);
  EXPECT_EQ(found.at("d_max"), 0.0);
  EXPECT_FALSE(found.contains("total"));
  const Expression evaluated = loss_expression(terms, false);
  EXPECT_EQ(evaluated.outputs.size(), 3u);
  EXPECT_EQ(evaluated.inputs.size(), kLossInputs.size());
  EXPECT_DOUBLE_EQ(values(evaluated, kToken).at("loss.z"), found.at("loss.z"));
}

TEST(LossExpression, KnowsWhatTermsRead) {
  EXPECT_TRUE(reads_input({{"a", z_loss()}, {"b", smoothed()}}, "mean"));
  EXPECT_FALSE(reads_input({{"a", z_loss()}, {"b", smoothed()}}, "weight"));
  EXPECT_EQ(text_of({{"z", z_loss()}}), "z = 0.01 * (lse * lse)\n");
}

TEST(LossExpression, RefusesWhatIsNoFunctionOfAToken) {
  Json logits = z_loss();
  logits["inputs"][0]["name"] = "logits";
  EXPECT_EQ(error_of({{"a", logits}}),
            "[loss] a: expected inputs of a token such as lse and target, got logits");
  Json two = z_loss();
  two["outputs"].push_back({{"name", "more"}, {"node", 0}});
  EXPECT_EQ(error_of({{"a", two}}), "[loss] a: expected one output, got 2");
  Json sum = z_loss();
  sum["inputs"][0]["shape"] = {4, 1};
  EXPECT_NE(error_of({{"a", sum}}).find("expected inputs of a token"), std::string::npos);
}

}  // namespace
}  // namespace tycho
