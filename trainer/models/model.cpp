// The loop over units: embedding, blocks, head, and back.
#include "trainer/models/model.h"
#include "trainer/layout/decoder_slots.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/kernels/embedding.h"
#include "trainer/models/acquired_head.h"
#include "trainer/models/embedding_scale.h"
#include "trainer/models/residual.h"
#include "trainer/models/shared_vocabulary.h"
#include "trainer/profiler/range.h"
#include "trainer/sharding/arena.h"

namespace tycho {
namespace {

/// Longest list that LibTorch sums on one thread. It sums longer lists on several threads, and then the bits
/// depend on their number.
constexpr int64_t kOnOneThread = 32767;

/// Returns the sum, fp64, one number.
Tensor sum_of_row(const Tensor& losses_N) {
  Tensor sum = losses_N.narrow(0, 0, std::min(losses_N.numel(), kOnOneThread)).sum(at::kDouble);
  for (int64_t at = kOnOneThread; at < losses_N.numel(); at += kOnOneThread)
    sum += losses_N.narrow(0, at, std::min(losses_N.numel() - at, kOnOneThread)).sum(at::kDouble);
  return sum;
}

/// Returns the sums of rows, fp64.
Tensor sums_of(const Tensor& losses_RN) {
  std::vector<Tensor> sums;
  for (const Tensor& losses_N : losses_RN.unbind(0)) sums.push_back(sum_of_row(losses_N));
  return at::stack(sums);
}

/// Returns the learned positions for sequences of `seq` tokens, of which ranks along cp have some each; none
/// for families without them.
LearnedPositions positions_of(const DecoderSpec& spec, const Views& embedding, int64_t seq,
                              const ContextRegion& context) {
  if (spec.positions.learned == 0) return {};
  const Tensor& table_PD = embedding[embedding_param::kPositions];
  if (!context.is_shared()) return {table_PD, seq, 0};
  return {context.own_rows(table_PD), seq / context.shape().size, 0};
}

void learned_gradient(const ContextRegion& context, const Tensor& d_ND, int64_t seq, Tensor& d_table_PD,
                      bool add) {
  if (!context.is_shared()) return position_gradient(d_ND, seq, d_table_PD, add);
  const int64_t own = seq / context.shape().size;
  Tensor d_own_TD = at::empty({own, d_table_PD.size(1)}, d_table_PD.options());
  position_gradient(d_ND, own, d_own_TD, /*add=*/false);
  context.put_rows(d_own_TD, d_table_PD, add);
}

}  // namespace

Model::Model(const ModelConfig& config, UnitStore& units, BatchShape shape, at::ScalarType dtype,
             const at::Device& device, const RecomputeConfig& recompute, const ParallelRegion& region,
             const PipelineStage& stage, const TokenLoss& loss, const AttentionConfig& attention)
    : config_(config),
      spec_(tp_spec(decoder_spec(config, attention), region.shape())),
      layout_(model_layout(config)),
      shape_(shape),
      dtype_(dtype),
      device_(device),
      recompute_(recompute),
      head_(spec_, layout_.vocab_size, region, loss),
      stage_(stage),
      part_(stage.part(layout_.num_blocks)),
      units_(units),
      block_units_(layout_, units),
      activations_(stage_specs(), recompute, dtype,
                   make_arena(Activations::bytes(stage_specs(), recompute, dtype), device), lent()),
      blocks_(decoder_blocks(spec_, shape, shape.seq, device, region)) {
  lay_out();
  if (!has_gradients(units_.grads(0))) {
    lowest_trained_ = 1;
    while (lowest_trained_ < head_unit() && !block_units_.has_gradients(lowest_trained_ - 1))
      ++lowest_trained_;
  }
  lowest_trained_ = static_cast<int>(stage_.least(lowest_trained_));
}

Model::Model(const Model& wide, int64_t seq)
    : config_(wide.config_),
      spec_(wide.spec_),
      layout_(wide.layout_),
      shape_{wide.shape_.batch, seq},
      dtype_(wide.dtype_),
      device_(wide.device_),
      recompute_(wide.recompute_),
      head_(spec_, layout_.vocab_size, wide.head_.region.of_length(seq), wide.head_.loss),
      stage_(wide.stage_),
      part_(wide.part_),
      units_(wide.units_),
      block_units_(layout_, units_),
      lowest_trained_(wide.lowest_trained_),
      activations_(stage_specs(), recompute_, dtype_, wide.activations_.arena(), lent()),
      blocks_(decoder_blocks(spec_, shape_, wide.shape_.seq, device_, head_.region)) {
  lay_out();
}

ActivationSpecs Model::stage_specs() const {
  ActivationSpecs specs = stage_activations(
      activation_specs(config_, shape_, static_cast<int64_t>(at::elementSize(dtype_)), !device_.is_cpu(),
                       head_.region.shape(), context().shape(), head_.loss.slots()),
      part_);
  for (const Tensor& gradient : lent()) specs.lent.push_back(gradient.defined() ? gradient.numel() : 0);
  return specs;
}

std::vector<Tensor> Model::lent() const {
  std::vector<Tensor> gradients;
  for (int64_t i = 0; device_.is_cpu() && i < layout_.num_blocks; ++i)
    gradients.push_back(units_.lent(block_unit(i)));
  return gradients;
}

void Model::lay_out() {
  if (context().is_shared())
    position_N_ = context().own(at::arange(shape_.seq, at::kInt).repeat({shape_.batch})).to(device_);
  for (const Tensor& d_SD : activations_.model(model_slot::kDStream).unbind(0)) d_streams_.push_back(d_SD);
  for (const StagePart::Chunk& chunk : part_.chunks)
    passing_.emplace_back(static_cast<size_t>(chunk.num_sets));
  newest_sets_.resize(part_.chunks.size());
  for (const Tensor& gradient : lent()) borrows_ |= gradient.defined();
}

Model& Model::at_width(int64_t seq) {
  if (seq == shape_.seq) return *this;
  TYCHO_CHECK(seq > 0 && seq < shape_.seq, "[model] expected sequences of at most {} tokens, got {}",
              shape_.seq, seq);
  std::unique_ptr<Model>& narrow = narrower_[seq];
  if (narrow == nullptr) narrow.reset(new Model(*this, seq));
  return *narrow;
}

Tensor Model::forward_backward(const MicroBatch& micro, const Tensor& weight_1) {
  forward(micro, {});
  if (micro.after_forward) micro.after_forward();
  return backward(micro, weight_1, {});
}

void Model::forward(const MicroBatch& micro, const ActivationSlot& place) {
  TYCHO_CHECK(micro.first || !borrows_, "[model] expected one micro-batch in a step that lends gradients");
  passing(place) = {documents_of(micro.documents_N), micro.dropout_key, /*training=*/true};
  run_chunk(context().own(micro.tokens_N), place);
}

Tensor Model::backward(const MicroBatch& micro, const Tensor& weight_1, const ActivationSlot& place) {
  const bool add = !micro.first && !units_.takes_gradients();
  const StagePart::Chunk& chunk = part_.chunks[place.chunk];
  Tensor loss;
  if (part_.has_head(place.chunk)) {
    const LossTokens tokens = loss_tokens(micro, place);
    loss = head_loss(tokens, weight_1, add, place);
    if (micro.after_losses) micro.after_losses(token_losses(tokens, place));
    reduce(head_unit(), micro.last);
    if (layout_.tied && !part_.is_first()) reduce(0, micro.last);  // reduces the gradient of the table's copy
  }
  for (int64_t i = chunk.end - 1; i >= chunk.begin && trains(block_unit(i)); --i) {
    run_backward(i, add, place);
    block_units_.reduce(i, micro.last);
  }
  if (!part_.has_embedding(place.chunk)) return loss;
  if (trains(0)) embed_backward(context().own(micro.tokens_N), add, place);
  reduce(0, micro.last);
  return loss;
}

void Model::reduce(int unit, bool last) {
  if (has_gradients(units_.grads(unit))) units_.reduce(unit, last);
}

PackedDocuments Model::documents_of(const Tensor& documents_BT) const {
  if (!context().is_shared()) return documents_on(device_, documents_BT, shape_.seq);
  const auto [early, late] = cp_spans(shape_.seq, context().shape());
  PackedDocuments documents =
      documents_on(device_, documents_BT, shape_.seq,
                   std::array<TokenSpan, 2>{{{early.first, early.count}, {late.first, late.count}}});
  documents.position_N = documents.position_N.defined() ? context().own(documents.position_N) : position_N_;
  return documents;
}

Tensor Model::sequence_positions(const at::TensorOptions& options) const {
  return position_N_.defined() ? position_N_ : at::arange(shape_.seq, options).repeat({shape_.batch});
}

LossTokens Model::loss_tokens(const MicroBatch& micro, const ActivationSlot& place) {
  LossTokens tokens = {.targets_N = context().own(micro.targets_N),
                       .weights_N = context().own(micro.weights_N)};
  if (!head_.loss.reads_positions()) return tokens;
  const PackedDocuments& documents = passing(place).documents;
  tokens.positions_N =
      documents.number_N.defined() ? documents.position_N : sequence_positions(tokens.targets_N.options());
  return tokens;
}

TokenLosses Model::token_losses(const LossTokens& tokens, const ActivationSlot& place) {
  const PackedDocuments& documents = passing(place).documents;
  return {.losses_N = activations_.model(model_slot::kLosses).select(0, 0),
          .targets_N = tokens.targets_N,
          .weights_N = tokens.weights_N,
          .positions_N = sequence_positions(tokens.targets_N.options()),
          .document_positions_N = documents.number_N.defined() ? documents.position_N : Tensor()};
}

const Tensor& Model::all_losses(const MicroBatch& batch) {
  Tensor& losses_RN = activations_.model(model_slot::kLosses);
  if (!part_.is_last()) losses_RN.zero_();
  for (size_t c = 0; c < part_.chunks.size(); ++c) {
    const ActivationSlot place = {.chunk = c};
    passing(place) = {documents_of(batch.documents_N)};
    Tensor input_SD = input(place);
    stage_.receive_input(c, input_SD);
    run_chunk(context().own(batch.tokens_N), place);
    stage_.send_output(c, output(place));
    if (!part_.has_head(c)) continue;
    const AcquiredHead head(units_, spec_, Pass::kForward);
    head_losses(head_, head.params(), output(place), loss_tokens(batch, place), activations_);
  }
  return losses_RN;
}

Tensor Model::stream(int64_t i) {
  size_t c = 0;
  const auto ends_here = [&](const StagePart::Chunk& chunk) {
    return chunk.end == i && i == layout_.num_blocks;
  };
  while (!part_.chunks[c].has(i) && !ends_here(part_.chunks[c])) ++c;
  return stream_at({.chunk = c, .set = newest_sets_[c]}, i);
}

Tensor Model::row(const ActivationSlot& place, int64_t i) {
  const int64_t of_set = place.set * (part_.chunks[place.chunk].size() + 1);
  return activations_.model(model_slot::kStream).select(0, part_.first_row(place.chunk) + of_set + i);
}

BlockActivations Model::block_activations(int64_t i, const ActivationSlot& place) {
  const Passing& pass = passing(place);
  const DropoutSource dropout = {.p = pass.training ? spec_.residual.dropout : 0.0,
                                 .attn_p = pass.training ? spec_.attention.dropout : 0.0,
                                 .key = pass.dropout_key + static_cast<uint64_t>(i + 1) * 0x9e3779b97f4a7c15u,
                                 .adapter_p = pass.training ? spec_.lora.dropout : 0.0};
  const BlockSpec& block = spec_.block(i);
  return activations_.block(i, place.set, block, stream_at(place, block.x_block), dropout, pass.documents);
}

void Model::run_chunk(const Tensor& tokens_N, const ActivationSlot& place) {
  const StagePart::Chunk& chunk = part_.chunks[place.chunk];
  newest_sets_[place.chunk] = place.set;
  if (part_.has_embedding(place.chunk)) embed(tokens_N, place);
  for (int64_t i = chunk.begin; i < chunk.end; ++i) run_forward(i, place);
}

void Model::embed(const Tensor& tokens_N, const ActivationSlot& place) {
  const Range range("embedding forward");
  Tensor x_SD = input(place);
  const Views& unit = units_.acquire(0, Pass::kForward);
  const LearnedPositions positions = positions_of(spec_, unit, shape_.seq, context());
  if (head_.region.is_shared()) {
    Tensor& share_ND = head_.region.share(x_SD, activations_.scratch(block_scratch::kPartial));
    embed_own(tokens_N, spec_.first_vocab, unit[embedding_param::kTable], positions, share_ND);
    head_.region.leave(share_ND, x_SD);
  } else {
    embedding(tokens_N, unit[embedding_param::kTable], x_SD, positions);
  }
  if (const double scale = embedding_scale(spec_, dtype_); scale != 1) x_SD.mul_(scale);
  if (passing(place).training && spec_.embedding.dropout > 0)
    drop_tokens(head_.region, embedding_dropout(place), DropoutSite::kEmbedding, x_SD, Tensor(), x_SD);
  units_.release(0, Pass::kForward);
}

void Model::run_forward(int64_t i, const ActivationSlot& place) {
  const Range range("block ", i, " forward");
  const Views& params = block_units_.acquire(i, Pass::kForward);
  Tensor y_ND = stream_at(place, i + 1);
  activations_.give_back(i, place.set);  // of a pass that had no backward
  block(i).forward(params, stream_at(place, i), block_activations(i, place), y_ND);
  if (!passing(place).training || recompute_.of(i) == Recompute::kFull) activations_.give_back(i, place.set);
  block_units_.release(i, Pass::kForward);
}

void Model::run_backward(int64_t i, bool add, const ActivationSlot& place) {
  const Views& params = block_units_.acquire(i, Pass::kBackward);
  const Tensor x_SD = stream_at(place, i);
  if (recompute_.of(i) != Recompute::kNone) {
    const Range range("block ", i, " recompute");
    block(i).recompute(recompute_.of(i), params, x_SD, block_activations(i, place));
  }
  const Range range("block ", i, " backward");
  block(i).backward(params, x_SD, block_activations(i, place), block_units_.grads(i), add, gradient(place));
  activations_.give_back(i, place.set);
  block_units_.release(i, Pass::kBackward);
}

Tensor Model::head_loss(const LossTokens& tokens, const Tensor& weight_1, bool add,
                        const ActivationSlot& place) {
  const Range range("head forward and backward");
  const AcquiredHead head(units_, spec_, Pass::kBackward);
  // The copy of a tied table is in a unit with positions, whose gradient is computed on the stage with the
  // tokens.
  if (layout_.tied && !part_.is_first() && spec_.positions.learned > 0 && !add)
    if (Tensor& positions = units_.grads(0)[embedding_param::kPositions]; positions.defined())
      positions.zero_();
  head_forward_backward(head_, head.params(), output(place), tokens, weight_1, activations_, head.grads(),
                        add, gradient(place));
  return sums_of(activations_.model(model_slot::kLosses));
}

void Model::embed_backward(const Tensor& tokens_N, bool add, const ActivationSlot& place) {
  const Range range("embedding backward");
  Tensor& d_SD = gradient(place);
  if (spec_.embedding.dropout > 0)
    drop_tokens(head_.region, embedding_dropout(place), DropoutSite::kEmbedding, d_SD, Tensor(), d_SD);
  const double factor = spec_.embedding.fraction * embedding_scale(spec_, dtype_);
  if (factor != 1) d_SD.mul_(factor);
  Tensor d_ND = head_.region.enter(d_SD, activations_.scratch(block_scratch::kAllTokens));
  Views& grads = units_.grads(0);
  if (spec_.positions.learned > 0 && grads[embedding_param::kPositions].defined())
    learned_gradient(context(), d_ND, shape_.seq, grads[embedding_param::kPositions], add);
  Tensor& d_table_VD = grads[embedding_param::kTable];
  if (!d_table_VD.defined()) return;
  // Only rows of tokens that occur are written, so the first micro-batch clears the table; a tied table
  // already has the gradient of its head, if that is on the same stage.
  if (!add && !(layout_.tied && part_.is_last())) d_table_VD.zero_();
  if (head_.region.is_shared())
    embed_own_backward(tokens_N, spec_.first_vocab, d_ND, d_table_VD);
  else
    embedding_backward(tokens_N, d_ND, d_table_VD);
}

}  // namespace tycho
