// Every rank takes the softmax of its own logits, and rescales it when it knows the sums of all ranks.
#include "trainer/models/shared_vocabulary.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>

#include <vector>

#include "trainer/kernels/cross_entropy.h"
#include "trainer/kernels/tensor.h"
#include "trainer/kernels/token_statistics.h"

namespace tycho {
namespace {

/// True for tokens that this rank has, and its row for each token; row 0 for other tokens.
struct OwnRows {
  Tensor is_own_N, row_N;
};
OwnRows own_rows(const Tensor& tokens_N, int64_t first_vocab, int64_t rows) {
  const Tensor shifted = tokens_N - first_vocab, is_own = shifted.ge(0).logical_and_(shifted.lt(rows));
  return {is_own, at::where(is_own, shifted, at::zeros_like(shifted))};
}

/// Returns fp32 logits after scale and softcap, as the softmax takes them.
Tensor ruled(const LogitRules& rules, const Tensor& logits_N) {
  const Tensor scaled = logits_N * rules.scale;
  return rules.softcap == 0 ? scaled : (scaled / rules.softcap).tanh_() * rules.softcap;
}

/// Returns the derivative of ruled(), given its results.
Tensor slope(const LogitRules& rules, const Tensor& ruled_N) {
  const Tensor ones = at::zeros_like(ruled_N).add_(1);
  if (rules.softcap == 0) return ones.mul_(rules.scale);
  const Tensor part = ruled_N / rules.softcap;
  return (ones - part * part).mul_(rules.scale);
}

}  // namespace

void embed_own(const Tensor& tokens_N, int64_t first_vocab, const Tensor& table_VD,
               const LearnedPositions& positions, Tensor& y_ND) {
  const OwnRows own = own_rows(tokens_N, first_vocab, table_VD.size(0));
  embedding(own.row_N, table_VD, y_ND, positions);
  y_ND.masked_fill_(own.is_own_N.logical_not().unsqueeze(1), 0);
}

void embed_own_backward(const Tensor& tokens_N, int64_t first_vocab, Tensor& d_ND, Tensor& dtable_VD) {
  const OwnRows own = own_rows(tokens_N, first_vocab, dtable_VD.size(0));
  d_ND.masked_fill_(own.is_own_N.logical_not().unsqueeze(1), 0);
  embedding_backward(own.row_N, d_ND, dtable_VD);
}

// Let r be this rank, t the target, z logits after the rules, L log sum exp: the kernel returns L_r - z of
// some own token, and weight (softmax_r - 1 at that token) slope. All logits' softmax is softmax_r exp(L_r -
// L).
void shared_cross_entropy(const ParallelRegion& region, const LogitRules& rules, Tensor& logits_NV,
                          int64_t first_vocab, const Tensor& targets_N, const Tensor& weight_1,
                          bool write_gradient, Tensor& losses_N) {
  const Tensor is_target_N = targets_N.ne(kIgnoredTarget);
  const OwnRows own = own_rows(targets_N, first_vocab, rules.count_of(logits_NV.size(1)));
  const Tensor kernel_targets = at::where(is_target_N, own.row_N, targets_N);
  const Tensor row_N1 = own.row_N.to(at::kLong).unsqueeze(1);
  const Tensor at_row_N = ruled(rules, logits_NV.gather(1, row_N1).squeeze(1).to(at::kFloat));
  cross_entropy(rules, logits_NV, kernel_targets, weight_1, write_gradient, losses_N);
  const Tensor own_sum_N = losses_N + at_row_N;  // L_r; no matter where ignored
  const Tensor of_target_N = at_row_N * own.is_own_N;
  const Tensor told_R2N = region.gathered(at::stack({own_sum_N, of_target_N}));
  const Tensor sum_N = told_R2N.select(1, 0).logsumexp(0);
  losses_N.copy_((sum_N - told_R2N.select(1, 1).sum(0)).masked_fill_(is_target_N.logical_not(), 0));
  if (!write_gradient) return;
  logits_NV.mul_((own_sum_N - sum_N).exp_().unsqueeze(1).to(logits_NV.scalar_type()));
  // The kernel subtracted 1 at the row that it was given, which was then scaled.
  const Tensor at_row = (at_row_N - sum_N).exp_().sub_(own.is_own_N.to(at::kFloat));
  const Tensor exact_N = at_row.mul_(weight_1).mul_(slope(rules, at_row_N)).mul_(is_target_N);
  logits_NV.scatter_(1, row_N1, exact_N.unsqueeze(1).to(logits_NV.scalar_type()));
}

Tensor own_targets(const Tensor& targets_N, int64_t first_vocab, int64_t rows) {
  const OwnRows own = own_rows(targets_N, first_vocab, rows);
  const Tensor elsewhere_N = at::full_like(targets_N, kTargetElsewhere);
  return at::where(own.is_own_N.logical_or(targets_N.eq(kIgnoredTarget)),
                   at::where(own.is_own_N, own.row_N, targets_N), elsewhere_N);
}

// Sums are relative to a rank's own maximum m_r. With u_r = m_r - m and rank r's share of probability s_r:
// log_sum = log sum exp(log_sum_r + u_r), s_r = exp(log_sum_r + u_r - log_sum), sum p (x - m) = sum s_r
// (below_r + u_r).
void share_statistics(const ParallelRegion& region, int64_t vocab, const Tensor& targets_N,
                      Tensor& statistics_SN) {
  const TpShape tp = region.shape();
  std::vector<double> shares;
  for (int64_t rank = 0; rank < tp.size; ++rank)
    shares.push_back(static_cast<double>(tp_items(vocab, {tp.size, rank}).size()) /
                     static_cast<double>(vocab));
  const Tensor all_RSN = region.gathered(statistics_SN);
  const auto of = [&](TokenStatistic which) { return all_RSN.select(1, which); };
  const Tensor max_N = of(kMaxLogit).amax(0), under_RN = of(kMaxLogit) - max_N;
  const Tensor log_sum_RN = of(kLogSum) + under_RN, log_sum_N = log_sum_RN.logsumexp(0);
  const Tensor below_N = ((log_sum_RN - log_sum_N).exp_() * (of(kExpectedBelowMax) + under_RN)).sum(0);
  const Tensor shares_R1 = at::tensor(shares, max_N.options()).unsqueeze(1);
  const auto put = [&](TokenStatistic which, const Tensor& value_N) {
    statistics_SN.select(0, which).copy_(value_N);
  };
  put(kLogSumExp, max_N + log_sum_N);
  put(kTargetLogit, of(kTargetLogit).sum(0));
  put(kMeanLogit, (of(kMeanLogit) * shares_R1).sum(0));
  put(kMaxLogit, max_N);
  put(kExpectedLogit, max_N + below_N);
  put(kLogSum, log_sum_N);
  put(kExpectedBelowMax, below_N);
  put(kNumLargest, (of(kNumLargest) * under_RN.eq(0)).sum(0));
  statistics_SN.masked_fill_(targets_N.eq(kIgnoredTarget), 0);
}

Tensor all_logits(const ParallelRegion& region, const Tensor& logits_NV, int64_t vocab_size) {
  const TpShape tp = region.shape();
  const int64_t most = tp_items(vocab_size, {tp.size, 0}).size();
  const Tensor all = region.gathered(at::constant_pad_nd(logits_NV, {0, most - logits_NV.size(1)}));
  std::vector<Tensor> parts;
  for (int64_t rank = 0; rank < tp.size; ++rank)
    parts.push_back(all[rank].narrow(1, 0, tp_items(vocab_size, {tp.size, rank}).size()));
  return joined(parts, 1);
}

}  // namespace tycho
