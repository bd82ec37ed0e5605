// Works on chunks of tokens, so that the logits of all tokens never exist at once.
#include "trainer/models/head.h"
#include "trainer/layout/decoder_slots.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <algorithm>
#include <cmath>
#include <utility>

#include "trainer/kernels/cross_entropy.h"
#include "trainer/kernels/matmul.h"
#include "trainer/kernels/one_thread.h"
#include "trainer/kernels/token_statistics.h"
#include "trainer/models/shared_vocabulary.h"

namespace tycho {
namespace {

NormStats final_stats(Activations& act) {
  return {act.model(model_slot::kMeanFinal), act.model(model_slot::kInvFinal)};
}

/// Calls body(first token, tokens) for chunks of `chunk` tokens, as many as slot kLogits holds.
template <class Body>
void for_chunks(int64_t num_tokens, int64_t chunk, const Body& body) {
  for (int64_t begin = 0; begin < num_tokens; begin += chunk)
    body(begin, std::min(chunk, num_tokens - begin));
}

/// Returns the first `rows` x `columns` numbers of a slot.
Tensor part_of(const Tensor& slot, int64_t first_row, int64_t rows, int64_t columns) {
  return slot.view({-1}).narrow(0, first_row * columns, rows * columns).view({rows, columns});
}

/// Returns room for the logits of a chunk, as wide as the matrix: it has zero rows (tp_units) where a model
/// is trained, and none where a checkpoint is only evaluated.
Tensor chunk_logits(const HeadParams& p, int64_t rows, Activations& act) {
  return part_of(act.model(model_slot::kLogits), 0, rows, p.output_VD.size(0));
}

/// Computes losses of statistics of the logits, for losses that are not the fused cross-entropy.
void classify_by_statistics(const HeadRules& rules, Tensor& logits, const LossTokens& tokens,
                            const Tensor& weight_1, bool write_gradient, Activations& act, Tensor& losses) {
  const int64_t N = logits.size(0);
  const Tensor& slot = act.model(model_slot::kStatistics);
  Tensor statistics = part_of(slot, 0, kTokenStatistics, N), gradients;
  if (write_gradient) gradients = part_of(slot, kTokenStatistics, kLossStatistics, N);
  const bool shared = rules.region.is_shared();
  const Tensor targets =
      shared ? own_targets(tokens.targets_N, rules.first_vocab, rules.logits.count) : tokens.targets_N;
  token_statistics(rules.logits, logits, targets, statistics);
  if (shared) share_statistics(rules.region, rules.vocab, tokens.targets_N, statistics);
  rules.loss.compute(statistics, tokens, losses, gradients);
  if (write_gradient)
    token_statistics_backward(rules.logits, rules.vocab, logits, targets, statistics, gradients, weight_1);
}

/// Computes losses over the whole vocabulary, [losses of a token, N], and overwrites the logits with their
/// gradient if `write_gradient`.
void classify(const HeadRules& rules, Tensor& logits, const LossTokens& tokens, const Tensor& weight_1,
              bool write_gradient, Activations& act, Tensor losses) {
  if (!rules.loss.is_fused(tokens))
    return classify_by_statistics(rules, logits, tokens, weight_1, write_gradient, act, losses);
  Tensor losses_N = losses.select(0, 0);
  if (!rules.region.is_shared())
    return cross_entropy(rules.logits, logits, tokens.targets_N, weight_1, write_gradient, losses_N);
  shared_cross_entropy(rules.region, rules.logits, logits, rules.first_vocab, tokens.targets_N, weight_1,
                       write_gradient, losses_N);
}

/// Returns the final norm of all tokens.
const Tensor& normed_input(const HeadRules& rules, HeadParams p, const Tensor& x_SD, Activations& act) {
  Tensor& normed_SD = act.model(model_slot::kNormedFinal);
  rules.norm.forward(p.norm, x_SD, final_stats(act), normed_SD);
  return rules.region.enter(normed_SD, act.scratch(block_scratch::kAllTokens));
}

}  // namespace

HeadRules::HeadRules(const DecoderSpec& spec, int64_t whole_vocab, const ParallelRegion& with,
                     TokenLoss minimised)
    : norm(spec.norm),
      logits{.scale = static_cast<float>(spec.logits.scale),
             .softcap = static_cast<float>(spec.logits.softcap),
             .count = spec.vocab_size},
      first_vocab(spec.first_vocab),
      vocab(whole_vocab),
      region(with),
      loss(std::move(minimised)) {}

void head_forward_backward(const HeadRules& rules, HeadParams p, const Tensor& x_SD, const LossTokens& tokens,
                           const Tensor& weight_1, Activations& act, HeadGrads g, bool add, Tensor& d_SD) {
  const Tensor& normed_ND = normed_input(rules, p, x_SD, act);
  Tensor& d_normed_SD = act.model(model_slot::kDNormed);
  Tensor& share_ND = rules.region.share(d_normed_SD, act.scratch(block_scratch::kPartial));
  for_chunks(normed_ND.size(0), act.model(model_slot::kLogits).size(0), [&](int64_t begin, int64_t rows) {
    const Tensor normed = normed_ND.narrow(0, begin, rows);
    Tensor logits = chunk_logits(p, rows, act);
    const Tensor losses = act.model(model_slot::kLosses).narrow(1, begin, rows);
    Tensor d_normed = share_ND.narrow(0, begin, rows);
    matmul_nt(normed, p.output_VD, logits);
    classify(rules, logits, tokens.narrow(begin, rows), weight_1, /*write_gradient=*/true, act, losses);
    if (g.output_VD.defined()) matmul_tn(logits, normed, g.output_VD, add || begin > 0);
    matmul_nn(logits, p.output_VD, d_normed);
  });
  rules.region.leave(share_ND, d_normed_SD);
  rules.norm.backward(p.norm, x_SD, final_stats(act), d_normed_SD, d_SD, /*add_to_dx=*/false, g.norm, add);
}

void head_losses(const HeadRules& rules, HeadParams p, const Tensor& x_SD, const LossTokens& tokens,
                 Activations& act) {
  const Tensor& normed_ND = normed_input(rules, p, x_SD, act);
  const Tensor weight_1 = at::ones({1}, x_SD.options().dtype(at::kFloat));
  for_chunks(normed_ND.size(0), act.model(model_slot::kLogits).size(0), [&](int64_t begin, int64_t rows) {
    Tensor logits = chunk_logits(p, rows, act);
    const Tensor losses = act.model(model_slot::kLosses).narrow(1, begin, rows);
    matmul_nt(normed_ND.narrow(0, begin, rows), p.output_VD, logits);
    classify(rules, logits, tokens.narrow(begin, rows), weight_1, /*write_gradient=*/false, act, losses);
  });
}

Tensor head_last_logits(const HeadRules& rules, HeadParams p, const Tensor& x_ND, int64_t batch,
                        int64_t vocab_size) {
  const int64_t seq = x_ND.size(0) / batch;
  const Tensor last_BD = x_ND.view({batch, seq, x_ND.size(1)}).select(1, seq - 1).contiguous();
  const Tensor normed_BD = rules.norm.apply(p.norm, last_BD);
  Tensor logits_BV = at::empty({batch, p.output_VD.size(0)}, last_BD.options());
  matmul_nt(normed_BD, p.output_VD, logits_BV);
  logits_BV = logits_BV.narrow(1, 0, rules.logits.count);
  if (rules.region.is_shared()) logits_BV = all_logits(rules.region, logits_BV, vocab_size);
  const OneThread one_thread;
  Tensor scaled_BV = logits_BV.to(at::kFloat).mul_(rules.logits.scale);
  return rules.logits.softcap == 0 ? scaled_BV
                                   : (scaled_BV / rules.logits.softcap).tanh_() * rules.logits.softcap;
}

}  // namespace tycho
