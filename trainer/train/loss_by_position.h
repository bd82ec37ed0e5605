// Losses of a step by position in the sequence, and in the document.
#pragma once
#include "trainer/comm/communicator.h"
#include "trainer/kernels/tensor.h"
#include "trainer/metrics/named_table.h"
#include "trainer/models/model.h"

namespace tycho {

/// Sums over the sequences of a step, like LLM Foundry's loss_perp_v_len.
class LossByPosition {
 public:
  /// Makes sums for sequences of `seq` tokens.
  LossByPosition(int64_t seq, const at::Device& device);

  /// Adds cross-entropies, without tokens that have no target.
  void add(const TokenLosses& tokens);
  /// Replaces the sums by those of all ranks. Collective.
  void sum_over(Communicator& ranks);
  /// Returns a row for each position, from 0: "tokens" with a target, and their "mean_loss" and
  /// "mean_perplexity" (weighted, where tokens have weights), which are absent when nothing has a weight.
  /// When sequences hold documents, also the same columns by position in the document.
  NamedTable table() const;

 private:
  Tensor sums_;  // fp64 [2, 4, seq]: in the sequence, in the document; tokens, weight, loss, perplexity
};

}  // namespace tycho
