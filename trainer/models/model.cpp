// The loop over units: embedding, blocks, head, and back.
#include "trainer/models/model.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <algorithm>

#include "trainer/base/error.h"
#include "trainer/kernels/embedding.h"
#include "trainer/models/residual.h"
#include "trainer/models/shared_vocabulary.h"
#include "trainer/profiler/range.h"

namespace tycho {
namespace {

/// Keeps the head's parameters acquired while it lives, and the embedding's when a tied head multiplies by
/// its table.
class AcquiredHead {
 public:
  AcquiredHead(UnitStore& units, const DecoderSpec& spec, Pass pass)
      : units_(units),
        unit_(static_cast<int>(spec.layers) + 1),
        at_(head_params(spec)),
        pass_(pass),
        head_(units.acquire(unit_, pass)) {
    if (tied()) table_ = &units.acquire(0, pass);
  }
  ~AcquiredHead() {
    if (tied()) units_.release(0, pass_);
    units_.release(unit_, pass_);
  }
  AcquiredHead(const AcquiredHead&) = delete;
  AcquiredHead& operator=(const AcquiredHead&) = delete;

  HeadParams params() const {
    return {{head_[0], view(head_, at_.norm_bias)},
            tied() ? (*table_)[embedding_param::kTable] : view(head_, at_.output)};
  }
  HeadGrads grads() const {
    Views& own = units_.grads(unit_);
    return {{own[0], view(own, at_.norm_bias)},
            tied() ? units_.grads(0)[embedding_param::kTable] : view(own, at_.output)};
  }

 private:
  bool tied() const { return at_.output < 0; }

