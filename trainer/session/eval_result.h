// Results of evaluations, for one set or several together. Torch-free.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trainer/base/json.h"

namespace tycho {

struct EvalResult {
  double loss = 0;        // mean over all valid tokens
  double perplexity = 0;  // exp(loss)
  int64_t tokens = 0;     // number of tokens with a target
  double seconds = 0;
  double loss_sum = 0;  // over all valid tokens
};
/// Results by name of set.
using EvalResults = std::map<std::string, EvalResult>;

/// Requires `tokens` > 0.
EvalResult eval_result(double loss_sum, int64_t tokens, double seconds);
/// Returns the result over the tokens of all sets, of which there is at least one; for a single set its own,
/// bit for bit.
EvalResult total_of(const EvalResults& results);
/// Returns {loss, perplexity, tokens, seconds}; numbers that are not finite in the form of set_number.
Json eval_json(const EvalResult& result);
/// Returns the warning about a loss that is not finite, with the name of what was evaluated: "val"; "" for a
/// finite one.
std::string not_finite_loss(const EvalResult& result, const std::string& what);
/// Returns that warning for each set of a checkpoint.
std::vector<std::string> not_finite_losses(const EvalResults& results, const std::string& checkpoint);

}  // namespace tycho
