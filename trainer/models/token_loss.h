// The loss of a token as a recipe defines it: a function of statistics of its logits.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "trainer/expression/loss_expression.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/model_layout.h"

namespace tycho {

struct TrainConfig;

/// Targets, weights and positions of N tokens, which losses take in addition to their logits.
struct LossTokens {
  Tensor targets_N;         // int32
  Tensor weights_N = {};    // fp32; undefined: 1 each
  Tensor positions_N = {};  // int32; undefined where TokenLoss::reads_positions is false

  LossTokens narrow(int64_t begin, int64_t count) const;
};

/// Immutable, and cheap to copy.
class TokenLoss {
 public:
  /// Makes the cross-entropy, which the fused classifier computes. It takes no weights.
  TokenLoss() = default;
  /// Makes the sum of these terms, or, without terms, the cross-entropy; either times the tokens' weights.
  /// Throws Error (kRecipe) as loss_expression.
  explicit TokenLoss(const LossTerms& terms);

  /// True for the cross-entropy of tokens without weights.
  bool is_fused(const LossTokens& tokens) const { return terms_.empty() && !tokens.weights_N.defined(); }
  /// Names of the terms, without the cross-entropy.
  const std::vector<std::string>& terms() const { return terms_; }
  /// Losses that are kept of a token: its cross-entropy, and its terms.
  int64_t num_losses() const { return 1 + static_cast<int64_t>(terms_.size()); }
  bool reads_positions() const { return reads_positions_; }
  /// True if a term reads weights, and with them the signs that mark targets.
  bool reads_weights() const { return reads_weights_; }
  /// Returns what the head keeps for this loss.
  LossSlots slots() const;

  /// Computes losses_RN, fp32 [num_losses, N], 0 where the target is ignored, and, if it is defined,
  /// gradients_5N [kLossStatistics, N]. statistics_SN: of token_statistics. Requires !is_fused(tokens).
  void compute(const Tensor& statistics_SN, const LossTokens& tokens, Tensor& losses_RN,
               Tensor& gradients_5N) const;

 private:
  struct Programs;
  std::vector<std::string> terms_;
  bool reads_positions_ = false, reads_weights_ = false;
  std::shared_ptr<const Programs> programs_;
};

/// Returns the loss that a recipe's run minimises.
TokenLoss token_loss(const TrainConfig& config);

}  // namespace tycho
