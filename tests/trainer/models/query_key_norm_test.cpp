// Norms of heads that several ranks share, against norms of all of them by ATen and their gradients in fp64.
#include "trainer/models/query_key_norm.h"
#include "trainer/layout/decoder_slots.h"

#include <ATen/ops/layer_norm.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <gtest/gtest.h>

#include <mutex>

#include "tests/trainer/aten.h"
#include "tests/trainer/comm/thread_world.h"

namespace tycho {
namespace {

constexpr int64_t kRows = 5, kHeadDim = 4;

/// Queries and keys of a whole model, what they are normed with, and what one rank's ATen makes of them.
struct Whole {
  int64_t heads, kv_heads;
  Tensor x_NP, weight_P, bias_P;  // queries, keys, values; parameters of the values are not used

  Tensor columns(const Tensor& x, bool keys) const {
    return keys ? x.narrow(-1, heads * kHeadDim, kv_heads * kHeadDim) : x.narrow(-1, 0, heads * kHeadDim);
  }
};

Whole whole_of(int64_t heads, int64_t kv_heads, double offset) {
  const int64_t columns = (heads + 2 * kv_heads) * kHeadDim;
  return {heads, kv_heads, at::randn({kRows, columns}) * 3 + offset, at::randn({columns}),
          at::randn({columns})};
}

/// What a rank along tp has of a row of columns.
Tensor share_of(const Whole& whole, const Tensor& row, const TpShape& tp) {
  const TpItems q = tp_items(whole.heads, tp), kv = tp_items(whole.kv_heads, tp);
  const auto of = [&](int64_t first_head, const TpItems& items) {
    return row.narrow(-1, (first_head + items.begin) * kHeadDim, items.size() * kHeadDim);
  };
  return at::concat({of(0, q), of(whole.heads, kv), of(whole.heads + whole.kv_heads, kv)}, -1);
}

/// Adds a rank's columns to those of the whole.
void add_share(const Whole& whole, const Tensor& part, const TpShape& tp, Tensor& sum) {
  const TpItems q = tp_items(whole.heads, tp), kv = tp_items(whole.kv_heads, tp);
  int64_t at = 0;
  for (const auto& [first_head, items] :
       {std::pair<int64_t, TpItems>{0, q}, {whole.heads, kv}, {whole.heads + whole.kv_heads, kv}}) {
    sum.narrow(-1, (first_head + items.begin) * kHeadDim, items.size() * kHeadDim)
        .add_(part.narrow(-1, at, items.size() * kHeadDim));
    at += items.size() * kHeadDim;
  }
}

/// Indices of the views below. RMSNorm has no biases.
BlockParams params_of(const NormSpec& norm) {
  BlockParams at = {.q_norm_weight = 0, .k_norm_weight = 2};
  if (norm.kind == NormKind::kLayer) at.q_norm_bias = 1, at.k_norm_bias = 3;
  return at;
}

constexpr NormSpec kLayer = {.kind = NormKind::kLayer}, kRms = {},
                   kRmsAroundZero = {.eps = 1e-6, .weight_offset = 1};

DecoderSpec spec_of(const Whole& whole, const TpShape& tp, const NormSpec& norm) {
  DecoderSpec spec;
  spec.attention.heads = whole.heads, spec.attention.kv_heads = whole.kv_heads,
  spec.attention.head_dim = kHeadDim;
  spec.attention.qk_norm = QkNorm::kTogether, spec.attention.qk = norm;
  spec.ffn.width = spec.vocab_size = 12;  // which ranks share too
  return tp_spec(spec, tp);
}

/// Views of the norm's parameters, or of zeros for their gradients.
Views views_of(const DecoderSpec& spec, const Tensor& weight_P, const Tensor& bias_P) {
  const int64_t q = spec.attention.heads * kHeadDim, k = spec.attention.kv_heads * kHeadDim;
  return {weight_P.narrow(0, 0, q), bias_P.narrow(0, 0, q), weight_P.narrow(0, q, k), bias_P.narrow(0, q, k)};
}

/// Slots for so many norms of queries and of keys in a row. RMSNorm has no means.
Views saved_slots(const NormSpec& norm, int64_t q_groups = 1, int64_t k_groups = 1) {
  Views saved(block_saved::kDX + 1);
  const auto put = [&](int slot, int64_t groups) {
    saved[static_cast<size_t>(slot)] = at::empty({kRows * groups}, at::kFloat);
  };
  const int64_t means = norm.kind == NormKind::kLayer ? 1 : 0;
  put(block_saved::kQMean, means * q_groups), put(block_saved::kQInv, q_groups);
  put(block_saved::kKMean, means * k_groups), put(block_saved::kKInv, k_groups);
  return saved;
}

/// Norm of the last dim of x, in fp64.
Tensor oracle(const NormSpec& norm, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (norm.kind == NormKind::kLayer) return at::layer_norm(x, {x.size(-1)}, weight, bias, norm.eps);
  return x * (x.square().mean(-1, /*keepdim=*/true) + norm.eps).rsqrt() * (norm.weight_offset + weight);
}

Tensor leaf(const Tensor& x) { return x.detach().to(at::kDouble).contiguous().requires_grad_(true); }

double distance(const Tensor& given, const Tensor& wanted) {
  return (given.to(at::kDouble) - wanted).norm().item<double>() / wanted.norm().item<double>();
}

/// Forward and backward on so many ranks; heads of keys that several have get shares of a gradient.
void expect_norm(const NormSpec& kind, int64_t heads, int64_t kv_heads, int tp_size, double offset,
                 double tolerance) {
  SCOPED_TRACE(fmt::format("{} heads, {} of keys, {} ranks", heads, kv_heads, tp_size));
  const Whole whole = whole_of(heads, kv_heads, offset);
  Tensor y = at::zeros_like(whole.x_NP), dy = at::zeros_like(y), dx = at::zeros_like(y),
         dweight = at::zeros_like(whole.weight_P), dbias = at::zeros_like(dweight);
  std::vector<Tensor> dys;
  for (int rank = 0; rank < tp_size; ++rank) {
    const TpShape tp = {tp_size, rank};
    dys.push_back(at::randn(share_of(whole, whole.x_NP, tp).sizes()));
    add_share(whole, dys.back(), tp, dy);
  }
  std::mutex mutex;
  ThreadWorld(tp_size).run([&](Communicator& world) {
    const ParallelRegion region(world, /*sequence=*/true);
    const TpShape tp = {tp_size, world.rank()};
    const DecoderSpec spec = spec_of(whole, tp, kind);
    const QueryKeyNorm norm(spec, params_of(spec.attention.qk), /*has_keys=*/true, region);
    const Views p = views_of(spec, share_of(whole, whole.weight_P, tp), share_of(whole, whole.bias_P, tp));
    const Tensor x_NP = share_of(whole, whole.x_NP, tp);
    Tensor y_NP = x_NP.clone(), generated_NP = x_NP.clone(), d_NP = dys[static_cast<size_t>(tp.rank)].clone();
    Views saved = saved_slots(kind);
    norm.forward(p, y_NP, saved);
    norm.apply(p, generated_NP);
    EXPECT_TRUE(at::equal(generated_NP, y_NP));
    Tensor own_dweight = at::full({x_NP.size(1)}, 7.0), own_dbias = at::full({x_NP.size(1)}, 7.0);
    Views g = views_of(spec, own_dweight, own_dbias);
    Tensor again_NP = d_NP.clone();
    norm.backward(p, x_NP, saved, d_NP, g, /*add=*/false);
    norm.backward(p, x_NP, saved, again_NP, g, /*add=*/true);  // twice the gradient
    EXPECT_TRUE(at::equal(again_NP, d_NP));
    const std::lock_guard lock(mutex);
    Tensor counted = at::zeros_like(y);  // copies of a head have the same
    add_share(whole, y_NP, tp, counted);
    y = at::where(counted != 0, counted, y);
    add_share(whole, d_NP, tp, dx);
    add_share(whole, own_dweight / 2, tp, dweight);
    add_share(whole, own_dbias / 2, tp, dbias);
  });
  for (const bool keys : {false, true}) {
    Tensor x = leaf(whole.columns(whole.x_NP, keys)), weight = leaf(whole.columns(whole.weight_P, keys)),
           bias = leaf(whole.columns(whole.bias_P, keys));
    const Tensor wanted = oracle(kind, x, weight, bias);
    wanted.backward(whole.columns(dy, keys).to(at::kDouble));
    EXPECT_LE(distance(whole.columns(y, keys), wanted), tolerance);
    EXPECT_LE(distance(whole.columns(dx, keys), x.grad()), tolerance);
    EXPECT_LE(distance(whole.columns(dweight, keys), weight.grad()), tolerance);
    if (kind.kind != NormKind::kLayer) continue;  // has no bias
    EXPECT_LE(distance(whole.columns(dbias, keys), bias.grad()), tolerance);
  }
}

TEST(QueryKeyNorm, OfHeadsOnSeveralRanksIsThatOfAllTogether) {
  at::manual_seed(3);
  for (const NormSpec& norm : {kLayer, kRms, kRmsAroundZero}) {
    expect_norm(norm, 4, 4, 2, 0, 1e-6);
    expect_norm(norm, 6, 3, 3, 0, 1e-6);
    expect_norm(norm, 6, 3, 6, 0, 1e-6);  // two ranks have each head of keys
    expect_norm(norm, 4, 1, 4, 0, 1e-6);
    expect_norm(norm, 4, 2, 1, 0, 1e-6);
  }
}

TEST(QueryKeyNorm, HoldsForRowsFarFromZero) {
  at::manual_seed(4);
  // fp32 keeps differences of 3 around 1,000 to 2e-5; a difference of squares would keep nothing of them.
  expect_norm(kLayer, 4, 2, 2, 1000, 1e-4);
}

TEST(QueryKeyNorm, OfEachHeadHasTheGradientsOfItsOneWeight) {
  at::manual_seed(6);
  for (const NormSpec& kind : {kLayer, kRms, kRmsAroundZero}) {
    const Whole whole = whole_of(4, 2, 0);
    DecoderSpec spec = spec_of(whole, {}, kind);
    spec.attention.qk_norm = QkNorm::kPerHead;
    ThreadWorld(1).run([&](Communicator& world) {
      const QueryKeyNorm norm(spec, params_of(spec.attention.qk), /*has_keys=*/true,
                              ParallelRegion(world, true));
      const Views p = {at::randn({kHeadDim}), at::randn({kHeadDim}), at::randn({kHeadDim}),
                       at::randn({kHeadDim})};
      Views g = {at::zeros({kHeadDim}), at::zeros({kHeadDim}), at::zeros({kHeadDim}), at::zeros({kHeadDim})};
      Tensor y_NP = whole.x_NP.clone(), generated_NP = y_NP.clone(), d_NP = at::randn_like(y_NP);
      const Tensor dy_NP = d_NP.clone();
      Views saved = saved_slots(kind, 4, 2);
      norm.forward(p, y_NP, saved);
      norm.apply(p, generated_NP);
      EXPECT_TRUE(at::equal(generated_NP, y_NP));
      norm.backward(p, whole.x_NP, saved, d_NP, g, /*add=*/false);
      for (const bool keys : {false, true}) {
        const size_t at = keys ? 2 : 0;
        const auto heads = [&](const Tensor& x) {
          return whole.columns(x, keys).reshape({kRows, -1, kHeadDim});
        };
        Tensor x = leaf(heads(whole.x_NP)), weight = leaf(p[at]), bias = leaf(p[at + 1]);
        const Tensor wanted = oracle(kind, x, weight, bias);
        wanted.backward(heads(dy_NP).to(at::kDouble));
        EXPECT_LE(distance(heads(y_NP), wanted), 1e-6);
        EXPECT_LE(distance(heads(d_NP), x.grad()), 1e-6);
        EXPECT_LE(distance(g[at], weight.grad()), 1e-6);
        if (kind.kind != NormKind::kLayer) continue;  // has no bias
        EXPECT_LE(distance(g[at + 1], bias.grad()), 1e-6);
      }
      const Tensor values = whole.x_NP.narrow(1, 6 * kHeadDim, 2 * kHeadDim);
      EXPECT_TRUE(at::equal(y_NP.narrow(1, 6 * kHeadDim, 2 * kHeadDim), values)) << "values are left alone";
    });
  }
}

TEST(QueryKeyNorm, OfEachHeadNeedsNoOtherRank) {
  at::manual_seed(5);
  const Whole whole = whole_of(4, 2, 0);
  ThreadWorld(2).run([&](Communicator& world) {
    if (world.rank() == 1) return;  // would be waited for
    DecoderSpec spec = spec_of(whole, {2, 0}, kLayer);
    spec.attention.qk_norm = QkNorm::kPerHead;
    const QueryKeyNorm norm(spec, params_of(spec.attention.qk), /*has_keys=*/false,
                            ParallelRegion(world, true));
    const Tensor ones = at::ones({kHeadDim}), zeros = at::zeros({kHeadDim});
    Tensor x_NP = share_of(whole, whole.x_NP, {2, 0});
    const Tensor before = x_NP.clone();
    norm.apply({ones, zeros, ones, zeros}, x_NP);
    const int64_t queries = spec.attention.heads * kHeadDim;
    const Tensor heads = before.narrow(1, 0, queries).reshape({kRows, spec.attention.heads, kHeadDim});
    const Tensor wanted = at::layer_norm(heads.to(at::kDouble), {kHeadDim}).reshape({kRows, queries});
    EXPECT_LE(distance(x_NP.narrow(1, 0, queries), wanted), 1e-6);
    EXPECT_TRUE(at::equal(x_NP.narrow(1, queries, before.size(1) - queries),
                          before.narrow(1, queries, before.size(1) - queries)))
        << "keys of another block are left alone";
  });
}

}  // namespace
}  // namespace tycho
