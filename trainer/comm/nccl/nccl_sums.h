// Sums over the ranks of an NCCL group in an order of our own: NCCL moves bytes, and the device adds them.
#pragma once
#include "trainer/comm/nccl/nccl_group.h"
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"

namespace tycho {

/// Sums in the order of a tree (SumOrder::kTree), for dtypes with rounding: fp32, fp64 and bf16. The order of
/// NCCL's own sums depends on the number of ranks, the network and the size. A sum temporarily takes up to
/// three times kSumWorkspaceBytes of the device's memory, twice unless it is of bf16.
class NcclSums {
 public:
  static constexpr int64_t kSumWorkspaceBytes = int64_t{64} << 20;

  /// `group`, which has these ranks, must outlive this object.
  NcclSums(NcclGroup& group, int rank, int size) : group_(group), rank_(rank), size_(size) {}

  /// See Communicator's collectives of these names. Collective, in the order of `stream`, which is the
  /// thread's current one. `out` may be this rank's piece of `in`.
  void all_reduce(const Tensor& x, Stream stream) const;
  void reduce_scatter(const Tensor& out, const Tensor& in, Stream stream) const;

 private:
  int64_t numbers_at_once(const Tensor& x) const;
  Tensor exchanged(const Tensor& pieces_RN, Stream stream) const;

  NcclGroup& group_;
  int rank_, size_;
};

}  // namespace tycho
