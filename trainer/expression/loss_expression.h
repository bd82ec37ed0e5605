// The expressions of a loss: terms as the recipe's functions say, and the derivatives that training needs.
#pragma once
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/expression/expression.h"

namespace tycho {

/// Names of what a loss knows of a token: the log-sum-exp of its logits, the logit of its target, their mean,
/// their maximum, and their mean under the softmax; then its weight and its position. The first five are the
/// statistics that have gradients, in the order of TokenStatistic.
inline constexpr std::array<const char*, 7> kLossInputs = {"lse", "target", "mean",    "max",
                                                           "px",  "weight", "position"};
inline constexpr size_t kNumLossStatistics = 5;

/// Names of the outputs of a loss, and of the metrics that record them.
inline constexpr const char* kCrossEntropyName = "cross_entropy";
inline std::string term_output(const std::string& term) { return "loss." + term; }

/// Terms by name, each an expression as JSON with one output and inputs out of kLossInputs.
using LossTerms = std::map<std::string, Json>;

/// Returns an expression whose inputs are kLossInputs, all of them, and whose outputs are |weight| times the
/// cross-entropy, |weight| times each term in the order of names, and, with `with_gradients`, the derivatives
/// of what training minimises by each statistic: of the sum of the terms, or of the cross-entropy if there
/// are none. Throws Error (kRecipe) for terms that are no such expressions.
Expression loss_expression(const LossTerms& terms, bool with_gradients);

/// Returns true if some term reads that input.
bool reads_input(const LossTerms& terms, std::string_view input);

/// Returns a line for each term: "smoothed = lse - 0.9 * target - 0.1 * mean".
std::string text_of(const LossTerms& terms);

}  // namespace tycho
