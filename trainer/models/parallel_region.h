// Where a block's tensor parallel region begins and ends: inside it each rank along tp computes with its
// heads or hidden features, outside all have the same numbers, or, with sequence parallel, their own tokens.
// For one rank these calls do nothing.
#pragma once
#include "trainer/kernels/tensor.h"
#include "trainer/layout/tp_parts.h"
#include "trainer/parallel/communicator.h"

namespace tycho {

// N tokens of a micro-batch, S those of this rank (N without sequence parallel), D width.
/// The functions f and g of Megatron-LM (Shoeybi et al. 2019, arXiv:1909.08053; sequence parallel:
/// Korthikanti et al. 2022, arXiv:2205.05198). Their backwards are one another: the gradient of what enters
/// leaves, and the gradient of what leaves enters. Copies share the group.
class ParallelRegion {
 public:
  /// One rank.
  ParallelRegion() = default;
  /// `ranks`, those along tp, outlive the region.
  ParallelRegion(Communicator& ranks, bool sequence) : ranks_(&ranks), sequence_(sequence) {}

  bool is_shared() const { return ranks_ != nullptr && ranks_->size() > 1; }
  TpShape shape() const;
  /// For generation, where few tokens pass at once: every rank has all of them.
  ParallelRegion of_whole_sequences() const;
  /// Of a micro-batch of N tokens, the first that this rank's stream has.
  int64_t first_token(int64_t own_tokens) const;

  /// All tokens of what enters: x itself, or, with sequence parallel, gathered into `room_ND`. Collective.
  const Tensor& enter(const Tensor& x_SD, Tensor& room_ND) const;
  /// Where this rank's share of what leaves is to be written, [N, D]: the result itself, or `room_ND`.
  Tensor& share(Tensor& result_SD, Tensor& room_ND) const;
  /// Sums the shares of all ranks: result_SD gets this rank's tokens of the sum. `share_ND` is what share()
  /// gave. Collective.
  void leave(Tensor& share_ND, Tensor& result_SD) const;

  /// [tp, ...] of what each rank has, in the order of ranks. Only where is_shared(). Collective.
  Tensor gathered(const Tensor& x) const;

 private:
  bool cuts_tokens() const { return is_shared() && sequence_; }

  Communicator* ranks_ = nullptr;
  bool sequence_ = false;
};

}  // namespace tycho