  UnitStore& units_;
  int unit_;
  HeadParamIndex at_;
  Pass pass_;
  const Views& head_;
  const Views* table_ = nullptr;
};

constexpr int64_t kChosenAtOnce = 512;  // rows of logits that DecoderLook::chosen gets

/// Where learned positions come from, for sequences of `seq` tokens; none for other families.
LearnedPositions positions_of(const DecoderSpec& spec, const Views& embedding, int64_t seq,
                              int64_t first_position) {
  if (spec.learned_positions == 0) return {};
  return {embedding[embedding_param::kPositions], seq, first_position};
}

/// The same for the tokens that ranks along cp leave this one.
LearnedPositions positions_of(const DecoderSpec& spec, const Views& embedding, int64_t seq,
                              const ContextRegion& context) {
  if (spec.learned_positions == 0 || !context.is_shared()) return positions_of(spec, embedding, seq, 0);
  return {context.own_rows(embedding[embedding_param::kPositions]), seq / context.shape().size, 0};
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
             const at::Device& device, const RecomputeConfig& recompute, const ParallelRegion& region)
    : spec_(tp_spec(decoder_spec(config), region.shape())),
      layout_(model_layout(config)),
      shape_(shape),
      device_(device),
      recompute_(recompute),
      head_(spec_, region),
      units_(units),
      block_units_(layout_, units),
      activations_(activation_specs(config, shape, static_cast<int64_t>(at::elementSize(dtype)),
                                    !device.is_cpu(), region.shape(), region.context().shape().size),
                   recompute, dtype, device),
      blocks_(decoder_blocks(spec_, shape, device, region)) {
  if (context().is_shared())
    position_N_ = context().own(at::arange(shape.seq, at::kInt).repeat({shape.batch})).to(device);
  if (has_gradients(units_.grads(0))) return;
  lowest_trained_ = 1;
  while (lowest_trained_ < head_unit() && !block_units_.has_gradients(lowest_trained_ - 1)) ++lowest_trained_;
}

Tensor Model::forward_backward(const MicroBatch& micro, const Tensor& weight_1) {
  const bool add = !micro.first;
  const Tensor tokens_N = context().own(micro.tokens_N);
  take_documents(micro.documents_N);
  dropout_key_ = micro.dropout_key;
  dropping_ = true;
  embed(tokens_N);
  for (int64_t i = 0; i < layout_.num_blocks; ++i) run_forward(i);
  if (micro.after_forward) micro.after_forward();
  Tensor loss = head_loss(context().own(micro.targets_N), weight_1, add);
  reduce(head_unit(), micro.last);
  for (int64_t i = layout_.num_blocks - 1; i >= 0 && trains(block_unit(i)); --i) {
    run_backward(i, add);
    block_units_.reduce(i, micro.last);
  }
  if (trains(0)) embed_backward(tokens_N, add);
  reduce(0, micro.last);
  return loss;
}

void Model::reduce(int unit, bool last) {
  if (has_gradients(units_.grads(unit))) units_.reduce(unit, last);
}

void Model::take_documents(const Tensor& documents_BT) {
  documents_ = documents_on(device_, documents_BT, shape_.seq);
  if (!context().is_shared()) return;
  documents_.position_N =
      documents_.position_N.defined() ? context().own(documents_.position_N) : position_N_;
}

const Tensor& Model::losses(const Tensor& tokens_N, const Tensor& targets_N, const Tensor& documents_N) {
  take_documents(documents_N);
  dropping_ = false;
  embed(context().own(tokens_N));
  for (int64_t i = 0; i < layout_.num_blocks; ++i) run_forward(i);
  const AcquiredHead head(units_, spec_, Pass::kForward);
  head_losses(head_, head.params(), stream(layout_.num_blocks), context().own(targets_N), activations_);
  return activations_.model(model_slot::kLosses);
}

BlockActivations Model::block_activations(int64_t i) {
  const DropoutSource dropout = {.p = dropping_ ? spec_.resid_dropout : 0.0,
                                 .attn_p = dropping_ ? spec_.attn_dropout : 0.0,
                                 .key = dropout_key_ + static_cast<uint64_t>(i + 1) * 0x9e3779b97f4a7c15u,
                                 .adapter_p = dropping_ ? spec_.lora.dropout : 0.0};
  const BlockSpec& block = spec_.block(i);
  return activations_.block(i, block, stream(block.x_block), dropout, documents_);
}

void Model::embed(const Tensor& tokens_N) {
  const Range range("embedding forward");
  Tensor x_SD = stream(0);
  const Views& unit = units_.acquire(0, Pass::kForward);
  const LearnedPositions positions = positions_of(spec_, unit, shape_.seq, context());
  if (head_.region.is_shared()) {
    Tensor& share_ND = head_.region.share(x_SD, activations_.scratch(block_scratch::kPartial));
    embed_own(tokens_N, spec_.first_vocab, unit[embedding_param::kTable], positions, share_ND);
    head_.region.leave(share_ND, x_SD);
  } else {
    embedding(tokens_N, unit[embedding_param::kTable], x_SD, positions);
  }
  if (dropping_ && spec_.embedding_dropout > 0)
    drop_tokens(head_.region, embedding_dropout(), DropoutSite::kEmbedding, x_SD, Tensor(), x_SD);
  units_.release(0, Pass::kForward);
}

void Model::run_forward(int64_t i) {
  const Range range("block ", i, " forward");
  const Views& params = block_units_.acquire(i, Pass::kForward);
  Tensor y_ND = stream(i + 1);
  block(i).forward(params, stream(i), block_activations(i), y_ND);
  block_units_.release(i, Pass::kForward);
}

void Model::run_backward(int64_t i, bool add) {
  const Views& params = block_units_.acquire(i, Pass::kBackward);
  if (recompute_.of(i) != Recompute::kNone) {
    const Range range("block ", i, " recompute");
    block(i).recompute(recompute_.of(i), params, stream(i), block_activations(i));
  }
  const Range range("block ", i, " backward");
  block(i).backward(params, stream(i), block_activations(i), block_units_.grads(i), add,
                    activations_.model(model_slot::kDStream));
  block_units_.release(i, Pass::kBackward);
}

Tensor Model::head_loss(const Tensor& targets_N, const Tensor& weight_1, bool add) {
  const Range range("head forward and backward");
  const AcquiredHead head(units_, spec_, Pass::kBackward);
  head_forward_backward(head_, head.params(), stream(layout_.num_blocks), targets_N, weight_1, activations_,
                        head.grads(), add, activations_.model(model_slot::kDStream));
  return activations_.model(model_slot::kLosses).sum(at::kDouble);
}

void Model::embed_backward(const Tensor& tokens_N, bool add) {
  const Range range("embedding backward");
  Tensor& d_SD = activations_.model(model_slot::kDStream);
  if (spec_.embedding_dropout > 0)
    drop_tokens(head_.region, embedding_dropout(), DropoutSite::kEmbedding, d_SD, Tensor(), d_SD);
  if (spec_.embedding_fraction < 1) d_SD.mul_(spec_.embedding_fraction);
  Tensor d_ND = head_.region.enter(d_SD, activations_.scratch(block_scratch::kAllTokens));
  Views& grads = units_.grads(0);
  if (spec_.learned_positions > 0 && grads[embedding_param::kPositions].defined())
    learned_gradient(context(), d_ND, shape_.seq, grads[embedding_param::kPositions], add);
  Tensor& d_table_VD = grads[embedding_param::kTable];
  if (!d_table_VD.defined()) return;
  // Only rows of tokens that occur are written, so the first micro-batch clears; a tied table has its head's
  // gradient already.
  if (!add && !layout_.tied) d_table_VD.zero_();
  if (head_.region.is_shared())
    embed_own_backward(tokens_N, spec_.first_vocab, d_ND, d_table_VD);
  else
    embedding_backward(tokens_N, d_ND, d_table_VD);
}

Decoder::Decoder(const ModelConfig& config, UnitStore& units, int64_t batch, int64_t num_positions,
                 at::ScalarType dtype, const at::Device& device, const ParallelRegion& region)
    : spec_(tp_spec(decoder_spec(config), region.shape())),
      layout_(model_layout(config)),
      head_(spec_, region.of_whole_sequences()),
      units_(units),
      block_units_(layout_, units),
      batch_(batch),
      num_positions_(num_positions),
      blocks_(decoder_blocks(spec_, {batch, num_positions}, device, head_.region)) {
  TYCHO_CHECK(
      spec_.learned_positions == 0 || num_positions <= spec_.learned_positions,
      "[decoder] wanted at most the {} positions of the model's table, got {}: shorten the prompt or ask for "
      "fewer tokens",
      spec_.learned_positions, num_positions);
  const auto options = at::TensorOptions().dtype(device.is_cpu() ? at::kFloat : dtype).device(device);
  cache_.keys.resize(blocks_.size()), cache_.values.resize(blocks_.size());
  for (int64_t i = 0; i < layout_.num_blocks; ++i) {
    if (spec_.reuses_kv(i)) continue;
    for (std::vector<Tensor>* side : {&cache_.keys, &cache_.values})
      (*side)[static_cast<size_t>(i)] =
          at::empty({batch, spec_.kv_heads, num_positions, spec_.head_dim}, options);
  }
}

Tensor Decoder::next_logits(const Tensor& tokens_N, const DecoderLook& look) {
  const int64_t seq = tokens_N.numel() / batch_;
  TYCHO_CHECK(cache_.length + seq <= num_positions_,
              "[decoder] wanted room for {} more tokens after {}, the cache has {}", seq, cache_.length,
              num_positions_);
  const Views& table = units_.acquire(0, Pass::kForward);
  Tensor x_ND = at::empty({tokens_N.numel(), layout_.width}, table[0].options());
  const LearnedPositions positions = positions_of(spec_, table, seq, cache_.length);
  if (head_.region.is_shared()) {
    embed_own(tokens_N, spec_.first_vocab, table[embedding_param::kTable], positions, x_ND);
    head_.region.leave(x_ND, x_ND);
  } else {
    embedding(tokens_N, table[embedding_param::kTable], x_ND, positions);
  }
  units_.release(0, Pass::kForward);
  std::vector<Tensor> inputs;  // of the blocks, while later ones may project from them
  for (int64_t i = 0; i < layout_.num_blocks; ++i) {
    const DecoderBlock& block = blocks_[static_cast<size_t>(i)];
    inputs.push_back(spec_.shares_x() ? x_ND : Tensor());
    if (look.streams != nullptr) look.streams->push_back(x_ND.clone());
    x_ND = block.forward_cached(block_units_.acquire(i, Pass::kForward), x_ND,
                                inputs[static_cast<size_t>(spec_.block(i).x_block)], cache_);
    block_units_.release(i, Pass::kForward);
  }
  if (look.streams != nullptr) look.streams->push_back(x_ND.clone());
  cache_.length += seq;
  const AcquiredHead head(units_, spec_, Pass::kForward);
  if (look.rows_R.defined()) {
    for (int64_t begin = 0; begin < look.rows_R.numel(); begin += kChosenAtOnce) {
      const int64_t rows = std::min(kChosenAtOnce, look.rows_R.numel() - begin);
      look.chosen(head_last_logits(head_, head.params(),
                                   x_ND.index_select(0, look.rows_R.narrow(0, begin, rows)), rows,
                                   layout_.vocab_size));
    }
    return {};
  }
  // Every position is the last one of a sequence of its own.
  const int64_t num_sequences = look.every_position ? tokens_N.numel() : batch_;
  return head_last_logits(head_, head.params(), x_ND, num_sequences, layout_.vocab_size);
}

}  // namespace tycho
