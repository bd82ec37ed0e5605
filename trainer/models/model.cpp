// The loop over units: embedding, blocks, head, and back.
#include "trainer/models/model.h"

#include "trainer/base/error.h"
#include "trainer/kernels/embedding.h"

namespace tycho {
namespace {

double final_norm_eps(const ModelConfig& config) {
  return std::visit([](const auto& family) { return family.norm_eps; }, config.value);
}

// The head's parameters; a tied one multiplies by the embedding's table.
HeadParams head_params(const ModelLayout& layout, const Views& head, const Views& embedding) {
  return {head[0], layout.tied ? embedding[0] : head[1]};
}

}  // namespace

Model::Model(const ModelConfig& config, UnitStore& units, BatchShape shape, at::ScalarType dtype,
             const at::Device& device)
    : layout_(model_layout(config)),
      norm_eps_(final_norm_eps(config)),
      units_(units),
      activations_(activation_specs(config, shape, static_cast<int64_t>(at::elementSize(dtype))),
                   layout_.num_blocks, dtype, device),
      block_(make_block(config, shape, device)) {}

Tensor Model::forward_backward(const MicroBatch& micro, const Tensor& weight_1) {
  const bool add = !micro.first;
  embed(micro.tokens_N);
  for (int64_t i = 0; i < layout_.num_blocks; ++i) run_forward(i);
  Tensor loss = head_loss(micro.targets_N, weight_1, add);
  if (micro.last) units_.reduce(head_unit());
  for (int64_t i = layout_.num_blocks - 1; i >= 0; --i) {
    run_backward(i, add);
    if (micro.last) units_.reduce(block_unit(i));
  }
  embed_backward(micro.tokens_N, add);
  if (micro.last) units_.reduce(0);
  return loss;
}

void Model::embed(const Tensor& tokens_N) {
  Tensor x_ND = stream(0);
  embedding(tokens_N, units_.acquire(0, Pass::kForward)[0], x_ND);
  units_.release(0, Pass::kForward);
}

void Model::run_forward(int64_t i) {
  const Views& params = units_.acquire(block_unit(i), Pass::kForward);
  Tensor y_ND = stream(i + 1);
  block_->forward(params, stream(i), activations_.block(i), y_ND);
  units_.release(block_unit(i), Pass::kForward);
}

void Model::run_backward(int64_t i, bool add) {
  const Views& params = units_.acquire(block_unit(i), Pass::kBackward);
  block_->backward(params, stream(i), activations_.block(i), units_.grads(block_unit(i)), add,
                   activations_.model(model_slot::kDStream));
  units_.release(block_unit(i), Pass::kBackward);
}

Tensor Model::head_loss(const Tensor& targets_N, const Tensor& weight_1, bool add) {
  const Views& head = units_.acquire(head_unit(), Pass::kBackward);
  const Views& table = units_.acquire(0, Pass::kBackward);
  Views& head_grads = units_.grads(head_unit());
  HeadGrads grads = {head_grads[0], layout_.tied ? units_.grads(0)[0] : head_grads[1]};
  head_forward_backward(head_params(layout_, head, table), stream(layout_.num_blocks), targets_N, weight_1,
                        norm_eps_, activations_, grads, add, activations_.model(model_slot::kDStream));
  units_.release(0, Pass::kBackward);
  units_.release(head_unit(), Pass::kBackward);
  return activations_.model(model_slot::kLosses).sum(at::kDouble);
}

void Model::embed_backward(const Tensor& tokens_N, bool add) {
  Tensor& d_table_VD = units_.grads(0)[0];
  // Only rows of tokens that occur are written, so the first micro-batch clears; a tied table has its head's
  // gradient already.
  if (!add && !layout_.tied) d_table_VD.zero_();
  embedding_backward(tokens_N, activations_.model(model_slot::kDStream), d_table_VD);
}

Decoder::Decoder(const ModelConfig& config, UnitStore& units, int64_t batch, int64_t num_positions,
                 at::ScalarType dtype, const at::Device& device)
    : layout_(model_layout(config)),
      norm_eps_(final_norm_eps(config)),
      units_(units),
      batch_(batch),
      num_positions_(num_positions),
      block_(make_block(config, {batch, num_positions}, device)) {
  const int64_t kv_heads = std::visit([](const auto& family) { return family.num_kv_heads(); }, config.value);
  const int64_t head_dim = std::visit([](const auto& family) { return family.head_dim(); }, config.value);
  const auto options = at::TensorOptions().dtype(dtype).device(device);
  for (int64_t i = 0; i < layout_.num_blocks; ++i) {
    cache_.keys.push_back(at::zeros({batch, num_positions, kv_heads, head_dim}, options));
    cache_.values.push_back(at::zeros({batch, num_positions, kv_heads, head_dim}, options));
  }
}

Tensor Decoder::next_logits(const Tensor& tokens_N) {
  const int64_t seq = tokens_N.numel() / batch_;
  TYCHO_CHECK(cache_.length + seq <= num_positions_,
              "[decoder] wanted room for {} more tokens after {}, the cache has {}", seq, cache_.length,
              num_positions_);
  const Views& table = units_.acquire(0, Pass::kForward);
  Tensor x_ND = at::empty({tokens_N.numel(), layout_.width}, table[0].options());
  embedding(tokens_N, table[0], x_ND);
  for (int64_t i = 0; i < layout_.num_blocks; ++i) {
    const int unit = static_cast<int>(i) + 1;
    x_ND = block_->forward_cached(units_.acquire(unit, Pass::kForward), x_ND, cache_, i);
    units_.release(unit, Pass::kForward);
  }
  cache_.length += seq;
  const int head_unit = static_cast<int>(layout_.num_blocks) + 1;
  const Views& head = units_.acquire(head_unit, Pass::kForward);
  Tensor logits_BV = head_last_logits(head_params(layout_, head, table), x_ND, batch_, norm_eps_);
  units_.release(head_unit, Pass::kForward);
  units_.release(0, Pass::kForward);
  return logits_BV;
}

}  // namespace tycho
