// Attention as plain products: each rule is implemented once, for the scores of any number of heads.
#include "trainer/kernels/attention/product_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/bmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "trainer/base/attention_limits.h"
#include "trainer/base/error.h"
#include "trainer/kernels/attention/partial_sums.h"
#include "trainer/kernels/dispatch.h"
#include "trainer/kernels/dropout.h"

namespace tycho {
namespace {

/// Heads of one sequence whose scores exist at once: K key heads with G query heads each.
struct Slice {
  int64_t sequence = 0, first_kv = 0, kv_heads = 0, group = 0;
  int64_t first_head() const { return first_kv * group; }
  int64_t heads() const { return kv_heads * group; }
};

/// Adds ALiBi to scores [.., K, G, T, S] of queries and keys at those positions, and masks keys that a query
/// must not see.
Tensor placed(const ScoreRules& rules, int64_t first_head, const Tensor& position_T, const Tensor& position_S,
              Tensor scores) {
  const Tensor behind = position_S - position_T.unsqueeze(1);
  if (rules.alibi_H) {
    const Tensor slopes = at::from_blob(const_cast<float*>(rules.alibi_H + first_head),
                                        {scores.size(-4), scores.size(-3), 1, 1}, scores.options());
    scores = scores + slopes * behind.to(at::kFloat);
  }
  scores = scores.masked_fill(behind > 0, -INFINITY);
  if (rules.window >= 0) scores = scores.masked_fill(behind < -rules.window, -INFINITY);
  return scores;
}

/// Returns c tanh(scores / c).
Tensor capped(const ScoreRules& rules, const Tensor& scores) {
  return rules.softcap == 0.0f ? scores : (scores / rules.softcap).tanh_().mul_(rules.softcap);
}

/// Returns a · b in fp32, for batches of matrices.
Tensor product(const Tensor& a, const Tensor& b) {
  return a.is_cuda() && a.scalar_type() != at::kFloat ? at::bmm(a, b, at::kFloat)
                                                      : at::bmm(a.to(at::kFloat), b.to(at::kFloat));
}

/// Rows of some heads of a sequence, [K, G * T, d] or [K, T, d].
class PackedHeads {
 public:
  PackedHeads(const AttentionShape& s, const Tensor& rows, int64_t tokens, int64_t heads)
      : tokens_(tokens), dim_(s.head_dim), rows_(rows.view({s.batch, tokens, heads, s.head_dim})) {}
  Tensor get(const Slice& slice, int64_t first, int64_t group) const {
    return view(slice, first, group).reshape({slice.kv_heads, group * tokens_, dim_});
  }
  void set(const Slice& slice, int64_t first, int64_t group, const Tensor& value) const {
    view(slice, first, group).copy_(value.view({slice.kv_heads, group, tokens_, dim_}));
  }
  void add(const Slice& slice, int64_t first, int64_t group, const Tensor& value) const {
    view(slice, first, group).add_(value.view({slice.kv_heads, group, tokens_, dim_}));
  }
  /// Returns [K, G, T, d].
  Tensor view(const Slice& slice, int64_t first, int64_t group) const {
    return rows_[slice.sequence]
        .narrow(1, first + slice.first_kv * group, slice.kv_heads * group)
        .view({tokens_, slice.kv_heads, group, dim_})
        .permute({1, 2, 0, 3});
  }

 private:
  int64_t tokens_, dim_;
  Tensor rows_;
};

class ProductAttention {
 public:
  ProductAttention(const AttentionShape& s, const ScoreRules& rules, const AttentionRows& rows)
      : s_(s),
        rules_(rules),
        keys_(num_keys_at_hand(s)),
        position_T_(query_positions(s, rows.q_NE.device())),
        position_S_(key_positions(s, rows.q_NE.device())),
        q_(s, rows.q_NE, s.seq, s.heads),
        kv_(s, rows.kv, keys_, 2 * s.kv_heads) {}

  template <class Body>
  void for_slices(const Body& body) const {
    const int64_t group = s_.heads / s_.kv_heads;
    const int64_t count = kv_heads_at_once(s_.heads, s_.kv_heads, s_.seq, keys_);
    for (int64_t sequence = 0; sequence < s_.batch; ++sequence)
      for (int64_t first = 0; first < s_.kv_heads; first += count)
        body(Slice{sequence, first, std::min(count, s_.kv_heads - first), group});
  }

