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

const Tensor& DecoderBlock::attention_input(const Views& p, const Tensor& x_SD, BlockActivations act) const {
  if (!norms_before_) return x_SD;
  Views& keep = act.saved;
  norm_.forward(norm1(p), x_SD, stats1(keep), keep[block_saved::kNormed1]);
  if (reuses_x_) norm_.forward(norm1(p), act.x_of_kv_SD, stats_kv(keep), keep[block_saved::kNormedKv]);
  return keep[block_saved::kNormed1];
}

const Tensor& DecoderBlock::feed_forward_input(const Views& p, BlockActivations act) const {
  const Tensor& middle_SD = act.saved[block_saved::kMiddle];
  if (!norms_before_) return middle_SD;
  Tensor& normed_SD = act.saved[block_saved::kNormed2];
  norm_.forward(norm2(p), middle_SD, stats2(act.saved), normed_SD);
  return normed_SD;
}

void DecoderBlock::forward(const Views& p, const Tensor& x_SD, BlockActivations act, Tensor& y_SD) const {
  Tensor& middle_SD = act.saved[block_saved::kMiddle];
  attention_.forward(p, attention_input(p, x_SD, act), x_SD, act, middle_SD);
  feed_forward_.forward(p, feed_forward_input(p, act), middle_SD, act, y_SD);
}

void DecoderBlock::recompute(Recompute mode, const Views& p, const Tensor& x_SD, BlockActivations act) const {
  if (mode == Recompute::kNone) return;
  const Tensor& input_SD = attention_input(p, x_SD, act);
  const bool whole = mode == Recompute::kFull;
  if (whole) attention_.forward(p, input_SD, x_SD, act, act.saved[block_saved::kMiddle]);
  const Tensor& middle_SD = feed_forward_input(p, act);
  if (mode != Recompute::kNorms) feed_forward_.recompute(p, middle_SD, act, whole);
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
