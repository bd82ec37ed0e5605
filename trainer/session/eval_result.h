// Results of evaluations, for one set or several together. Torch-free.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/json.h"

namespace tycho {

/// Sums over all valid tokens.
struct EvalSums {
  double loss = 0;
  double weight = 0;                         // number of tokens, where they have no weights
  int64_t tokens = 0;                        // number of tokens with a target
  std::map<std::string, double> named = {};  // of a loss of the recipe's own: "cross_entropy", "loss.TERM"
  double nats = 0;                           // cross-entropy of the tokens that are text
  double bytes = 0;                          // of their text; 0 without a tokenizer. Weighted like the losses
};

struct EvalResult {
  double loss = 0;        // mean over all valid tokens
  double perplexity = 0;  // exp of the mean cross-entropy
  int64_t tokens = 0;
  double seconds = 0;
  EvalSums sums = {};

  /// Returns the cross-entropy of the text per byte of it, in bits: comparable between tokenizers. nullopt
  /// without a tokenizer, and if no target is text.
  std::optional<double> bits_per_byte() const;
  /// Returns the means of sums.named.
  std::map<std::string, double> means() const;
};
/// Results by name of set.
using EvalResults = std::map<std::string, EvalResult>;

/// Requires a weight above 0.
EvalResult eval_result(const EvalSums& sums, double seconds);
/// Returns the result over the tokens of all sets, of which there is at least one; for a single set its own,
/// bit for bit.
EvalResult total_of(const EvalResults& results);
/// Returns {loss, perplexity, tokens, seconds}, bits_per_byte if it is known, and the means; numbers that are
/// not finite in the form of set_number.
Json eval_json(const EvalResult& result);
/// Returns the warning about a loss that is not finite, with the name of what was evaluated: "val"; "" for a
/// finite one.
std::string not_finite_loss(const EvalResult& result, const std::string& what);
/// Returns that warning for each set of a checkpoint.
std::vector<std::string> not_finite_losses(const EvalResults& results, const std::string& checkpoint);

}  // namespace tycho
