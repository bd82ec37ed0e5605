// ATen checks what cuDNN can compute only where it chooses a kernel itself, so cudnn_obstacle repeats these
// checks (sdp_utils.cpp of LibTorch 2.11) for our call. cuDNN takes fewer key heads than query heads.
#include "trainer/kernels/attention/cudnn_attention.h"

#include <ATen/ops/_scaled_dot_product_cudnn_attention.h>
#include <ATen/ops/_scaled_dot_product_cudnn_attention_backward.h>

#include "trainer/base/error.h"
#include "trainer/kernels/attention/attention_case.h"
#include "trainer/kernels/attention/pack_gradients.h"

namespace tycho {
namespace {

void check_cudnn(const char* op, const AttentionShape& s, const ScoreRules& rules, const Tensor& q_NE) {
  const char* obstacle = cudnn_obstacle(q_NE.scalar_type(), s, rules);
  TYCHO_CHECK(obstacle == nullptr, "[{}] cuDNN's attention cannot compute this: {}", op, obstacle);
}

/// Views [B, heads, T, d] of rows.
struct HeadViews {
  Tensor q, k, v;
};
Tensor by_head(const AttentionShape& s, const Tensor& x_NE, int64_t first, int64_t heads) {
  return x_NE.view({s.batch, s.seq, -1, s.head_dim}).narrow(2, first, heads).transpose(1, 2);
}
HeadViews head_views(const AttentionShape& s, const AttentionRows& rows) {
  return {by_head(s, rows.q_NE, 0, s.heads), by_head(s, rows.kv, 0, s.kv_heads),
          by_head(s, rows.kv, s.kv_heads, s.kv_heads)};
}

/// Number of tensors that a call keeps for its backward: log-sum-exp [B, H, T, 1], and two of dropout's.
constexpr size_t kCudnnStates = 3;

}  // namespace

const char* cudnn_obstacle(at::ScalarType type, const AttentionShape& s, const ScoreRules& rules) {
  return cudnn_obstacle(attention_case(type, s, rules));
}

std::vector<Tensor> cudnn_attention(const AttentionShape& s, const ScoreRules& rules,
                                    const AttentionRows& rows, Tensor& out_NE) {
  check_cudnn("attention", s, rules, rows.q_NE);
  const HeadViews in = head_views(s, rows);
  const auto result = at::_scaled_dot_product_cudnn_attention(
      in.q, in.k, in.v, /*attn_bias=*/std::nullopt, /*compute_log_sumexp=*/true, /*dropout_p=*/0.0,
      /*is_causal=*/true, /*return_debug_mask=*/false, rules.scale);
  // By token, where both are contiguous.
  const Tensor result_BTHd = std::get<0>(result).transpose(1, 2);
  if (out_NE.defined())
    out_NE.view(result_BTHd.sizes()).copy_(result_BTHd);
  else
    out_NE = result_BTHd.reshape({s.batch * s.seq, s.heads * s.head_dim});
  return {std::get<1>(result), std::get<6>(result), std::get<7>(result)};
}

void cudnn_attention_backward(const AttentionShape& s, const ScoreRules& rules, const AttentionRows& rows,
                              const Tensor& out_NE, const std::vector<Tensor>& state, const Tensor& dout_NE,
                              const AttentionRows& gradients, const RopeTables& rotation) {
  check_cudnn("attention_backward", s, rules, rows.q_NE);
  TYCHO_CHECK(state.size() == kCudnnStates,
              "[attention_backward] expected the state of a forward pass, {} tensors, got {}", kCudnnStates,
              state.size());
  const HeadViews in = head_views(s, rows);
  const auto [dq, dk, dv] = at::_scaled_dot_product_cudnn_attention_backward(
      by_head(s, dout_NE, 0, s.heads), in.q, in.k, in.v, by_head(s, out_NE, 0, s.heads), state[0], state[1],
      state[2], /*attn_bias=*/{}, /*cum_seq_q=*/{}, /*cum_seq_k=*/{}, s.seq, s.seq, /*dropout_p=*/0.0,
      /*is_causal=*/true, rules.scale);
  pack_gradients(s, dq.transpose(1, 2), dk.transpose(1, 2), dv.transpose(1, 2), rotation, gradients);
}

}  // namespace tycho
