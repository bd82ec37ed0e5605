// Attention as plain products against autograd, under every rule and over a cache.
#include "trainer/kernels/attention/product_attention.h"

#include <ATen/core/IListRef.h>
#include <ATen/ops/cat.h>
#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include "tests/trainer/kernels/attention/attention_oracle.h"

namespace tycho {
namespace {

class ProductAttentionTest : public testing::TestWithParam<AttentionCase> {};

TEST_P(ProductAttentionTest, EqualsAutogradUnderEveryRule) {
  const auto& [s, type] = GetParam();
  const EveryRule every(s);
  for (const ScoreRules& rules : every.rules()) {
    const AttentionPair pair = {[&](const Tensor& qkv, Tensor& out, Tensor& log_sum_exp) {
                                  product_attention(s, rules, packed_rows(s, qkv), out, log_sum_exp);
                                },
                                [&](const Tensor& qkv, const Tensor& out, const Tensor& log_sum_exp,
                                    const Tensor& dout, Tensor& dqkv) {
                                  product_attention_backward(s, rules, packed_rows(s, qkv), out, log_sum_exp,
                                                             dout, packed_rows(s, dqkv));
                                }};
    expect_equals_autograd(s, rules, type, pair);
  }
}

// So long that a slice holds one of the key heads.
TEST(ProductAttention, TakesHeadsAFewAtATime) {
  const AttentionShape s = {1, 2100, 8, 2, 8};
  const ScoreRules rules{.scale = 0.3f, .softcap = 2.0f, .window = 300, .dropout = {.p = 0.2, .key = 3}};
  const Tensor qkv = at::randn({s.seq, 12 * 8});
  Tensor out = at::empty({s.seq, 64}), log_sum_exp = at::empty({1, 8, s.seq});
  product_attention(s, rules, packed_rows(s, qkv), out, log_sum_exp);
  expect_near(out, oracle_packed(s, rules, as_double(qkv)), 1e-5, 0);
}

TEST_P(ProductAttentionTest, OverSpansEqualsTheWhole) {
  const auto& [s, type] = GetParam();
  if (s.seq < 4) GTEST_SKIP() << "too few tokens for two spans";
  AttentionShape cut = s;
  cut.keys = s.seq, cut.early = {1, s.seq / 3}, cut.late = {s.seq - 2, 2}, cut.seq = s.seq / 3 + 2;
  const int64_t q = s.heads * s.head_dim, kv = 2 * s.kv_heads * s.head_dim;
  const Tensor qkv = at::randn({s.batch * s.seq, q + kv}).to(type), position_T = query_positions(cut);
  const auto take = [&](const Tensor& x) {
    return x.reshape({s.batch, s.seq, q}).index_select(1, position_T).reshape({s.batch * cut.seq, q});
  };
  // Only these rows have a gradient.
  Tensor dout = at::zeros({s.batch, s.seq, q});
  dout.index_copy_(1, position_T, at::randn({s.batch, cut.seq, q}).to(type).to(at::kFloat));
  dout = dout.view({-1, q}).to(type);
  const EveryRule every(s);
  for (const ScoreRules& rules : every.rules()) {
    Tensor leaf_qkv = leaf(qkv);
    const Tensor oracle = oracle_packed(s, rules, leaf_qkv);
    oracle.backward(as_double(dout));
    const AttentionRows rows = {take(qkv.narrow(1, 0, q)), qkv.narrow(1, q, kv)},
                        gradients = {at::empty_like(rows.q_NE), at::empty({s.batch * s.seq, kv}, type)};
    Tensor out = at::empty_like(rows.q_NE), log_sum_exp = at::empty({s.batch, s.heads, cut.seq});
    product_attention(cut, rules, rows, out, log_sum_exp);
    expect_near(out, take(oracle), 1e-5, 0x1p-7);
    product_attention_backward(cut, rules, rows, out, log_sum_exp, take(dout), gradients);
    Tensor gradient = at::zeros({s.batch, s.seq, q}, type);
    gradient.index_copy_(1, position_T, gradients.q_NE.view({s.batch, cut.seq, q}));
    expect_near(at::cat({gradient.view({-1, q}), gradients.kv}, 1), leaf_qkv.grad(), 2e-5, 0x1p-6);
  }
}

TEST_P(ProductAttentionTest, CachedEqualsTheLastRowsOfTheWhole) {
  const auto& [s, type] = GetParam();
  const int64_t positions = s.seq + 5;
  for (int64_t queries : {int64_t{1}, std::min<int64_t>(3, s.seq), s.seq}) {
    const Tensor q = at::randn({s.batch, queries, s.heads, s.head_dim}).to(type);
    const Tensor keys = at::randn({s.batch, s.kv_heads, positions, s.head_dim}).to(type),
                 values = at::randn_like(keys);
    const std::vector<float> slopes(static_cast<size_t>(s.heads), 0.25f);
    ScoreRules rules = plain_rules(s);
    if (queries == 1) rules.softcap = 2.0f, rules.window = 4, rules.alibi_H = slopes.data();
    const Tensor oracle = oracle_attention(as_double(q).transpose(1, 2), as_double(keys).narrow(2, 0, s.seq),
                                           as_double(values).narrow(2, 0, s.seq), rules);
    AttentionShape shape = s;
    shape.seq = queries;
    // With a cache in bf16 the scores are rounded before the softmax.
    for (const at::ScalarType cached : {type, at::kFloat})
      expect_near(attention_cached(shape, rules, q, keys.to(cached), values.to(cached), s.seq),
                  oracle.transpose(1, 2).reshape({s.batch * queries, s.heads * s.head_dim}), 1e-5, 0x1p-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, ProductAttentionTest, testing::ValuesIn(attention_cases()),
                         attention_case_name);

/// The most bytes that ATen held at once on the host while this lived, beside what it held before.
class PeakBytes final : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, int64_t bytes, size_t, size_t, c10::Device) override {
    held_ += bytes;
    peak_ = std::max(peak_, held_);
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t peak() const { return peak_; }

 private:
  int64_t held_ = 0, peak_ = 0;
};

TEST(CachedAttention, ALongPromptHoldsScoresOfAFewQueries) {
  const AttentionShape s = {1, 6000, 4, 2, 8};
  const ScoreRules rules{.scale = 0.3f, .softcap = 2.0f, .window = 700};
  const Tensor q = at::randn({1, s.seq, 4, 8}), keys = at::randn({1, 2, s.seq + 3, 8}),
               values = at::randn_like(keys);
  const auto meter = std::make_shared<PeakBytes>();
  Tensor out;
  {
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, meter);
    out = attention_cached(s, rules, q, keys, values, s.seq);
  }
  // Scores of all queries are 576 MB, and their softmax as much; of a few, 64 MiB in each of some matrices.
  EXPECT_LT(meter->peak(), int64_t{450} << 20);
  // Queries of the beginning, from both sides of a border, and of the end, each alone.
  for (const int64_t query : {int64_t{0}, int64_t{701}, int64_t{698}, int64_t{699}, s.seq - 1}) {
    AttentionShape one = s;
    one.seq = 1;
    const Tensor alone = attention_cached(one, rules, q.narrow(1, query, 1), keys, values, query + 1);
    expect_near(out.narrow(0, query, 1), alone.to(at::kDouble), 1e-5, 0);
  }
}

// Plain loops over one head at a time: heads of 4 need three parts for ten keys.
TEST(CachedAttention, WeightsAreTheSharesOfKeys) {
  const AttentionShape s = {2, 3, 4, 2, 4};
  const int64_t keys = 10;
  const std::vector<float> slopes = {0.5f, 0.25f, 0.125f, 0.0625f};
  const ScoreRules rules{.scale = 0.7f, .softcap = 2.0f, .window = 6, .alibi_H = slopes.data()};
  const Tensor q_BTHd = at::randn({s.batch, s.seq, s.heads, s.head_dim}),
               cache = at::randn({s.batch, s.kv_heads, keys + 2, s.head_dim});
  const Tensor weights_BHTS = attention_weights(s, rules, q_BTHd, cache, keys);
  ASSERT_EQ(weights_BHTS.sizes(), (std::vector<int64_t>{s.batch, s.heads, s.seq, keys}));
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t t = 0; t < s.seq; ++t) {
        const int64_t at = keys - s.seq + t;
        std::vector<double> shares(static_cast<size_t>(keys));
        double sum = 0;
        for (int64_t k = std::max<int64_t>(0, at - 6); k <= at; ++k) {
          const double dot =
              (q_BTHd[b][t][h].to(at::kDouble) * cache[b][h / 2][k].to(at::kDouble)).sum().item<double>();
          const double score =
              2 * std::tanh(0.7 * dot / 2) + slopes[static_cast<size_t>(h)] * static_cast<double>(k - at);
          sum += shares[static_cast<size_t>(k)] = std::exp(score);
        }
        for (int64_t k = 0; k < keys; ++k)
          EXPECT_NEAR(weights_BHTS[b][h][t][k].item<double>(), shares[static_cast<size_t>(k)] / sum, 1e-5)
              << b << h << t << " " << k;
      }
}

TEST(CachedAttention, NamesArgumentsThatDoNotFit) {
  const Tensor q = at::ones({1, 2, 2, 4}), cache = at::ones({1, 1, 8, 4});
  EXPECT_NE(error_of([&] {
              attention_cached({1, 1, 2, 1, 4}, {}, q.narrow(1, 0, 1).contiguous(), at::ones({1, 1, 8, 5}),
                               cache, 8);
            }).find("expected a cache [1, 1, positions, 4] with contiguous rows, got [1, 1, 8, 5]"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              attention_cached({1, 2, 2, 1, 4}, {}, q, cache, cache, 9);
            }).find("cache of 8"),
            std::string::npos);
}

}  // namespace
}  // namespace tycho
