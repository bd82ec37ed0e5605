// Llama's block: norm, attention, norm, SwiGLU, each around the residual stream.
#include "trainer/models/llama_block.h"

#include "trainer/kernels/rms_norm.h"
#include "trainer/layout/llama_layout.h"
#include "trainer/models/swiglu_mlp.h"

namespace tycho {
namespace {

namespace param = llama_param;
namespace saved = llama_saved;
namespace scratch = llama_scratch;

}  // namespace

LlamaBlock::LlamaBlock(const LlamaConfig& config, BatchShape shape, const at::Device& device)
    : norm_eps_(config.norm_eps),
      attention_({shape.batch, shape.seq, config.heads, config.num_kv_heads(), config.head_dim()},
                 config.rope_theta, device) {}

void LlamaBlock::forward(const Views& p, const Tensor& x_ND, BlockActivations act, Tensor& y_ND) const {
  Views& keep = act.saved;
  rms_norm(x_ND, p[param::kInputNorm], norm_eps_, keep[saved::kNormedAttention],
           keep[saved::kInvRmsAttention]);
  attention_.forward({p[param::kQkv], p[param::kO]}, keep[saved::kNormedAttention], x_ND, keep[saved::kQkv],
                     {keep[saved::kAttention], keep[saved::kLogSumExp], act.attention_state},
                     keep[saved::kMiddle]);
  rms_norm(keep[saved::kMiddle], p[param::kPostNorm], norm_eps_, keep[saved::kNormedMlp],
           keep[saved::kInvRmsMlp]);
  SwigluMlp::forward({p[param::kGateUp], p[param::kDown]}, keep[saved::kNormedMlp], keep[saved::kMiddle],
                     keep[saved::kGateUp], act.scratch[scratch::kHidden], y_ND);
}

void LlamaBlock::backward(const Views& p, const Tensor& x_ND, BlockActivations act, Views& g, bool add,
                          Tensor& d_ND) const {
  Views& keep = act.saved;
  Views& temp = act.scratch;
  Tensor& d_normed_ND = temp[scratch::kDNormed];
  SwigluMlp::backward({p[param::kGateUp], p[param::kDown]}, keep[saved::kNormedMlp], keep[saved::kGateUp],
                      d_ND, {g[param::kGateUp], g[param::kDown]}, add,
                      {temp[scratch::kHidden], temp[scratch::kDHidden]}, d_normed_ND);
  // The residual path adds: d becomes the gradient of the stream between attention and feed-forward, then of
  // x.
  rms_norm_backward(keep[saved::kMiddle], p[param::kPostNorm], keep[saved::kInvRmsMlp], d_normed_ND, d_ND,
                    /*add_to_dx=*/true, g[param::kPostNorm], add);
  attention_.backward({p[param::kQkv], p[param::kO]}, keep[saved::kNormedAttention], keep[saved::kQkv],
                      {keep[saved::kAttention], keep[saved::kLogSumExp], act.attention_state}, d_ND,
                      {g[param::kQkv], g[param::kO]}, add, {temp[scratch::kDQkv], temp[scratch::kDAttention]},
                      d_normed_ND);
  rms_norm_backward(x_ND, p[param::kInputNorm], keep[saved::kInvRmsAttention], d_normed_ND, d_ND,
                    /*add_to_dx=*/true, g[param::kInputNorm], add);
}

Tensor LlamaBlock::forward_cached(const Views& p, const Tensor& x_ND, KvCache& cache, int64_t layer) const {
  const int64_t num_tokens = x_ND.size(0);
  Tensor normed_ND = at::empty_like(x_ND);
  Tensor inv_rms_N = at::empty({num_tokens}, x_ND.options().dtype(at::kFloat));
  rms_norm(x_ND, p[param::kInputNorm], norm_eps_, normed_ND, inv_rms_N);
  const Tensor middle_ND =
      attention_.forward_cached({p[param::kQkv], p[param::kO]}, normed_ND, x_ND, cache, layer);
  rms_norm(middle_ND, p[param::kPostNorm], norm_eps_, normed_ND, inv_rms_N);
  Tensor gate_up_N2F = at::empty({num_tokens, p[param::kGateUp].size(0)}, x_ND.options());
  Tensor hidden_NF = at::empty({num_tokens, p[param::kDown].size(1)}, x_ND.options());
  Tensor y_ND = at::empty_like(x_ND);
  SwigluMlp::forward({p[param::kGateUp], p[param::kDown]}, normed_ND, middle_ND, gate_up_N2F, hidden_NF,
                     y_ND);
  return y_ND;
}

std::unique_ptr<Block> make_block(const ModelConfig& config, BatchShape shape, const at::Device& device) {
  return std::visit(
      [&](const LlamaConfig& llama) -> std::unique_ptr<Block> {
        return std::make_unique<LlamaBlock>(llama, shape, device);
      },
      config.value);
}

}  // namespace tycho
