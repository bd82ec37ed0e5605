// Lists the accesses and FLOPs of products and attention.
#include <algorithm>
#include <array>

#include "trainer/kernels/twins/accesses.h"
#include "trainer/kernels/twins/kernel_work.h"

namespace tycho {
namespace {

Access operand(const MatmulOperand& x, int64_t rows, int64_t depth) {
  const int64_t each = width(x.dtype);
  return x.depth_step == 1 ? in_rows(x.data, rows, depth * each, x.row_step * each)
                           : in_rows(x.data, depth, rows * each, x.depth_step * each);
}
/// Returns how many pairs have the key before the query: the integral over queries of the keys that they
/// passed.
double earlier_pairs(const TokenSpan& queries, const TokenSpan& keys) {
  const auto count = static_cast<double>(keys.count);
  const auto up_to = [&](int64_t query) {
    const auto passed = static_cast<double>(std::max<int64_t>(query - keys.first, 0));
    return passed < count ? passed * passed / 2 : count * (passed - count / 2);
  };
  return up_to(queries.first + queries.count) - up_to(queries.first);
}
int64_t num_keys(const AttentionShape& s) {
  if (s.is_part()) return s.early_keys.count + s.late_keys.count;
  return s.keys > 0 ? s.keys : s.seq;
}
KernelWork attention_inputs(const AttentionShape& s, const ScoreRules& rules, Dtype t,
                            const AttentionInputs& from) {
  const int64_t keys = num_keys(s), sequence = s.keys > 0 ? s.keys : s.seq;
  KernelWork all = {
      in_rows(from.q, s.batch * s.seq, s.heads * s.head_dim * width(t), from.q_step * width(t)),
      in_rows(from.kv, s.batch * keys, 2 * s.kv_heads * s.head_dim * width(t), from.kv_step * width(t)),
      in(rules.alibi_H, s.heads * 4), in(rules.document_BT, s.batch * sequence * 4)};
  const TokenSpan whole = {0, s.seq}, all_keys = {0, sequence};
  double pairs = 0;
  for (const TokenSpan& queries : s.keys > 0 ? std::array{s.early, s.late} : std::array{whole, TokenSpan{}})
    for (const TokenSpan& part :
         s.is_part() ? std::array{s.early_keys, s.late_keys} : std::array{all_keys, TokenSpan{}})
      pairs += seen_pairs(queries, part, rules.window);
  all.flops = kAttentionFlops * pairs * static_cast<double>(s.batch * s.heads * s.head_dim);
  return all;
}
}  // namespace

double matmul_flops(const MatmulShape& s) {
  return 2.0 * static_cast<double>(s.rows) * static_cast<double>(s.columns) * static_cast<double>(s.depth);
}

double seen_pairs(const TokenSpan& queries, const TokenSpan& keys, int64_t window) {
  const double every = earlier_pairs(queries, keys);
  return window < 0 ? every : every - earlier_pairs(queries, {keys.first + window, keys.count});
}

KernelWork WorkOf::matmul(MatmulShape s, MatmulOperand left, MatmulOperand right, MatmulResult to,
                          Stream) const {
  KernelWork all = {operand(left, s.rows, s.depth), operand(right, s.columns, s.depth),
                    in(to.added, s.rows * s.columns * width(to.dtype)),
                    out(to.data, s.rows * s.columns * width(to.dtype))};
  all.flops = matmul_flops(s);
  return all;
}

KernelWork WorkOf::attention(AttentionShape s, ScoreRules rules, Dtype t, AttentionInputs from, void* result,
                             float* log_sum_exp_BHT, Stream) const {
  KernelWork all = attention_inputs(s, rules, t, from);
  const int64_t sums = s.batch * s.heads * s.seq, elements = sums * s.head_dim;
  all.update(out(result, elements * (s.is_part() ? 4 : width(t))), s.is_part());
  all.update(out(log_sum_exp_BHT, sums * 4), s.is_part());
  return all;
}

KernelWork WorkOf::attention_backward(AttentionShape s, ScoreRules rules, Dtype t, AttentionInputs from,
                                      const void* result, const float* log_sum_exp_BHT, const void* dout,
                                      AttentionGradients to, Stream) const {
  KernelWork all = attention_inputs(s, rules, t, from);
  const int64_t sums = s.batch * s.heads * s.seq, row = s.heads * s.head_dim;
  const int64_t each = s.is_part() ? 4 : width(t);
  all.add(in(result, sums * s.head_dim * width(t)));
  all.add(in(log_sum_exp_BHT, sums * 4));
  all.add(in(dout, sums * s.head_dim * width(t)));
  all.update(in_rows(to.dq, s.batch * s.seq, row * each, to.q_step * each), s.is_part());
  all.add(
      written(in_rows(to.dkv, s.batch * num_keys(s), 2 * s.kv_heads * s.head_dim * each, to.kv_step * each)));
  all.flops *= kAttentionBackwardFlops / kAttentionFlops;
  return all;
}

}  // namespace tycho
