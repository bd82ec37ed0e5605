// Attention against softmax(q kᵀ) v with autograd in double.
#include "trainer/kernels/attention.h"

#include <cmath>

#include "tests/trainer/kernels/kernel_test.h"

namespace tycho {
namespace {

struct Case {
  AttentionShape shape;
  at::ScalarType type;
};

class AttentionTest : public testing::TestWithParam<Case> {};

/// q: [B, H, T, d]; k, v: [B, K, S, d]; the last T of S positions are q's.
Tensor oracle_attention(const Tensor& q, Tensor k, Tensor v) {
  const int64_t group = q.size(1) / k.size(1), queries = q.size(2), keys = k.size(2);
  k = k.repeat_interleave(group, 1);
  v = v.repeat_interleave(group, 1);
  const Tensor mask = at::ones({queries, keys}, at::kBool).triu(keys - queries + 1);
  const Tensor scores = at::matmul(q, k.transpose(2, 3)) / std::sqrt(static_cast<double>(q.size(3)));
  return at::matmul(scores.masked_fill(mask, -INFINITY).softmax(-1), v);
}

Tensor oracle_packed(const AttentionShape& s, const Tensor& qkv) {
  const Tensor heads = qkv.view({s.batch, s.seq, s.heads + 2 * s.kv_heads, s.head_dim}).transpose(1, 2);
  const Tensor out = oracle_attention(heads.narrow(1, 0, s.heads), heads.narrow(1, s.heads, s.kv_heads),
                                      heads.narrow(1, s.heads + s.kv_heads, s.kv_heads));
  return out.transpose(1, 2).reshape({s.batch * s.seq, s.heads * s.head_dim});
}

void expect_near(const Tensor& actual, const Tensor& oracle, double fp32, double bf16) {
  const double limit = (actual.scalar_type() == at::kFloat ? fp32 : bf16) * oracle.abs().max().item<double>();
  EXPECT_LE((as_double(actual) - oracle).abs().max().item<double>(), limit);
}

TEST_P(AttentionTest, EqualsAutograd) {
  const auto& [s, type] = GetParam();
  const Tensor qkv = at::randn({s.batch * s.seq, (s.heads + 2 * s.kv_heads) * s.head_dim}).to(type);
  const Tensor dout = at::randn({s.batch * s.seq, s.heads * s.head_dim}).to(type);
  Tensor leaf_qkv = leaf(qkv);
  const Tensor out = oracle_packed(s, leaf_qkv);
  out.backward(as_double(dout));
  const AttentionSaved saved = attention(s, qkv);
  EXPECT_TRUE(saved.out_NE.is_contiguous());
  expect_near(saved.out_NE, out, 1e-5, 0x1p-7);
  Tensor dqkv = at::full_like(qkv, 7.0);
  attention_backward(s, qkv, saved, dout, dqkv);
  expect_near(dqkv, leaf_qkv.grad(), 2e-5, 0x1p-6);
  Tensor again = at::empty_like(dqkv);
  attention_backward(s, qkv, attention(s, qkv), dout, again);
  EXPECT_TRUE(at::equal(dqkv, again));
}

TEST_P(AttentionTest, CachedEqualsTheLastRowsOfTheWhole) {
  const auto& [s, type] = GetParam();
  const int64_t positions = s.seq + 5;
  for (int64_t queries : {int64_t{1}, std::min<int64_t>(3, s.seq), s.seq}) {
    const Tensor q = at::randn({s.batch, queries, s.heads, s.head_dim}).to(type);
    const Tensor keys = at::randn({s.batch, positions, s.kv_heads, s.head_dim}).to(type),
                 values = at::randn_like(keys);
    const Tensor oracle =
        oracle_attention(as_double(q).transpose(1, 2), as_double(keys).narrow(1, 0, s.seq).transpose(1, 2),
                         as_double(values).narrow(1, 0, s.seq).transpose(1, 2));
    AttentionShape shape = s;
    shape.seq = queries;
    const Tensor out = attention_cached(shape, q, keys, values, s.seq);
    expect_near(out, oracle.transpose(1, 2).reshape({s.batch * queries, s.heads * s.head_dim}), 1e-5, 0x1p-7);
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
  EXPECT_EQ(error_of([&] {
              attention({2, 3, 3, 2, 4}, qkv);
            }),
            "[attention] 3 query heads cannot share 2 key heads evenly");
  EXPECT_NE(error_of([&] { attention({2, 3, 2, 1, 4}, qkv); }).find("[6, 16]"), std::string::npos);
  const Tensor q = at::ones({1, 2, 2, 4}), cache = at::ones({1, 8, 1, 4});
  EXPECT_NE(error_of([&] {
              attention_cached({1, 2, 2, 1, 4}, q, cache, cache, 9);
            }).find("cache of 8"),
            std::string::npos);
}

}  // namespace
}  // namespace tycho
