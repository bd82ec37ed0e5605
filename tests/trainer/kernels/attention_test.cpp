// Attention against softmax(q kᵀ) v with autograd in double.
#include "trainer/kernels/attention.h"

#include <cmath>

#include "tests/trainer/kernels/kernel_test.h"
#include "trainer/base/philox.h"

namespace tycho {
namespace {

struct Case {
  AttentionShape shape;
  at::ScalarType type;
};

class AttentionTest : public testing::TestWithParam<Case> {};

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

/// q: [B, H, T, d]; k, v: [B, K, S, d]; the last T of S positions are q's. Rules as their comments say them.
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

ScoreRules plain(const AttentionShape& s) {
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

struct Memory {
  Tensor out_NE, log_sum_exp_BHT;
  std::vector<Tensor> state;
  Memory(const AttentionShape& s, const Tensor& qkv)
      : out_NE(at::full({s.batch * s.seq, s.heads * s.head_dim}, 7.0, qkv.options())),
        log_sum_exp_BHT(at::full({s.batch, s.heads, s.seq}, 7.0, at::kFloat)) {}
  operator AttentionSaved() { return {out_NE, log_sum_exp_BHT, state}; }
};

void expect_equals_autograd(const AttentionShape& s, const ScoreRules& rules, at::ScalarType type) {
  const Tensor qkv = at::randn({s.batch * s.seq, (s.heads + 2 * s.kv_heads) * s.head_dim}).to(type);
  const Tensor dout = at::randn({s.batch * s.seq, s.heads * s.head_dim}).to(type);
  Tensor leaf_qkv = leaf(qkv);
  const Tensor out = oracle_packed(s, rules, leaf_qkv);
  out.backward(as_double(dout));
  Memory saved(s, qkv);
  attention(s, rules, qkv, saved);
  expect_near(saved.out_NE, out, 1e-5, 0x1p-7);
  Tensor dqkv = at::full_like(qkv, 7.0);
  attention_backward(s, rules, qkv, saved, dout, dqkv);
  expect_near(dqkv, leaf_qkv.grad(), 2e-5, 0x1p-6);
  Tensor again = at::empty_like(dqkv);
  attention_backward(s, rules, qkv, saved, dout, again);
  EXPECT_TRUE(at::equal(dqkv, again));
}

TEST_P(AttentionTest, EqualsAutograd) {
  expect_equals_autograd(GetParam().shape, plain(GetParam().shape), GetParam().type);
}

TEST_P(AttentionTest, EqualsAutogradUnderEveryRule) {
  const auto& [s, type] = GetParam();
  std::vector<float> slopes;
  for (int64_t head = 0; head < s.heads; ++head)
    slopes.push_back(static_cast<float>(std::exp2(-1.0 - static_cast<double>(head))));
  std::vector<int32_t> documents;
  for (int64_t token = 0; token < s.batch * s.seq; ++token)
    documents.push_back(static_cast<int32_t>(token % s.seq / 29 + (token % s.seq > 100 ? 3 : 0)));
  ScoreRules alibi = plain(s), window = plain(s), cap = plain(s), packed = plain(s), all{.scale = 0.3f};
  alibi.alibi_H = all.alibi_H = slopes.data();
  window.window = all.window = 21;
  cap.softcap = all.softcap = 1.5f;
  packed.document_BT = all.document_BT = documents.data();
  ScoreRules self_only = plain(s), dropped = plain(s);
  self_only.window = 0;
  dropped.dropout = {.p = 0.25, .key = 0xfedcba9876543210};
  all.dropout = {.p = 0.1, .key = 42};
  for (const ScoreRules& rules : {alibi, window, cap, packed, all, self_only, dropped})
    expect_equals_autograd(s, rules, type);
}

TEST(Attention, HasOneDefinitionOnEveryTable) {
  const AttentionShape s = {2, 150, 4, 2, 24};
  const Tensor qkv = at::randn({300, 8 * 24}), dout = at::randn({300, 4 * 24});
  ScoreRules rules = plain(s);
  rules.dropout = {.p = 0.2, .key = 9};
  const Tensor oracle = oracle_packed(s, rules, as_double(qkv));
  for (const char* name : {"generic", "avx2", "avx512"}) {
    const KernelTable* table = find_table(name);
    if (!table) continue;
    Memory saved(s, qkv);
    table->attention(s, rules, Dtype::kFp32, qkv.const_data_ptr(), saved.out_NE.mutable_data_ptr(),
                     saved.log_sum_exp_BHT.mutable_data_ptr<float>(), nullptr);
    expect_near(saved.out_NE, oracle, 1e-5, 0);
    Tensor leaf_qkv = leaf(qkv), dqkv = at::empty_like(qkv);
    oracle_packed(s, rules, leaf_qkv).backward(as_double(dout));
    table->attention_backward(s, rules, Dtype::kFp32, qkv.const_data_ptr(), saved.out_NE.const_data_ptr(),
                              saved.log_sum_exp_BHT.const_data_ptr<float>(), dout.const_data_ptr(),
                              dqkv.mutable_data_ptr(), nullptr);
    expect_near(dqkv, leaf_qkv.grad(), 2e-5, 0);
  }
}

TEST_P(AttentionTest, CachedEqualsTheLastRowsOfTheWhole) {
  const auto& [s, type] = GetParam();
  const int64_t positions = s.seq + 5;
  for (int64_t queries : {int64_t{1}, std::min<int64_t>(3, s.seq), s.seq}) {
    const Tensor q = at::randn({s.batch, queries, s.heads, s.head_dim}).to(type);
    const Tensor keys = at::randn({s.batch, s.kv_heads, positions, s.head_dim}).to(type),
                 values = at::randn_like(keys);
    const std::vector<float> slopes(static_cast<size_t>(s.heads), 0.25f);
    ScoreRules rules = plain(s);
    if (queries == 1) rules.softcap = 2.0f, rules.window = 4, rules.alibi_H = slopes.data();
    const Tensor oracle = oracle_attention(as_double(q).transpose(1, 2), as_double(keys).narrow(2, 0, s.seq),
                                           as_double(values).narrow(2, 0, s.seq), rules);
    AttentionShape shape = s;
    shape.seq = queries;
    const Tensor out = attention_cached(shape, rules, q, keys, values, s.seq);
    // With a cache in bf16 the scores are rounded before the softmax.
    expect_near(out, oracle.transpose(1, 2).reshape({s.batch * queries, s.heads * s.head_dim}), 1e-5, 0x1p-6);
  }
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  const AttentionShape& s = info.param.shape;
  return "B" + std::to_string(s.batch) + "T" + std::to_string(s.seq) + "H" + std::to_string(s.heads) + "K" +
         std::to_string(s.kv_heads) + "d" + std::to_string(s.head_dim) +
         (info.param.type == at::kFloat ? "_fp32" : "_bf16");
}

std::vector<Case> cases() {
  std::vector<Case> all;
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

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionTest, testing::ValuesIn(cases()), case_name);

TEST(AttentionOp, NamesWhatDoesNotFit) {
  const Tensor qkv = at::ones({6, 20});
  const auto error = [&](const AttentionShape& s) {
    return error_of([&] {
      Memory saved(s, qkv);
      attention(s, plain(s), qkv, saved);
    });
  };
  EXPECT_EQ(error({2, 3, 3, 2, 4}), "[attention] 3 query heads cannot share 2 key heads evenly");
  EXPECT_NE(error({2, 3, 2, 1, 4}).find("[6, 16]"), std::string::npos);
  EXPECT_NE(error_of([&] {
              const AttentionShape s = {2, 3, 3, 1, 4};
              Memory saved(s, qkv);
              attention(s, {.dropout = {.p = 1.0}}, qkv, saved);
            }).find("probability of dropout in [0, 1), got 1"),
            std::string::npos);
  const Tensor q = at::ones({1, 2, 2, 4}), cache = at::ones({1, 1, 8, 4});
  EXPECT_NE(error_of([&] {
              attention_cached({1, 2, 2, 1, 4}, {}, q, cache, cache, 9);
            }).find("cache of 8"),
            std::string::npos);
}

}  // namespace
}  // namespace tycho
