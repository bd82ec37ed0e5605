// Norms of queries and keys: of each head, or of all heads together, also where ranks share the heads.
#pragma once
#include <vector>

#include "trainer/families/decoder_spec.h"
#include "trainer/kernels/tensor.h"
#include "trainer/layout/decoder_layout.h"
#include "trainer/models/norm.h"
#include "trainer/models/parallel_region.h"
#include "trainer/sharding/gathered_unit.h"

namespace tycho {

// N tokens; P columns: queries, then keys unless they are another block's, then values; C of a rank's queries
// or keys.
/// LayerNorm (Dehghani et al. 2023, arXiv:2302.05442) or RMSNorm of queries and keys. Ranks along tp have
/// some heads each. When all heads are normed together, each rank computes the means of its own columns, in
/// fp32, and one gather combines those of all ranks, for queries and keys at once. Functions are then
/// collective on the ranks along tp. All ranks have equally many columns. Key heads that several ranks have
/// are counted by each of them: no mean changes, and the gradients of such ranks are shares that add up.
class QueryKeyNorm {
 public:
  /// `spec`: that of this rank.
  QueryKeyNorm(const DecoderSpec& spec, const BlockParams& at, bool has_keys, const ParallelRegion& region);

  bool is_used() const { return !sides_.empty(); }
  /// Norms qkv_NP in place; the block's saved slots keep what backward needs.
  void forward(const Views& p, Tensor& qkv_NP, Views& saved) const;
  /// x_NP: input of forward. d_qkv_NP is the gradient of forward's output on entry and of x_NP on return;
  /// gradients of the parameters are written to g, or added.
  void backward(const Views& p, const Tensor& x_NP, Views& saved, Tensor& d_qkv_NP, Views& g, bool add) const;
  /// Norms qkv_NP for generation, which keeps nothing.
  void apply(const Views& p, Tensor& qkv_NP) const;

 private:
  /// Queries or keys: the views of the norm's parameters, the saved slots, the columns.
  struct Side {
    int weight, bias, mean, inv;
    int64_t first, width;
    Tensor of(const Tensor& qkv_NP) const { return qkv_NP.narrow(1, first, width); }
    NormParams params(const Views& p) const;
    NormStats stats(Views& saved) const;
  };
  bool has_mean() const { return spec_.kind == NormKind::kLayer; }
  /// Returns mean and 1 / standard deviation of each row over the columns of all ranks, [sides, 2, N], or 1 /
  /// root mean square, [sides, 1, N].
  Tensor shared_statistics(const Tensor& qkv_NP) const;
  /// Returns the means of g = dy (offset + weight) and of g xhat over the columns of all ranks, [sides, 2,
  /// N]; for RMSNorm of g xhat alone, [sides, 1, N].
  Tensor shared_means(const Views& p, const Tensor& x_NP, Views& saved, const Tensor& d_qkv_NP) const;

  ParallelRegion region_;
  bool shared_;  // ranks have parts of the columns that are normed together
  NormSpec spec_;
  Norm norm_;
  std::vector<Side> sides_;
};

}  // namespace tycho
