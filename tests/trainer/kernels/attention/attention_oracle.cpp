// Attention in double, with autograd.
#include "tests/trainer/kernels/attention/attention_oracle.h"

#include <cmath>

#include "trainer/base/random/philox.h"

namespace tycho {
namespace {

/// 0 where dropout drops, else 1 / (1 - p): [B, H, T, T], drawn number by number.
Tensor dropout_factors(const DropoutMask& mask, at::IntArrayRef shape) {
  Tensor factors = at::empty(shape, at::kDouble);
  auto* next = factors.mutable_data_ptr<double>();
  const int64_t keys = shape.back();
  for (int64_t row = 0; row < factors.numel() / keys; ++row)
    for (int64_t key = 0; key < keys; ++key) {
      const auto words =
          philox(mask.key, static_cast<uint64_t>(key / 64 * 16 + key % 16), static_cast<uint64_t>(row));
      *next++ = words[static_cast<size_t>(key % 64 / 16)] * 0x1p-32 >= mask.p ? 1 / (1 - mask.p) : 0.0;
    }
  return factors;
}

}  // namespace

Tensor oracle_attention(const Tensor& q, Tensor k, Tensor v, const ScoreRules& rules) {
  const int64_t group = q.size(1) / k.size(1), queries = q.size(2), keys = k.size(2);
  k = k.repeat_interleave(group, 1);
  v = v.repeat_interleave(group, 1);
  Tensor scores = at::matmul(q, k.transpose(2, 3)) * static_cast<double>(rules.scale);
  if (rules.softcap != 0.0f) scores = at::tanh(scores / rules.softcap) * rules.softcap;
  const Tensor query = at::arange(keys - queries, keys).unsqueeze(1), key = at::arange(keys).unsqueeze(0);
  if (rules.alibi_H) {
    const Tensor slopes = at::tensor(at::ArrayRef<float>(rules.alibi_H, q.size(1)), at::kDouble);
    scores = scores + slopes.view({-1, 1, 1}) * (key - query).to(at::kDouble);
  }
  Tensor hidden = (key > query).expand({q.size(0), 1, queries, keys});
  if (rules.window >= 0) hidden = hidden | (key < query - rules.window);
  if (rules.document_BT) {
    const Tensor document =
        at::tensor(at::ArrayRef<int32_t>(rules.document_BT, q.size(0) * keys), at::kInt).view({-1, 1, keys});
    hidden = hidden | (document.unsqueeze(3) != document.unsqueeze(2));
  }
  Tensor weights = scores.masked_fill(hidden, -INFINITY).softmax(-1);
  if (rules.dropout.p > 0) weights = weights * dropout_factors(rules.dropout, weights.sizes());
  return at::matmul(weights, v);
}

ScoreRules plain_rules(const AttentionShape& s) {
  return {.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(s.head_dim)))};
}

Tensor oracle_packed(const AttentionShape& s, const ScoreRules& rules, const Tensor& qkv) {
  const Tensor heads = qkv.view({s.batch, s.seq, s.heads + 2 * s.kv_heads, s.head_dim}).transpose(1, 2);
  const Tensor out = oracle_attention(heads.narrow(1, 0, s.heads), heads.narrow(1, s.heads, s.kv_heads),
                                      heads.narrow(1, s.heads + s.kv_heads, s.kv_heads), rules);
  return out.transpose(1, 2).reshape({s.batch * s.seq, s.heads * s.head_dim});
}

void expect_near(const Tensor& actual, const Tensor& oracle, double fp32, double bf16) {
  const double limit = (actual.scalar_type() == at::kFloat ? fp32 : bf16) * oracle.abs().max().item<double>();
  EXPECT_LE((as_double(actual) - oracle).abs().max().item<double>(), limit);
}

EveryRule::EveryRule(const AttentionShape& s) {
  for (int64_t head = 0; head < s.heads; ++head)
    slopes_.push_back(static_cast<float>(std::exp2(-1.0 - static_cast<double>(head))));
  for (int64_t token = 0; token < s.batch * s.seq; ++token)
    documents_.push_back(static_cast<int32_t>(token % s.seq / 29 + (token % s.seq > 100 ? 3 : 0)));
  const ScoreRules plain = plain_rules(s);
  ScoreRules alibi = plain, window = plain, cap = plain, packed = plain, all{.scale = 0.3f};
  alibi.alibi_H = all.alibi_H = slopes_.data();
  window.window = all.window = 21;
  cap.softcap = all.softcap = 1.5f;
  packed.document_BT = all.document_BT = documents_.data();
  ScoreRules self_only = plain, dropped = plain;
  self_only.window = 0;
  dropped.dropout = {.p = 0.25, .key = 0xfedcba9876543210};
  all.dropout = {.p = 0.1, .key = 42};
  rules_ = {plain, alibi, window, cap, packed, all, self_only, dropped};
}

std::string attention_case_name(const testing::TestParamInfo<AttentionCase>& info) {
  const AttentionShape& s = info.param.shape;
  return "B" + std::to_string(s.batch) + "T" + std::to_string(s.seq) + "H" + std::to_string(s.heads) + "K" +
         std::to_string(s.kv_heads) + "d" + std::to_string(s.head_dim) +
         (info.param.type == at::kFloat ? "_fp32" : "_bf16");
}

std::vector<AttentionCase> attention_cases() {
  std::vector<AttentionCase> all;
  for (const AttentionShape& shape : std::vector<AttentionShape>{{1, 1, 1, 1, 4},
                                                                 {2, 17, 3, 3, 10},
                                                                 {1, 130, 4, 4, 32},
                                                                 {2, 65, 6, 2, 16},
                                                                 {1, 40, 4, 1, 64},
                                                                 {3, 70, 8, 4, 64},
                                                                 {1, 600, 2, 1, 48}})
    for (const auto type : {at::kFloat, at::kBFloat16}) all.push_back({shape, type});
  return all;
}

void expect_equals_autograd(const AttentionShape& s, const ScoreRules& rules, at::ScalarType type,
                            const AttentionPair& pair, const at::Device& device, bool repeats) {
  const Tensor qkv = at::randn({s.batch * s.seq, (s.heads + 2 * s.kv_heads) * s.head_dim}).to(type);
  const Tensor dout = at::randn({s.batch * s.seq, s.heads * s.head_dim}).to(type);
  Tensor leaf_qkv = leaf(qkv);
  const Tensor oracle = oracle_packed(s, rules, leaf_qkv);
  oracle.backward(as_double(dout));
  const Tensor on = qkv.to(device), d_on = dout.to(device);
  Tensor out = at::full(dout.sizes(), 7.0, on.options()), dqkv = at::full_like(on, 7.0);
  Tensor log_sum_exp = at::full({s.batch, s.heads, s.seq}, 7.0, on.options().dtype(at::kFloat));
  pair.forward(on, out, log_sum_exp);
  expect_near(out, oracle, 1e-5, 0x1p-7);
  pair.backward(on, out, log_sum_exp, d_on, dqkv);
  expect_near(dqkv, leaf_qkv.grad(), 2e-5, 0x1p-6);
  if (!repeats) return;
  Tensor again = at::empty_like(dqkv);
  pair.backward(on, out, log_sum_exp, d_on, again);
  EXPECT_TRUE(at::equal(dqkv, again));
}

}  // namespace tycho