  Tensor queries(const Slice& slice) const { return q_.get(slice, 0, slice.group); }
  Tensor keys(const Slice& slice) const { return kv_.get(slice, 0, 1); }
  Tensor values(const Slice& slice) const { return kv_.get(slice, s_.kv_heads, 1); }

  /// Returns q kᵀ scale, [K, G * T, S].
  Tensor products(const Slice& slice) const {
    return product(queries(slice), keys(slice).transpose(1, 2)).mul_(rules_.scale);
  }
  /// Returns the scores of products, with -infinity for keys that a query must not see.
  Tensor scores(const Slice& slice, const Tensor& products) const {
    Tensor scores = placed(rules_, slice.first_head(), position_T_, position_S_,
                           capped(rules_, products).view({slice.kv_heads, slice.group, s_.seq, keys_}));
    if (rules_.document_BT) {
      const int64_t tokens = num_keys(s_);
      const Tensor number = at::from_blob(const_cast<int32_t*>(rules_.document_BT + slice.sequence * tokens),
                                          {tokens}, products.options().dtype(at::kInt));
      const Tensor number_T = number.index_select(0, position_T_),
                   number_S = number.index_select(0, position_S_);
      scores = scores.masked_fill(number_T.unsqueeze(1) != number_S, -INFINITY);
    }
    return scores.view({slice.kv_heads, slice.group * s_.seq, keys_});
  }
  /// Returns the factors of the weights: 0 where dropout drops, else 1 / (1 - p); undefined without dropout.
  Tensor kept(const Slice& slice, const Tensor& scores) const {
    if (rules_.dropout.p == 0) return {};
    Tensor kept = at::ones({slice.heads() * s_.seq, keys_}, scores.options());
    if (s_.keys == 0) {
      drop(slice, 0, 0, kept);
      return kept.view(scores.sizes());
    }
    for (int64_t head = 0; head < slice.heads(); ++head) {
      const Tensor rows = kept.narrow(0, head * s_.seq, s_.seq);
      Tensor early = rows.narrow(0, 0, s_.early.count), late = rows.narrow(0, s_.early.count, s_.late.count);
      drop(slice, head, s_.early.first, early);
      drop(slice, head, s_.late.first, late);
    }
    return kept.view(scores.sizes());
  }

 private:
  /// Applies the rows of the mask that begin at a head of the slice and a position.
  void drop(const Slice& slice, int64_t head, int64_t position, Tensor& kept) const {
    DropoutMask mask = rules_.dropout;
    const int64_t heads = rules_.dropout_heads > 0 ? rules_.dropout_heads : s_.heads, tokens = num_keys(s_);
    mask.first_row += (slice.sequence * heads + slice.first_head() + head) * tokens + position;
    if (!s_.is_part()) return dropout(mask, kept, {}, kept);
    Tensor of_all = at::ones({kept.size(0), tokens}, kept.options());
    dropout(mask, of_all, {}, of_all);
    kept.copy_(of_all.index_select(1, position_S_));
  }

