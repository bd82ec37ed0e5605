// Processes some rows at a time, so that their fp32 copies stay small.
#include "trainer/models/query_key_norm.h"
#include "trainer/layout/decoder_slots.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/var_mean.h>

#include <algorithm>

#include "trainer/models/linear.h"

namespace tycho {
namespace {

constexpr int64_t kNumbersAtOnce = int64_t{1} << 20;

/// Calls body(i, n) for groups of n rows, starting at row i.
template <class Body>
void for_rows(const Tensor& x_NC, const Body& body) {
  const int64_t rows = std::max<int64_t>(1, kNumbersAtOnce / x_NC.size(1));
  for (int64_t i = 0; i < x_NC.size(0); i += rows) body(i, std::min(rows, x_NC.size(0) - i));
}

Tensor fp32_rows(const Tensor& x_NC, int64_t i, int64_t n) { return x_NC.narrow(0, i, n).to(at::kFloat); }

/// Returns one number for each of n rows, starting at row i.
Tensor of_rows(const Tensor& x_N, int64_t i, int64_t n) { return x_N.narrow(0, i, n).unsqueeze(1); }

/// Returns fp32 rows times `inv`, minus the mean before that where the norm has one.
Tensor normal_rows(const Tensor& x_NC, const NormStats& stats, int64_t i, int64_t n) {
  const Tensor rows_NC = fp32_rows(x_NC, i, n);
  return (stats.mean.defined() ? rows_NC - of_rows(stats.mean, i, n) : rows_NC) * of_rows(stats.inv, i, n);
}

Tensor fp32_weight(const Tensor& weight_D, double offset) { return weight_D.to(at::kFloat) + offset; }

/// Computes y = xhat (offset + weight) + bias, in place.
void store_normal(NormParams p, double offset, const NormStats& stats, Tensor& x_NC) {
  const Tensor weight_C = fp32_weight(p.weight_D, offset);
  for_rows(x_NC, [&](int64_t i, int64_t n) {
    Tensor y_NC = normal_rows(x_NC, stats, i, n) * weight_C;
    if (p.bias_D.defined()) y_NC.add_(p.bias_D.to(at::kFloat));
    x_NC.narrow(0, i, n).copy_(y_NC);
  });
}

void add_to(Tensor& grad_D, const Tensor& sum_D) {
  if (grad_D.defined()) grad_D.add_(sum_D);
}

/// Overwrites dy with dx = (g - mean(g) - xhat mean(g xhat)) inv, for g = dy (offset + weight) and without
/// mean(g) where the norm has no mean; dweight += dy xhat, dbias += dy. means_MN: of g if needed, and of g
/// xhat.
void store_gradients(NormParams p, double offset, const Tensor& x_NC, const NormStats& stats,
                     const Tensor& means_MN, Tensor& dy_NC, NormGrads grads) {
  const Tensor weight_C = fp32_weight(p.weight_D, offset);
  for_rows(x_NC, [&](int64_t i, int64_t n) {
    const Tensor xhat_NC = normal_rows(x_NC, stats, i, n), dy = fp32_rows(dy_NC, i, n);
    add_to(grads.weight_D, (dy * xhat_NC).sum(0));
    add_to(grads.bias_D, dy.sum(0));
    Tensor dx_NC = dy * weight_C;
    if (stats.mean.defined()) dx_NC.sub_(of_rows(means_MN[0], i, n));
    dx_NC.sub_(xhat_NC * of_rows(means_MN[-1], i, n)).mul_(of_rows(stats.inv, i, n));
    dy_NC.narrow(0, i, n).copy_(dx_NC);
  });
}

}  // namespace

NormParams QueryKeyNorm::Side::params(const Views& p) const { return {view(p, weight), view(p, bias)}; }

NormStats QueryKeyNorm::Side::stats(Views& saved) const { return {view(saved, mean), view(saved, inv)}; }

QueryKeyNorm::QueryKeyNorm(const DecoderSpec& spec, const BlockParams& at, bool has_keys,
                           const ParallelRegion& region)
    : region_(region),
      shared_(spec.attention.qk_norm == QkNorm::kTogether && region.is_shared()),
      spec_(spec.attention.qk),
      norm_(spec_) {
  if (spec.attention.qk_norm == QkNorm::kNone) return;
  const int64_t queries = spec.attention.heads * spec.attention.head_dim,
                keys = spec.attention.kv_heads * spec.attention.head_dim;
  const auto mean = [&](int slot) { return has_mean() ? slot : -1; };
  sides_.push_back(
      {at.q_norm_weight, at.q_norm_bias, mean(block_saved::kQMean), block_saved::kQInv, 0, queries});
  if (!has_keys) return;
  sides_.push_back(
      {at.k_norm_weight, at.k_norm_bias, mean(block_saved::kKMean), block_saved::kKInv, queries, keys});
}

// Each rank's variance is around its own mean (Chan et al. 1979 for parts of equal size), for rows far from
// 0.
Tensor QueryKeyNorm::shared_statistics(const Tensor& qkv_NP) const {
  std::vector<Tensor> own;
  for (const Side& side : sides_) {
    const Tensor x_NC = side.of(qkv_NP);
    own.push_back(at::empty({has_mean() ? 2 : 1, x_NC.size(0)}, x_NC.options().dtype(at::kFloat)));
    for_rows(x_NC, [&](int64_t i, int64_t n) {
      if (!has_mean()) {
        own.back()[0].narrow(0, i, n).copy_(fp32_rows(x_NC, i, n).square().mean(1));
        return;
      }
      const auto [var_N, mean_N] =
          at::var_mean(fp32_rows(x_NC, i, n), at::IntArrayRef{1}, /*unbiased=*/false);
      own.back()[0].narrow(0, i, n).copy_(mean_N);
      own.back()[1].narrow(0, i, n).copy_(var_N);
    });
  }
  const Tensor all = region_.gathered(at::stack(own));  // [tp, sides, 2 or 1, N]
  if (!has_mean()) return (all.mean(0) + spec_.eps).rsqrt();
  const Tensor means = all.select(2, 0), mean = means.mean(0);
  const Tensor var = all.select(2, 1).mean(0) + (means - mean).square().mean(0);
  return at::stack({mean, (var + spec_.eps).rsqrt()}, 1);
}

Tensor QueryKeyNorm::shared_means(const Views& p, const Tensor& x_NP, Views& saved,
                                  const Tensor& d_qkv_NP) const {
  std::vector<Tensor> own;
  for (const Side& side : sides_) {
    const Tensor x_NC = side.of(x_NP), dy_NC = side.of(d_qkv_NP);
    const NormStats stats = side.stats(saved);
    const Tensor weight_C = fp32_weight(view(p, side.weight), spec_.weight_offset);
    own.push_back(at::empty({has_mean() ? 2 : 1, x_NC.size(0)}, x_NC.options().dtype(at::kFloat)));
    for_rows(x_NC, [&](int64_t i, int64_t n) {
      const Tensor g_NC = fp32_rows(dy_NC, i, n) * weight_C;
      if (has_mean()) own.back()[0].narrow(0, i, n).copy_(g_NC.mean(1));
      own.back()[-1].narrow(0, i, n).copy_((g_NC * normal_rows(x_NC, stats, i, n)).mean(1));
    });
  }
  return region_.gathered(at::stack(own)).mean(0);
}

void QueryKeyNorm::forward(const Views& p, Tensor& qkv_NP, Views& saved) const {
  const Tensor statistics = shared_ ? shared_statistics(qkv_NP) : Tensor();
  for (size_t s = 0; s < sides_.size(); ++s) {
    const Side& side = sides_[s];
    Tensor x_NC = side.of(qkv_NP);
    const NormStats stats = side.stats(saved);
    if (!shared_) {
      norm_.forward(side.params(p), x_NC, stats, x_NC);
      continue;
    }
    const Tensor own_MN = statistics[static_cast<int64_t>(s)];
    if (has_mean()) stats.mean.copy_(own_MN[0]);
    stats.inv.copy_(own_MN[-1]);
    store_normal(side.params(p), spec_.weight_offset, stats, x_NC);
  }
}

void QueryKeyNorm::backward(const Views& p, const Tensor& x_NP, Views& saved, Tensor& d_qkv_NP, Views& g,
                            bool add) const {
  const Tensor means = shared_ ? shared_means(p, x_NP, saved, d_qkv_NP) : Tensor();
  for (size_t s = 0; s < sides_.size(); ++s) {
    const Side& side = sides_[s];
    const Tensor x_NC = side.of(x_NP);
    Tensor dy_NC = side.of(d_qkv_NP);
    const NormGrads grads = {view(g, side.weight), view(g, side.bias)};
    if (!shared_) {
      norm_.backward(side.params(p), x_NC, side.stats(saved), dy_NC, dy_NC, /*add_to_dx=*/false, grads, add);
      continue;
    }
    for (Tensor* grad_D : {&grads.weight_D, &grads.bias_D})
      if (grad_D->defined() && !add) grad_D->zero_();
    store_gradients(side.params(p), spec_.weight_offset, x_NC, side.stats(saved),
                    means[static_cast<int64_t>(s)], dy_NC, grads);
  }
}

void QueryKeyNorm::apply(const Views& p, Tensor& qkv_NP) const {
  const Tensor statistics = shared_ ? shared_statistics(qkv_NP) : Tensor();
  for (size_t s = 0; s < sides_.size(); ++s) {
    const Side& side = sides_[s];
    Tensor x_NC = side.of(qkv_NP);
    if (!shared_) {
      x_NC.copy_(norm_.apply(side.params(p), x_NC));
      continue;
    }
    const Tensor own_MN = statistics[static_cast<int64_t>(s)];
    Tensor mean_N = has_mean() ? own_MN[0] : Tensor(), inv_N = own_MN[-1];
    store_normal(side.params(p), spec_.weight_offset, {mean_N, inv_N}, x_NC);
  }
}

}  // namespace tycho
