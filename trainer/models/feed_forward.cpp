// Recomputes the activation in backward, which is cheaper than keeping it.
#include "trainer/models/feed_forward.h"
#include "trainer/layout/decoder_slots.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include "trainer/kernels/activation.h"
#include "trainer/kernels/matmul.h"

namespace tycho {

FeedForward::FeedForward(const DecoderSpec& spec, int64_t block, const ParallelRegion& region)
    : region_(region),
      at_(block_params(spec, block)),
      activation_(spec.ffn.activation),
      defined_(activation_.is_defined()
                   ? std::make_shared<const DefinedActivation>(activation_.expression, spec.ffn.gated)
                   : nullptr),
      gated_(spec.ffn.gated),
      in_out_(spec.in_out),
      ffn_width_(spec.ffn.width),
      end_(spec, at_, DropoutSite::kFeedForward, region) {}

void FeedForward::activate(const Views& p, const Tensor& up, Tensor& hidden_NF) const {
  if (defined_) return defined_->forward(up, hidden_NF);
  const Activation f = activation_.builtin;
  if (gated_) return gated_activation(f, up, hidden_NF);
  fuses_bias() ? bias_activation(f, p[at_.up_bias], up, hidden_NF) : activation(f, up, hidden_NF);
}

void FeedForward::activate_backward(const Views& p, Tensor& up, Tensor& d_hidden_NF, Tensor& hidden_NF,
                                    Views& g, bool add) const {
  if (defined_) return defined_->backward(up, d_hidden_NF, hidden_NF);
  const Activation f = activation_.builtin;
  if (gated_) return gated_activation_backward(f, up, d_hidden_NF, /*dgate_up_N2F=*/up, hidden_NF);
  fuses_bias() ? bias_activation_backward(f, p[at_.up_bias], up, d_hidden_NF, /*dx=*/up, hidden_NF,
                                          g[at_.up_bias], add)
               : activation_backward(f, up, d_hidden_NF, /*dx=*/up, hidden_NF);
}

bool FeedForward::fuses_gelu(const Views& p, BlockActivations act) const {
  if (gated_ || defined_ || activation_.builtin != Activation::kGeluTanh) return false;
  if (!act.saved[block_saved::kUp].is_cuda() || !gpu_library_multiplies()) return false;
  const auto is_plain = [](const LinearParams& layer) { return !layer.fp8 && !layer.adapters.any(); };
  return is_plain(up(p, act)) && is_plain(down(p, act));
}

void FeedForward::forward_up(const Views& p, const BranchInput& input, BlockActivations act) const {
  const Tensor& x_ND = region_.enter(input.x_SD, act.scratch[block_scratch::kAllTokens]);
  Tensor& up_NF = act.saved[block_saved::kUp];
  if (fuses_gelu(p, act))
    return matmul_gelu(gelu_layer(p, at_.up_weight, at_.up_bias), x_ND, up_NF,
                       act.scratch[block_scratch::kHidden]);
  LinearParams layer = up(p, act);
  layer.fp8.x = input.fp8();
  linear(layer, x_ND, up_NF);
}

std::optional<Fp8Matrix> FeedForward::activate_for(const LinearParams& down, const Views& p,
                                                   BlockActivations act) const {
  Tensor &up_NF = act.saved[block_saved::kUp], &hidden_NF = act.scratch[block_scratch::kHidden], none;
  if (fuses_gelu(p, act)) return std::nullopt;  // computed along with the product
  std::optional<RowCast> cast = defined_ ? std::nullopt : input_cast(down.fp8, hidden_NF);
  if (!cast) {
    activate(p, up_NF, hidden_NF);
    return std::nullopt;
  }
  const bool only_codes = cast->is_made() && !down.adapters.any();
  activation_with_cast(activation_.builtin, gated_, view(p, fuses_bias() ? at_.up_bias : -1), up_NF,
                       only_codes ? none : hidden_NF, *cast);
  return cast->finish(hidden_NF);
}

void FeedForward::forward(const Views& p, const BranchInput& input, const Tensor& residual_SD,
                          BlockActivations act, Tensor& y_SD) const {
  forward_up(p, input, act);
  LinearParams layer = down(p, act);
  const std::optional<Fp8Matrix> in_fp8 = activate_for(layer, p, act);
  layer.fp8.x = in_fp8 ? &*in_fp8 : nullptr;
  end_.forward(p, layer, act.scratch[block_scratch::kHidden], residual_SD, act, y_SD, /*next=*/nullptr);
}

void FeedForward::recompute(const Views& p, const BranchInput& input, BlockActivations act,
                            bool whole) const {
  forward_up(p, input, act);
  if (!whole || !end_.keeps_output()) return;
  LinearParams layer = down(p, act);
  const std::optional<Fp8Matrix> in_fp8 = activate_for(layer, p, act);
  layer.fp8.x = in_fp8 ? &*in_fp8 : nullptr;
  end_.recompute(p, layer, act.scratch[block_scratch::kHidden], act);
}

void FeedForward::backward(const Views& p, const Tensor& x_SD, BlockActivations act, const Tensor& dy_SD,
                           Views& g, bool add, Tensor& dx_SD) const {
  Tensor& up_NF = act.saved[block_saved::kUp];
  Tensor &hidden_NF = act.scratch[block_scratch::kHidden],
         &d_hidden_NF = act.scratch[block_scratch::kDHidden];
  const Tensor& d_added_ND = end_.backward(p, dy_SD, act, g, add);
  const bool fused = fuses_gelu(p, act);
  if (fused) {
    matmul_gelu_backward(gelu_layer(p, at_.down_weight, at_.down_bias), d_added_ND, up_NF,
                         /*dpre=*/d_hidden_NF, hidden_NF);
  } else {
    linear_input_gradient(down(p, act), d_added_ND, d_hidden_NF);
    activate_backward(p, up_NF, d_hidden_NF, hidden_NF, g, add);
  }
  const Tensor& d_up_NF = fused ? d_hidden_NF : up_NF;
  linear_weight_gradient(down(p, act), hidden_NF, d_added_ND, {g[at_.down_weight], view(g, at_.down_bias), g},
                         add);
  Tensor& dx_share_ND = region_.share(dx_SD, act.scratch[block_scratch::kPartial]);
  linear_input_gradient(up(p, act), d_up_NF, dx_share_ND);
  region_.leave(dx_share_ND, dx_SD);
  const Tensor& x_ND = region_.enter(x_SD, act.scratch[block_scratch::kAllTokens]);
  linear_weight_gradient(up(p, act), x_ND, d_up_NF,
                         {g[at_.up_weight], view(g, fuses_bias() && !fused ? -1 : at_.up_bias), g}, add);
}

Tensor FeedForward::apply(const Views& p, const Tensor& x_ND, const Tensor& residual_ND) const {
  Tensor up_NF = at::empty({x_ND.size(0), (gated_ ? 2 : 1) * ffn_width_}, x_ND.options());
  Tensor hidden_NF = at::empty({x_ND.size(0), ffn_width_}, x_ND.options());
  Tensor y_ND = at::empty_like(residual_ND);
  linear(up(p), x_ND, up_NF);
  activate(p, up_NF, hidden_NF);
  end_.apply(p, down(p), hidden_NF, residual_ND, y_ND);
  return y_ND;
}

}  // namespace tycho