  const AttentionShape& s_;
  const ScoreRules& rules_;
  int64_t keys_;
  Tensor position_T_, position_S_;
  PackedHeads q_, kv_;
};

/// Returns attention of queries [B, T, H, d] to the first num_keys positions of a cache; [B*T, H*d].
Tensor attend(const AttentionShape& s, const ScoreRules& rules, const Tensor& q_BTHd, const Tensor& key_cache,
              const Tensor& value_cache, int64_t num_keys) {
  const int64_t group = s.heads / s.kv_heads;
  // For few queries over many keys, plain products over the cache in place are as fast as a flash kernel.
  const auto compute = key_cache.scalar_type();
  const Tensor keys = key_cache.narrow(2, 0, num_keys), values = value_cache.narrow(2, 0, num_keys);
  const Tensor q =
      q_BTHd.view({s.batch, s.seq, s.kv_heads, group, s.head_dim}).permute({0, 2, 3, 1, 4}).to(compute);
  Tensor scores =
      at::matmul(q.reshape({s.batch, s.kv_heads, group * s.seq, s.head_dim}), keys.transpose(2, 3));
  scores = scores.to(at::kFloat).mul_(rules.scale).view({s.batch, s.kv_heads, group, s.seq, num_keys});
  scores = capped(rules, scores);
  // A single query at the end sees all keys.
  if (s.seq > 1 || rules.alibi_H || rules.window >= 0) {
    const auto positions = scores.options().dtype(at::kLong);
    scores = placed(rules, 0, at::arange(num_keys - s.seq, num_keys, positions),
                    at::arange(num_keys, positions), scores);
  }
  scores = scores.view({s.batch, s.kv_heads, group * s.seq, num_keys});
  const Tensor out = at::matmul(scores.softmax(-1).to(compute), values);
  return out.view({s.batch, s.kv_heads, group, s.seq, s.head_dim})
      .permute({0, 3, 1, 2, 4})
      .to(q_BTHd.scalar_type())
      .reshape({s.batch * s.seq, s.heads * s.head_dim});
}

/// Returns attention of one query of each sequence by the CPU's kernel.
Tensor attend_with_last(const char* op, const AttentionShape& s, const ScoreRules& rules,
                        const Tensor& q_BTHd, const Tensor& key_cache, const Tensor& value_cache,
                        int64_t num_keys) {
  for (const Tensor& side : {key_cache, value_cache})
    TYCHO_CHECK(side.sizes() == key_cache.sizes() && side.strides() == key_cache.strides() &&
                    side.size(0) == s.batch && side.size(1) == s.kv_heads && side.size(3) == s.head_dim &&
                    side.stride(3) == 1 && side.stride(2) == s.head_dim,
                "[{}] expected a cache [{}, {}, positions, {}] with contiguous rows, got [{}]", op, s.batch,
                s.kv_heads, s.head_dim, fmt::join(side.sizes(), ", "));
  Tensor out_NE = at::empty({s.batch, s.heads * s.head_dim}, q_BTHd.options());
  const CachedKeys cache = {key_cache.const_data_ptr<float>(), value_cache.const_data_ptr<float>(),
                            key_cache.stride(0), key_cache.stride(1), num_keys};
  kernels(q_BTHd).attention_cached(s, rules, dtype_of(op, q_BTHd), q_BTHd.const_data_ptr(), cache,
                                   out_NE.mutable_data_ptr(), nullptr);
  return out_NE;
}

/// Returns a slice's rows of [B, H, T].
Tensor statistics(const Slice& slice, const Tensor& x_BHT) {
  return x_BHT[slice.sequence]
      .narrow(0, slice.first_head(), slice.heads())
      .view({slice.kv_heads, slice.group * x_BHT.size(2), 1});
}

}  // namespace

void product_attention(const AttentionShape& s, const ScoreRules& rules, const AttentionRows& rows,
                       Tensor& out_NE, Tensor& log_sum_exp_BHT) {
  const ProductAttention attention(s, rules, rows);
  const PackedHeads out(s, out_NE, s.seq, s.heads);
  attention.for_slices([&](const Slice& slice) {
    const Tensor scores = attention.scores(slice, attention.products(slice));
    const Tensor log_sum_exp = scores.logsumexp(-1, /*keepdim=*/true),
                 all = statistics(slice, log_sum_exp_BHT);
    Tensor weights = (scores - (s.is_part() ? or_zero(log_sum_exp) : log_sum_exp)).exp_();
    if (const Tensor kept = attention.kept(slice, scores); kept.defined()) weights.mul_(kept);
    const Tensor part = product(weights.to(rows.q_NE.scalar_type()), attention.values(slice));
    if (!s.is_part()) {
      all.copy_(log_sum_exp);
      return out.set(slice, 0, slice.group, part);
    }
    const auto by_group = [&](const Tensor& x) { return x.view({slice.kv_heads, slice.group, s.seq, -1}); };
    add_part(by_group(part), by_group(log_sum_exp), out.view(slice, 0, slice.group), by_group(all));
  });
}

void product_attention_backward(const AttentionShape& s, const ScoreRules& rules, const AttentionRows& rows,
                                const Tensor& out_NE, const Tensor& log_sum_exp_BHT, const Tensor& dout_NE,
                                const AttentionRows& gradients) {
  const ProductAttention attention(s, rules, rows);
  const PackedHeads out(s, out_NE, s.seq, s.heads), dout(s, dout_NE, s.seq, s.heads),
      dq(s, gradients.q_NE, s.seq, s.heads), dkv(s, gradients.kv, num_keys_at_hand(s), 2 * s.kv_heads);
  const auto dtype = rows.q_NE.scalar_type();
  attention.for_slices([&](const Slice& slice) {
    const Tensor products = attention.products(slice), scores = attention.scores(slice, products);
    Tensor weights = (scores - statistics(slice, log_sum_exp_BHT)).exp_();
    const Tensor kept = attention.kept(slice, scores), d_out = dout.get(slice, 0, slice.group);
    const Tensor dot = (out.get(slice, 0, slice.group).to(at::kFloat) * d_out.to(at::kFloat)).sum(-1, true);
    Tensor d_weights = product(d_out, attention.values(slice).transpose(1, 2));
    if (kept.defined()) d_weights.mul_(kept);
    Tensor d_scores = d_weights.sub_(dot).mul_(weights);
    if (rules.softcap != 0.0f) {
      const Tensor tanh = (products / rules.softcap).tanh_();
      d_scores.mul_(tanh.mul_(tanh).neg_().add_(1));
    }
    if (kept.defined()) weights.mul_(kept);
    d_scores = d_scores.mul_(rules.scale).to(dtype);
    const Tensor d_queries = product(d_scores, attention.keys(slice));
    s.is_part() ? dq.add(slice, 0, slice.group, d_queries) : dq.set(slice, 0, slice.group, d_queries);
    dkv.set(slice, 0, 1, product(d_scores.transpose(1, 2), attention.queries(slice)));
    dkv.set(slice, s.kv_heads, 1, product(weights.to(dtype).transpose(1, 2), d_out));
  });
}

Tensor attention_cached(const AttentionShape& s, const ScoreRules& rules, const Tensor& q_BTHd,
                        const Tensor& key_cache, const Tensor& value_cache, int64_t num_keys) {
  const char* op = "attention_cached";
  check_tensor(op, "q", q_BTHd, {s.batch, s.seq, s.heads, s.head_dim}, q_BTHd.scalar_type(), q_BTHd.device());
  TYCHO_CHECK(s.kv_heads > 0 && s.heads % s.kv_heads == 0,
              "[{}] {} query heads cannot evenly share {} key heads", op, s.heads, s.kv_heads);
  TYCHO_CHECK(key_cache.dim() == 4 && num_keys >= s.seq && num_keys <= key_cache.size(2),
              "[{}] expected {} <= keys <= positions of the cache, got {} keys and a cache of {}", op, s.seq,
              num_keys, key_cache.dim() == 4 ? key_cache.size(2) : 0);
  if (q_BTHd.is_cpu() && s.seq == 1 && key_cache.scalar_type() == at::kFloat)
    return attend_with_last(op, s, rules, q_BTHd, key_cache, value_cache, num_keys);
  const int64_t at_once = queries_at_once(s.batch * s.heads, num_keys);
  if (s.seq <= at_once) return attend(s, rules, q_BTHd, key_cache, value_cache, num_keys);
  // For a long prompt, the scores of a span of queries exist at once, over the keys that its last query may
  // see.
  Tensor out_BTE = at::empty({s.batch, s.seq, s.heads * s.head_dim}, q_BTHd.options());
  AttentionShape part = s;
  for (int64_t first = 0; first < s.seq; first += part.seq) {
    part.seq = std::min(at_once, s.seq - first);
    const Tensor out_NE = attend(part, rules, q_BTHd.narrow(1, first, part.seq), key_cache, value_cache,
                                 num_keys - s.seq + first + part.seq);
    out_BTE.narrow(1, first, part.seq).copy_(out_NE.view({s.batch, part.seq, -1}));
  }
  return out_BTE.view({s.batch * s.seq, s.heads * s.head_dim});
}

// Attention is linear in the values: with columns of the identity as values, its output is the weights, under
// every rule. Takes as many columns at a time as a head is wide.
Tensor attention_weights(const AttentionShape& s, const ScoreRules& rules, const Tensor& q_BTHd,
                         const Tensor& key_cache, int64_t num_keys) {
  Tensor weights_BHTS = at::empty({s.batch, s.heads, s.seq, num_keys}, q_BTHd.options().dtype(at::kFloat));
  for (int64_t begin = 0; begin < num_keys; begin += s.head_dim) {
    const int64_t count = std::min(s.head_dim, num_keys - begin);
    const Tensor values = at::zeros(key_cache.sizes(), key_cache.options());
    values.narrow(2, begin, count).narrow(3, 0, count).diagonal(0, 2, 3).fill_(1);
    const Tensor out_BTHd = attention_cached(s, rules, q_BTHd, key_cache, values, num_keys)
                                .view({s.batch, s.seq, s.heads, s.head_dim});
    weights_BHTS.narrow(3, begin, count).copy_(out_BTHd.narrow(3, 0, count).transpose(1, 2));
  }
  return weights_BHTS;
}

}  // namespace tycho
