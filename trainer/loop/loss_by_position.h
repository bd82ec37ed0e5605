// Losses of a step by position in the sequence, and in the document.
#pragma once
#include "trainer/kernels/tensor.h"
#include "trainer/metrics/named_table.h"
#include "trainer/models/model.h"
#include "trainer/parallel/communicator.h"

namespace tycho {

/// Sums over the sequences of a step: those of LLM Foundry's loss_perp_v_len.
class LossByPosition {
 public:
  /// Of sequences of `seq` tokens.
  LossByPosition(int64_t seq, const at::Device& device);

  /// Tokens without a target are left out.
  void add(const TokenLosses& tokens);
  /// Collective: from here on the sums of all ranks.
  void sum_over(Communicator& ranks);
  /// A row for each position, from 0: "tokens" that have a target, "mean_loss" and "mean_perplexity" of
  /// these, which are not there without any. Where sequences hold documents, the same by position in the
  /// document.
  NamedTable table() const;

 private:
  Tensor sums_;  // fp64 [2, 3, seq]: in the sequence, in the document; tokens, loss, perplexity
};

}  // namespace tycho
