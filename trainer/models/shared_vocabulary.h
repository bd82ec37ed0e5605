// A vocabulary whose rows the ranks along tp share: look-ups and losses, without all logits of a token on any
// rank.
#pragma once
#include "trainer/kernels/embedding.h"
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"
#include "trainer/models/parallel_region.h"

namespace tycho {

// N tokens, D width, V rows of the vocabulary on this rank, of which the first is token `first_vocab`.

/// Computes y: the embedding of tokens that this rank has, with their positions, and zeros for tokens of
/// other ranks, so that the sum over ranks is exact. tokens_N: int32.
void embed_own(const Tensor& tokens_N, int64_t first_vocab, const Tensor& table_VD,
               const LearnedPositions& positions, Tensor& y_ND);
/// Adds the gradient of the tokens that this rank has to dtable (fp32). Sets rows of d_ND of other tokens to
/// 0.
void embed_own_backward(const Tensor& tokens_N, int64_t first_vocab, Tensor& d_ND, Tensor& dtable_VD);

/// kernels/cross_entropy.h over the rows of all ranks: losses_N is equal on each, and logits_NV, this rank's,
/// become their gradient. One gather of two numbers for each token. Collective on the region's ranks.
void shared_cross_entropy(const ParallelRegion& region, const LogitRules& rules, Tensor& logits_NV,
                          int64_t first_vocab, const Tensor& targets_N, const Tensor& weight_1,
                          bool write_gradient, Tensor& losses_N);

/// Returns targets for the kernels of token_statistics.h over this rank's `rows` of the vocabulary: its row,
/// kTargetElsewhere, or kIgnoredTarget.
Tensor own_targets(const Tensor& targets_N, int64_t first_vocab, int64_t rows);

/// Turns the statistics of each rank's logits, of own_targets(), into those of the whole vocabulary of
/// `vocab` tokens, equal on every rank. One gather of eight numbers for each token. Collective on the
/// region's ranks.
void share_statistics(const ParallelRegion& region, int64_t vocab, const Tensor& targets_N,
                      Tensor& statistics_SN);

/// Returns the logits of the whole vocabulary, given those of each rank. Collective.
Tensor all_logits(const ParallelRegion& region, const Tensor& logits_NV, int64_t vocab_size);

}  // namespace tycho
