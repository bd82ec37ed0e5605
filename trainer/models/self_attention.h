// Causal self-attention of a decoder: projections, positions, scores.
#pragma once
#include <optional>

#include "trainer/families/decoder_spec.h"
#include "trainer/kernels/attention/alibi_columns.h"
#include "trainer/kernels/attention/attention_rows.h"
#include "trainer/kernels/attention/flash_attention.h"
#include "trainer/kernels/attention/rope.h"
#include "trainer/kernels/fp8.h"
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/twins/kernel_table.h"
#include "trainer/layout/decoder_layout.h"
#include "trainer/layout/model_layout.h"
#include "trainer/models/activations.h"
#include "trainer/models/context/context_region.h"
#include "trainer/models/fp8_linear.h"
#include "trainer/models/kv_cache.h"
#include "trainer/models/linear.h"
#include "trainer/models/norm.h"
#include "trainer/models/parallel_region.h"
#include "trainer/models/query_key_norm.h"
#include "trainer/models/residual.h"
#include "trainer/sharding/gathered_unit.h"

namespace tycho {

/// Tables of positions and heads, equal for all blocks of a model, on its device; undefined where the model
/// has none.
struct AttentionTables {
  std::vector<RopeTables>
      rotary;  // rotations of this rank's positions, in the order of PositionsSpec::rotary
  Tensor slopes_H;
  AlibiColumns alibi;  // made from slopes_H, for flash attention
};
/// shape: of whole sequences. longest: most tokens that a sequence of this model can have; dynamic
/// frequencies depend on it.
AttentionTables attention_tables(const DecoderSpec& spec, BatchShape shape, int64_t longest,
                                 const at::Device& device, const ContextRegion& context);

// N tokens, S those of this rank, D width, H query heads, K kv heads, d head width, C = (H + 2K) d, E = H d;
// P projected: C, or E where the keys and values are another block's.
/// y = out( softmax(rules(q kᵀ)) v ) + residual; q, k, v = rope(norm(clamp(qkv(x)))), each where the family
/// has it. (Vaswani et al. 2017; Ainslie et al. 2023, arXiv:2305.13245; keys and values of an earlier block:
/// Brandon et al. 2024, arXiv:2405.12981.)
class SelfAttention {
 public:
  SelfAttention(const DecoderSpec& spec, int64_t block, BatchShape shape, const AttentionTables& tables,
                const at::Device& device, const ParallelRegion& region);

  /// next: the norm of y, if it has one.
  void forward(const Views& p, const BranchInput& input, const Tensor& residual_SD, BlockActivations act,
               Tensor& y_SD, const NextNorm* next) const;
  /// Returns the cast of the input that the kernel which computes it should make, if any.
  std::optional<RowCast> cast_of_input(const Views& p, const Tensor& x_SD, BlockActivations act) const {
    if (reuses_x_) return std::nullopt;
    return input_cast(fp8_linear_of(at_, at_.qkv_weight, region_, p, act), x_SD);
  }
  /// Computes dx_SD from dy_SD; gradients are written to g, or added. Call it for blocks that reuse keys and
  /// values before the block that has them: they leave their gradient with that block.
  void backward(const Views& p, const Tensor& x_SD, BlockActivations act, const Tensor& dy_SD, Views& g,
                bool add, Tensor& dx_SD) const;
  /// For generation: x_ND are the tokens of the cache's pass, whose keys and values are added to the cache.
  /// normed_kv_ND: input from which keys and values are projected, if it is not x_ND.
  Tensor forward_cached(const Views& p, const Tensor& x_ND, const Tensor& normed_kv_ND,
                        const Tensor& residual_ND, KvCache& cache) const;

