// Ranks that share each sequence: the tokens of a batch that this rank has, and the exchange of keys and
// values of all tokens. For one rank these calls do nothing.
#pragma once
#include "trainer/comm/communicator.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/cp_part.h"
#include "trainer/layout/cp_shape.h"

namespace tycho {

// N tokens of this rank (N = B T / cp), B sequences of T tokens, W numbers of a token's keys and values.
/// Context parallel by gathered keys (Llama 3, arXiv:2407.21783 section 3.3.2; balanced parts: Brandon et al.
/// 2023, arXiv:2311.09431). Copies share the group.
class ContextRegion {
 public:
  /// Region of one rank.
  ContextRegion() = default;
  /// `ranks`, those along cp, must outlive the region. seq: T, a multiple of 2 cp. ring: keys and values
  /// travel from rank to rank (models/context/ring_attention.h) instead of being gathered.
  ContextRegion(Communicator& ranks, int64_t seq, bool ring = false)
      : ranks_(&ranks), seq_(seq), ring_(ring) {}

  bool is_shared() const { return ranks_ != nullptr && ranks_->size() > 1; }
  CpShape shape() const;
  /// Returns the region for sequences of another length.
  ContextRegion of_length(int64_t seq) const {
    ContextRegion region = *this;
    region.seq_ = seq;
    return region;
  }
  /// Group of the ranks. Requires is_shared().
  Communicator& ranks() const { return *ranks_; }
  int64_t seq() const { return seq_; }

  /// Returns this rank's tokens [N] of [B T], which must be equal on every rank.
  Tensor own(const Tensor& x_BT) const;
  /// Return and write rows of this rank's positions in a table of positions, [T / cp, D]. put_rows overwrites
  /// these rows of table_PD and sets the others to 0, or adds to them if `add`.
  Tensor own_rows(const Tensor& table_PD) const;
  void put_rows(const Tensor& own_TD, Tensor& table_PD, bool add) const;

  /// Gathers all [B T, W]: the rows of every rank, in the order of positions, from own_NW, whose rows need
  /// not be contiguous. room: as large as `all`. Requires is_shared(). Collective.
  void gather(const Tensor& own_NW, Tensor& room, Tensor& all) const;
  /// Sums all [B T, W] over ranks and writes this rank's rows of the sum to own_NW. room: as large as `all`.
  /// Requires is_shared(). Collective.
  void scatter(const Tensor& all, Tensor& room, const Tensor& own_NW) const;

 private:
  /// Returns the rows that a rank has of all [B T, ...], as views [B, T / 2 cp, ...] of its two spans.
  std::array<Tensor, 2> spans_of(const Tensor& all, int64_t rank) const;

  Communicator* ranks_ = nullptr;
  int64_t seq_ = 0;
  bool ring_ = false;
};

}  // namespace tycho
