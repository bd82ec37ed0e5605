// What an evaluation gives, of one set or of several together. Torch-free.
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
  int64_t tokens = 0;     // valid ones: those with a target
  double seconds = 0;
  double loss_sum = 0;  // over all valid tokens
};
/// By the names of sets.
using EvalResults = std::map<std::string, EvalResult>;

/// `tokens` > 0.
EvalResult eval_result(double loss_sum, int64_t tokens, double seconds);
/// Over the tokens of all sets, of which there is at least one; that of a single set is its own, to the bit.
EvalResult total_of(const EvalResults& results);
/// {loss, perplexity, tokens, seconds}; numbers that are not finite as set_number writes them.
Json eval_json(const EvalResult& result);
/// Returns the warning about a loss that is not finite, with `what` was evaluated: "val"; "" for a number.
std::string not_finite_loss(const EvalResult& result, const std::string& what);
/// Returns that warning for each set of a checkpoint.
std::vector<std::string> not_finite_losses(const EvalResults& results, const std::string& checkpoint);

}  // namespace tycho
