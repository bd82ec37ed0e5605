// Sums in fp32, of inputs in bf16; weights and their gradients are rounded as kernels round them.
#include "tests/standin_gpu/plugin/attention_on_host.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/zeros_like.h>

#include <cmath>

#include "tests/standin_gpu/plugin/host_views.h"

namespace standin {
namespace {

using at::Tensor;

/// Rows of a span by head, [heads, rows, d].
Tensor part(const Tensor& x, int64_t first, int64_t count) {
  return x.narrow(0, first, count).transpose(0, 1);
}
Tensor rows_of(const Tensor& x) { return wide(x).reshape({-1, x.size(-2), x.size(-1)}); }

}  // namespace

HostAttention::HostAttention(const Tensor& query, const Tensor& key, const Tensor& value,
                             const Tensor& starts_q, const Tensor& starts_k, const AttentionRules& rules)
    : query_(query), key_(key), rules_(rules) {
  const int64_t d = query.size(-1);
  TORCH_CHECK(query.scalar_type() == at::kBFloat16 || query.scalar_type() == at::kHalf,
              "FlashAttention only support fp16 and bf16 data type");
  TORCH_CHECK(d % 8 == 0 && d <= 256,
              "FlashAttention wants head dimensions that are multiples of 8, at most 256");
  for (const Tensor* x : {&query, &key, &value})
    TORCH_CHECK(x->stride(-1) == 1, "FlashAttention wants a contiguous last dimension");
  TORCH_CHECK(query.size(-2) % key.size(-2) == 0, "query heads must be a multiple of key heads");
  scale_ = rules.scale.value_or(1.0 / std::sqrt(static_cast<double>(d)));
  left_ = rules.left.value_or(-1);
  right_ = rules.causal ? 0 : rules.right.value_or(-1);
  if (starts_q.defined()) {
    const Tensor a = on_cpu(starts_q), b = on_cpu(starts_k);
    for (int64_t i = 0; i + 1 < a.numel(); ++i) {
      const auto at_q = [&](int64_t j) { return static_cast<int64_t>(a.const_data_ptr<int32_t>()[j]); };
      const auto at_k = [&](int64_t j) { return static_cast<int64_t>(b.const_data_ptr<int32_t>()[j]); };
      spans_.push_back({at_q(i), at_q(i + 1) - at_q(i), at_k(i), at_k(i + 1) - at_k(i)});
    }
  } else {
    for (int64_t b = 0; b < query.size(0); ++b)
      spans_.push_back({b * query.size(1), query.size(1), b * key.size(1), key.size(1)});
  }
  q_ = rows_of(query), k_ = rows_of(key), v_ = rows_of(value);
  const int64_t group = q_.size(1) / k_.size(1);
  k_ = k_.repeat_interleave(group, 1), v_ = v_.repeat_interleave(group, 1);
}

Tensor HostAttention::all_scores(const Span& s) const {
  const Tensor all =
      at::matmul(part(q_, s.first_q, s.num_q), part(k_, s.first_k, s.num_k).transpose(1, 2)) * scale_;
  return rules_.softcap == 0 ? all : (all / rules_.softcap).tanh() * rules_.softcap;
}

Tensor HostAttention::masked(const Tensor& scores, const Span& s) const {
  Tensor all = scores;
  const Tensor behind =
      at::arange(s.num_k).unsqueeze(0) - (at::arange(s.num_q).unsqueeze(1) + (s.num_k - s.num_q));
  if (right_ >= 0) all = all.masked_fill(behind > right_, -INFINITY);
  if (left_ >= 0) all = all.masked_fill(behind < -left_, -INFINITY);
  return all;
}

/// 0 where dropout drops, else 1 / (1 - p): the same for the same seed and span.
Tensor HostAttention::kept(const Span& s) const {
  const at::Generator generator =
      at::detail::createCPUGenerator(rules_.seed + static_cast<uint64_t>(s.first_q) * 0x9e3779b9);
  const Tensor random =
      at::rand({q_.size(1), s.num_q, s.num_k}, generator, at::TensorOptions().dtype(at::kFloat));
  return (random >= rules_.dropout).to(at::kFloat) / (1 - rules_.dropout);
}

Tensor HostAttention::statistics_part(const Tensor& all, size_t index) const {
  const Span& s = spans_[index];
  return all.dim() == 2 ? all.narrow(1, s.first_q, s.num_q) : all[static_cast<int64_t>(index)];
}

Tensor HostAttention::rounded(const Tensor& x) const { return x.to(query_.scalar_type()).to(at::kFloat); }

HostResults HostAttention::forward() const {
  HostResults results = {at::empty(q_.sizes(), at::kFloat),
                         query_.dim() == 3
                             ? at::empty({query_.size(1), query_.size(0)}, at::kFloat)
                             : at::empty({query_.size(0), query_.size(2), query_.size(1)}, at::kFloat)};
  for (size_t i = 0; i < spans_.size(); ++i) {
    const Span& s = spans_[i];
    const Tensor scores = masked(all_scores(s), s), sums = scores.logsumexp(-1);
    statistics_part(results.log_sum_exp, i).copy_(sums);
    Tensor weights = (scores - sums.unsqueeze(-1)).exp();
    if (rules_.dropout > 0) weights = weights * kept(s);
    part(results.out, s.first_q, s.num_q).copy_(at::matmul(rounded(weights), part(v_, s.first_k, s.num_k)));
  }
  return results;
}

HostGradients HostAttention::backward(const Tensor& d_out, const Tensor& out,
                                      const Tensor& log_sum_exp) const {
  const Tensor dy = rows_of(d_out), y = rows_of(out), sums = on_cpu(log_sum_exp);
  Tensor dq = at::zeros_like(q_), dk = at::zeros_like(k_), dv = at::zeros_like(v_);
  for (size_t i = 0; i < spans_.size(); ++i) {
    const Span& s = spans_[i];
    const Tensor scores = all_scores(s);
    const Tensor weights = (masked(scores, s) - statistics_part(sums, i).unsqueeze(-1)).exp();
    const Tensor dy_s = part(dy, s.first_q, s.num_q);
    const Tensor dot = (dy_s * part(y, s.first_q, s.num_q)).sum(-1, /*keepdim=*/true);
    Tensor d_weights = at::matmul(dy_s, part(v_, s.first_k, s.num_k).transpose(1, 2)), dropped = weights;
    if (rules_.dropout > 0) {
      const Tensor kept_s = kept(s);
      d_weights = d_weights * kept_s, dropped = weights * kept_s;
    }
    Tensor d_scores = (d_weights - dot) * weights;
    if (rules_.softcap != 0) d_scores = d_scores * (1 - (scores / rules_.softcap).square());
    d_scores = rounded(d_scores);
    part(dq, s.first_q, s.num_q).copy_(at::matmul(d_scores, part(k_, s.first_k, s.num_k)) * scale_);
    part(dk, s.first_k, s.num_k)
        .copy_(at::matmul(d_scores.transpose(1, 2), part(q_, s.first_q, s.num_q)) * scale_);
    part(dv, s.first_k, s.num_k).copy_(at::matmul(rounded(dropped).transpose(1, 2), dy_s));
  }
  const auto shared = [](const Tensor& x, const Tensor& like) {
    const Tensor sum = x.view({x.size(0), like.size(-2), x.size(1) / like.size(-2), x.size(2)}).sum(2);
    return sum.to(like.scalar_type()).reshape(like.sizes());
  };
  return {shared(dq, query_), shared(dk, key_), shared(dv, key_)};
}

}  // namespace standin