 private:
  /// `act` is the activations of a pass; none for generation.
  template <class... Act>
  LinearParams qkv(const Views& p, Act... act) const {
    return layer(at_.qkv_weight, at_.qkv_bias, p, act...);
  }
  template <class... Act>
  LinearParams kv(const Views& p, Act... act) const {
    return layer(at_.kv_weight, at_.kv_bias, p, act...);
  }
  template <class... Act>
  LinearParams out(const Views& p, Act... act) const {
    return layer(at_.out_weight, at_.out_bias, p, act...);
  }
  template <class... Act>
  LinearParams layer(int weight, int bias, const Views& p, Act... act) const {
    return {p[static_cast<size_t>(weight)], view(p, bias), in_out_,
            layer_adapters(at_, weight, region_.context(), p, act...),
            fp8_linear_of(at_, weight, region_, p, act...)};
  }
  /// Scratch for separate products of queries and of keys and values: [N, E] and [N, 2 K d].
  struct Apart {
    Tensor q_NE, kv;
  };
  Apart apart(BlockActivations act) const;
  /// Returns the attention of rows of the cache, [N, E]. Adds their tokens' keys and values to the cache.
  Tensor attend_cached(const CachedRows& rows, Tensor qkv_NP, KvCache& cache) const;
  bool starts_as_in_training(const AttentionShape& shape, const Tensor& qkv_NP, int64_t length) const;
  Tensor prompt_attention(const AttentionShape& shape, const Tensor& qkv_NP) const;
  void project(const Views& p, const BranchInput& input, BlockActivations act, Tensor& raw_NP) const;
  /// Computes dx_SD, and slot kDNormedKv where keys and values come from another input.
  void project_backward(const Views& p, const Tensor& x_SD, BlockActivations act, const Tensor& d_raw_NP,
                        Views& g, bool add, Tensor& dx_SD) const;
  /// Computes the gradients of one product of the region with a tensor that enters it.
  void product_backward(LinearParams p, const Tensor& x_SD, BlockActivations act, const Tensor& dy_NM,
                        LinearGrads g, bool add, Tensor& dx_SD) const;
  /// Clamps, and norms queries and keys, from raw into qkv.
  void clamp_and_norm(const Views& p, const Tensor& raw_NP, Views& saved, Tensor& qkv_NP) const;
  void clamp_and_norm_backward(const Views& p, Views& saved, Tensor& d_qkv_NP, Views& g, bool add) const;
  /// Return the rows that attention takes: of this block, or its queries and the keys and values of another.
  /// own_rows are this rank's; rows are those of all ranks that share the sequences.
  AttentionRows own_rows(BlockActivations act) const;
  AttentionRows rows(BlockActivations act) const;
  /// Computes the attention of this rank's queries, in slot kAttention.
  void attend(BlockActivations act) const;
  /// Computes attention's gradient, in d_qkv_NC. Returns true if it is rotated back already.
  bool attention_gradient(BlockActivations act, const Tensor& d_attention_NE, Tensor& d_qkv_NC) const;
  /// Returns the part of attention's gradient that belongs to this block's projection; the rest is left with
  /// the block that is reused.
  Tensor own_gradient(BlockActivations act, Tensor& d_qkv_NC) const;
  /// Returns the model's rules with this pass's documents and dropout.
  ScoreRules rules_for(const BlockActivations& act) const;
  FlashRules flash_rules(const BlockActivations& act) const { return {alibi_, act.documents}; }
  /// Applies temperature and rotations. position_N: see kernels/temperature.h.
  void apply_positions(Tensor& qkv_NP, int64_t seq, int64_t first_position, const Tensor& position_N) const;
  void apply_positions_backward(Tensor& d_qkv_NP, bool is_rotated, const Tensor& position_N) const;
  void rotate(Tensor& qkv_NP, int64_t seq, int64_t first_position, bool inverse) const;
  void scale_by_temperature(Tensor& qkv_NP, int64_t seq, int64_t first_position,
                            const Tensor& position_N) const;
  Tensor heads_of(const Tensor& qkv, int64_t first_head, int64_t heads) const;

  AttentionSpec attn_;
  bool in_out_;
  ParallelRegion region_;
  BlockSpec block_;
  bool reuses_;         // uses the keys and values of an earlier block
  bool last_to_reuse_;  // last block that uses these: the first one in backward
  bool reused_;         // its keys and values are used by later blocks
  bool reuses_x_;       // projects keys and values from an earlier block's input
  BlockParams at_;
  QueryKeyNorm norm_;
  AttentionShape shape_;
  at::Device device_;
  RopeTables cos_sin_;  // undefined where this block does not use them, as are the slopes
  Tensor slopes_H_;
  AlibiColumns alibi_;
  ScoreRules rules_;
  BranchEnd end_;
};

}  // namespace tycho
