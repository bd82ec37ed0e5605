// Forward, followed by the backward that mirrors it.
#include "trainer/models/decoder_block.h"
#include "trainer/layout/decoder_slots.h"

namespace tycho {
namespace {

NormStats stats1(Views& saved) { return {saved[block_saved::kMean1], saved[block_saved::kInv1]}; }
NormStats stats2(Views& saved) { return {saved[block_saved::kMean2], saved[block_saved::kInv2]}; }

NormStats stats_kv(Views& saved) { return {saved[block_saved::kMeanKv], saved[block_saved::kInvKv]}; }

}  // namespace

DecoderBlock::DecoderBlock(const DecoderSpec& spec, int64_t block, BatchShape shape,
                           const AttentionTables& tables, const at::Device& device,
                           const ParallelRegion& region)
    : at_(block_params(spec, block)),
      reuses_x_(spec.reuses_x(block)),
      last_to_reuse_x_(reuses_x_ && spec.last_user_of_x(spec.block(block).x_block) == block),
      x_reused_(!reuses_x_ && spec.last_user_of_x(block) != block),
      norms_before_(spec.norms_before()),
      norm_(spec.norm),
      attention_(spec, block, shape, tables, device, region),
      feed_forward_(spec, block, region) {}

std::vector<DecoderBlock> decoder_blocks(const DecoderSpec& spec, BatchShape shape, int64_t longest,
                                         const at::Device& device, const ParallelRegion& region) {
  const AttentionTables tables = attention_tables(spec, shape, longest, device, region.context());
  std::vector<DecoderBlock> blocks;
  for (int64_t i = 0; i < spec.layers; ++i) blocks.emplace_back(spec, i, shape, tables, device, region);
  return blocks;
}

BranchInput DecoderBlock::attention_input(const Views& p, const Tensor& x_SD, BlockActivations act,
                                          bool casts) const {
  if (!norms_before_) return {x_SD};
  Views& keep = act.saved;
  Tensor& normed_SD = keep[block_saved::kNormed1];
  std::optional<RowCast> cast = casts ? attention_.cast_of_input(p, normed_SD, act) : std::nullopt;
  norm_.forward(norm1(p), x_SD, stats1(keep), normed_SD, no_terms(), cast ? &*cast : nullptr);
  if (reuses_x_) norm_.forward(norm1(p), act.x_of_kv_SD, stats_kv(keep), keep[block_saved::kNormedKv]);
  return {normed_SD, finished(cast, normed_SD)};
}

BranchInput DecoderBlock::feed_forward_input(const Views& p, BlockActivations act, bool casts) const {
  const Tensor& middle_SD = act.saved[block_saved::kMiddle];
  if (!norms_before_) return {middle_SD};
  Tensor& normed_SD = act.saved[block_saved::kNormed2];
  std::optional<RowCast> cast = casts ? feed_forward_.cast_of_input(p, normed_SD, act) : std::nullopt;
  norm_.forward(norm2(p), middle_SD, stats2(act.saved), normed_SD, no_terms(), cast ? &*cast : nullptr);
  return {normed_SD, finished(cast, normed_SD)};
}

BranchInput DecoderBlock::attend(const Views& p, const BranchInput& input, const Tensor& x_SD,
                                 BlockActivations act) const {
  Tensor &middle_SD = act.saved[block_saved::kMiddle], &normed_SD = act.saved[block_saved::kNormed2];
  if (!norms_before_) {
    attention_.forward(p, input, x_SD, act, middle_SD, /*next=*/nullptr);
    return {middle_SD};
  }
  std::optional<RowCast> cast = feed_forward_.cast_of_input(p, normed_SD, act);
  const NextNorm next = {norm_, norm2(p), stats2(act.saved), normed_SD, cast ? &*cast : nullptr};
  attention_.forward(p, input, x_SD, act, middle_SD, &next);
  return {normed_SD, finished(cast, normed_SD)};
}

void DecoderBlock::forward(const Views& p, const Tensor& x_SD, BlockActivations act, Tensor& y_SD) const {
  const BranchInput input = attend(p, attention_input(p, x_SD, act, /*casts=*/true), x_SD, act);
  feed_forward_.forward(p, input, act.saved[block_saved::kMiddle], act, y_SD);
}

void DecoderBlock::recompute(Recompute mode, const Views& p, const Tensor& x_SD, BlockActivations act) const {
  if (mode == Recompute::kNone) return;
  const bool whole = mode == Recompute::kFull, with_up = mode != Recompute::kNorms;
  const BranchInput input = attention_input(p, x_SD, act, /*casts=*/whole);
  const BranchInput next = whole ? attend(p, input, x_SD, act) : feed_forward_input(p, act, with_up);
  if (with_up) feed_forward_.recompute(p, next, act, whole);
}

void DecoderBlock::norm_backward(NormParams p, const Tensor& x_SD, NormStats stats, int weight, int bias,
                                 const Tensor& d_input_SD, Views& g, bool add, Tensor& d_SD) const {
  if (!norms_before_) {
    d_SD.add_(d_input_SD);
    return;
  }
  norm_.backward(p, x_SD, stats, d_input_SD, d_SD, /*add_to_dx=*/true, {view(g, weight), view(g, bias)}, add);
}

void DecoderBlock::backward(const Views& p, const Tensor& x_SD, BlockActivations act, Views& g, bool add,
                            Tensor& d_SD) const {
  Views& keep = act.saved;
  const Tensor& middle_SD = keep[block_saved::kMiddle];
  Tensor& d_input_SD = act.scratch[block_scratch::kDNormed];
  feed_forward_.backward(p, norms_before_ ? keep[block_saved::kNormed2] : middle_SD, act, d_SD, g, add,
                         d_input_SD);
  // The residual path adds: d becomes the gradient of the stream between the branches, then of x.
  norm_backward(norm2(p), middle_SD, stats2(keep), at_.norm2_weight, at_.norm2_bias, d_input_SD, g, add,
                d_SD);
  attention_.backward(p, norms_before_ ? keep[block_saved::kNormed1] : x_SD, act, d_SD, g, add, d_input_SD);
  norm_backward(norm1(p), x_SD, stats1(keep), at_.norm1_weight, at_.norm1_bias, d_input_SD, g, add, d_SD);
  if (reuses_x_)
    norm_.backward(norm1(p), act.x_of_kv_SD, stats_kv(keep), act.scratch[block_scratch::kDNormedKv],
                   act.x_saved[block_saved::kDX], /*add_to_dx=*/!last_to_reuse_x_,
                   {g[at_.norm1_weight], view(g, at_.norm1_bias)}, /*add=*/true);
  if (x_reused_) d_SD.add_(keep[block_saved::kDX]);
}

Tensor DecoderBlock::forward_cached(const Views& p, const Tensor& x_ND, const Tensor& x_of_kv_ND,
                                    KvCache& cache) const {
  const Tensor normed_kv_ND = reuses_x_ ? norm_.apply(norm1(p), x_of_kv_ND) : Tensor();
  const Tensor input_ND = norms_before_ ? norm_.apply(norm1(p), x_ND) : x_ND;
  const Tensor middle_ND = attention_.forward_cached(p, input_ND, normed_kv_ND, x_ND, cache);
  return feed_forward_.apply(p, norms_before_ ? norm_.apply(norm2(p), middle_ND) : middle_ND, middle_ND);
}

}  // namespace tycho
