// Entry and exit of a block's tensor parallel region. Inside it each rank along tp computes with its heads or
// hidden features; outside all ranks have the same numbers, or, with sequence parallel, their own tokens. For
// one rank these calls do nothing.
#pragma once
#include <functional>

#include "trainer/comm/communicator.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/tp_parts.h"
#include "trainer/models/context/context_region.h"

namespace tycho {

// N tokens of a micro-batch on this rank along cp; S those of this rank along tp (N without sequence
// parallel), D width.
/// The functions f and g of Megatron-LM (Shoeybi et al. 2019, arXiv:1909.08053; sequence parallel:
/// Korthikanti et al. 2022, arXiv:2205.05198). Each is the backward of the other: the gradient of a tensor
/// that enters leaves, and the gradient of a tensor that leaves enters. Copies share the group.
class ParallelRegion {
 public:
  /// Region of one rank.
  ParallelRegion() = default;
  /// `ranks`, those along tp, must outlive the region. `context`: the ranks that share its sequences.
  ParallelRegion(Communicator& ranks, bool sequence, const ContextRegion& context = {})
      : ranks_(&ranks), sequence_(sequence), context_(context) {}

  bool is_shared() const { return ranks_ != nullptr && ranks_->size() > 1; }
  TpShape shape() const;
  const ContextRegion& context() const { return context_; }
  /// Returns the region for generation, where few tokens pass at once: every rank has all of them.
  ParallelRegion of_whole_sequences() const;
  /// Returns the region for sequences of another length.
  ParallelRegion of_length(int64_t seq) const {
    ParallelRegion region = *this;
    region.context_ = context_.of_length(seq);
    return region;
  }
  /// Returns the first of the N tokens that this rank's stream has.
  int64_t first_token(int64_t own_tokens) const;
  /// Calls run(i, j, n): the n tokens of this rank's stream starting at i are the n tokens of the
  /// micro-batch, whole sequences, starting at j.
  void for_token_runs(int64_t own_tokens,
                      const std::function<void(int64_t i, int64_t j, int64_t n)>& run) const;

  /// Returns all tokens of x: x itself, or, with sequence parallel, gathered into `workspace_ND`. Collective.
  const Tensor& enter(const Tensor& x_SD, Tensor& workspace_ND) const;
  /// Returns the tensor [N, D] to write this rank's share of a result to: the result itself, or
  /// `workspace_ND`.
  Tensor& share(Tensor& result_SD, Tensor& workspace_ND) const;
  /// Sums the shares of all ranks: result_SD receives this rank's tokens of the sum. `share_ND`: result of
  /// share(). Collective.
  void leave(Tensor& share_ND, Tensor& result_SD) const;

  /// Returns [tp, ...]: x of each rank, in the order of ranks. Requires is_shared(). Collective.
  Tensor gathered(const Tensor& x) const;

 private:
  bool cuts_tokens() const { return is_shared() && sequence_; }

  Communicator* ranks_ = nullptr;
  bool sequence_ = false;
  ContextRegion context_;
};

}  // namespace tycho
