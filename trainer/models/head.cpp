// The end of a model: final norm, output matrix, loss.
#include "trainer/models/head.h"

#include <algorithm>

#include "trainer/kernels/cross_entropy.h"
#include "trainer/kernels/matmul.h"
#include "trainer/kernels/rms_norm.h"

namespace tycho {

void head_forward_backward(HeadParams p, const Tensor& x_ND, const Tensor& targets_N, const Tensor& weight_1,
                           double norm_eps, Activations& act, HeadGrads g, bool add, Tensor& d_ND) {
  Tensor& normed_ND = act.model(model_slot::kNormedFinal);
  Tensor& logits_CV = act.model(model_slot::kLogits);
  Tensor& losses_N = act.model(model_slot::kLosses);
  Tensor& d_normed_ND = act.model(model_slot::kDNormed);
  rms_norm(x_ND, p.norm_D, norm_eps, normed_ND, act.model(model_slot::kInvRmsFinal));
  const int64_t num_tokens = x_ND.size(0), chunk = logits_CV.size(0);
  for (int64_t begin = 0; begin < num_tokens; begin += chunk) {
    const int64_t rows = std::min(chunk, num_tokens - begin);
    const Tensor normed = normed_ND.narrow(0, begin, rows);
    Tensor logits = logits_CV.narrow(0, 0, rows);
    Tensor losses = losses_N.narrow(0, begin, rows);
    Tensor d_normed = d_normed_ND.narrow(0, begin, rows);
    matmul_nt(normed, p.output_VD, logits);
    cross_entropy(logits, targets_N.narrow(0, begin, rows), weight_1, /*write_gradient=*/true, losses);
    matmul_tn(logits, normed, g.output_VD, add || begin > 0);
    matmul_nn(logits, p.output_VD, d_normed);
  }
  rms_norm_backward(x_ND, p.norm_D, act.model(model_slot::kInvRmsFinal), d_normed_ND, d_ND,
                    /*add_to_dx=*/false, g.norm_D, add);
}

Tensor head_last_logits(HeadParams p, const Tensor& x_ND, int64_t batch, double norm_eps) {
  const int64_t seq = x_ND.size(0) / batch;
  const Tensor last_BD = x_ND.view({batch, seq, x_ND.size(1)}).select(1, seq - 1).contiguous();
  Tensor normed_BD = at::empty_like(last_BD);
  Tensor inv_rms_B = at::empty({batch}, last_BD.options().dtype(at::kFloat));
  rms_norm(last_BD, p.norm_D, norm_eps, normed_BD, inv_rms_B);
  Tensor logits_BV = at::empty({batch, p.output_VD.size(0)}, last_BD.options());
  matmul_nt(normed_BD, p.output_VD, logits_BV);
  return logits_BV.to(at::kFloat);
}

}  // namespace tycho
