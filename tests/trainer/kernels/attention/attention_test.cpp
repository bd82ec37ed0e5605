// Attention's own tiles and its choice of route; on a GPU, flash attention under every rule.
#include "trainer/kernels/attention/attention.h"

#include <array>
#include <optional>

#include "tests/trainer/kernels/attention/attention_oracle.h"

namespace tycho {
namespace {

class AttentionTest : public testing::TestWithParam<AttentionCase> {};

struct Memory {
  Tensor out_NE, log_sum_exp_BHT;
  std::vector<Tensor> state;
  Memory(const AttentionShape& s, const Tensor& qkv)
      : out_NE(at::full({s.batch * s.seq, s.heads * s.head_dim}, 7.0, qkv.options())),
        log_sum_exp_BHT(at::full({s.batch, s.heads, s.seq}, 7.0, qkv.options().dtype(at::kFloat))) {}
  operator AttentionSaved() { return {out_NE, log_sum_exp_BHT, state}; }
};

/// What flash attention is told of rules that point to the host, and the same rules for a GPU's memory.
struct OnDevice {
  OnDevice(const AttentionShape& s, const ScoreRules& host, const at::Device& device) : rules(host) {
    if (host.alibi_H) {
      slopes_H = at::tensor(at::ArrayRef<float>(host.alibi_H, s.heads), at::kFloat).to(device);
      rules.alibi_H = slopes_H.const_data_ptr<float>();
      flash.alibi = alibi_columns(slopes_H, rules.scale, num_keys(s));
    }
    if (host.document_BT) {
      const int64_t keys = num_keys(s);
      const Tensor number_N = at::tensor(at::ArrayRef<int32_t>(host.document_BT, s.batch * keys), at::kInt);
      using Spans = std::array<TokenSpan, 2>;
      flash.documents = documents_on(device, number_N, keys,
                                     s.keys > 0 ? std::optional(Spans{s.early, s.late}) : std::nullopt);
      rules.document_BT = flash.documents.number_N.const_data_ptr<int32_t>();
    }
  }
  ScoreRules rules;
  FlashRules flash;
  Tensor slopes_H;
};

void expect_equals_autograd(const AttentionShape& s, const ScoreRules& rules, at::ScalarType type,
                            const at::Device& device = at::kCPU) {
  const OnDevice on(s, rules, device);
  std::vector<Tensor> state;
  const AttentionPair pair = {
      [&](const Tensor& qkv, Tensor& out, Tensor& log_sum_exp) {
        attention(s, on.rules, packed_rows(s, qkv), {out, log_sum_exp, state}, on.flash);
      },
      [&](const Tensor& qkv, const Tensor& out, const Tensor& log_sum_exp, const Tensor& dout, Tensor& dqkv) {
        Tensor kept_out = out, kept_log_sum_exp = log_sum_exp;
        attention_backward(s, on.rules, packed_rows(s, qkv), {kept_out, kept_log_sum_exp, state}, dout,
                           packed_rows(s, dqkv), on.flash);
      }};
  // Flash attention's backward adds in any order.
  expect_equals_autograd(s, rules, type, pair, device, /*repeats=*/device.is_cpu());
}

TEST_P(AttentionTest, EqualsAutogradUnderEveryRule) {
  const auto& [s, type] = GetParam();
  const EveryRule every(s);
  for (const ScoreRules& rules : every.rules()) expect_equals_autograd(s, rules, type);
}

TEST(Attention, HasOneDefinitionOnEveryTable) {
  const AttentionShape s = {2, 150, 4, 2, 24};
  const Tensor qkv = at::randn({300, 8 * 24}), dout = at::randn({300, 4 * 24});
  ScoreRules rules = plain_rules(s);
  rules.dropout = {.p = 0.2, .key = 9};
  const Tensor oracle = oracle_packed(s, rules, as_double(qkv));
  constexpr int64_t kStep = 8 * 24, kKeysFrom = 4 * 24;
  const float* rows = qkv.const_data_ptr<float>();
  const AttentionInputs in = {rows, kStep, rows + kKeysFrom, kStep};
  for (const KernelTable* table : cpu_tables()) {
    Memory saved(s, qkv);
    table->attention(s, rules, Dtype::kFp32, in, saved.out_NE.mutable_data_ptr(),
                     saved.log_sum_exp_BHT.mutable_data_ptr<float>(), nullptr);
    expect_near(saved.out_NE, oracle, 1e-5, 0);
    Tensor leaf_qkv = leaf(qkv), dqkv = at::empty_like(qkv);
    oracle_packed(s, rules, leaf_qkv).backward(as_double(dout));
    auto* gradients = dqkv.mutable_data_ptr<float>();
    table->attention_backward(s, rules, Dtype::kFp32, in, saved.out_NE.const_data_ptr(),
                              saved.log_sum_exp_BHT.const_data_ptr<float>(), dout.const_data_ptr(),
                              {gradients, kStep, gradients + kKeysFrom, kStep}, nullptr);
    expect_near(dqkv, leaf_qkv.grad(), 2e-5, 0);
  }
}

TEST(Attention, ChoosesTheRouteThatSupportsItsRules) {
  const AttentionShape even = {1, 8, 2, 1, 16}, odd = {1, 8, 2, 1, 12};
  const ScoreRules capped{.softcap = 2.0f}, windowed{.window = 4, .dropout = {.p = 0.5}};
  using enum AttentionRoute;
  EXPECT_EQ(attention_route(at::kCPU, at::kBFloat16, even, capped), kTiles);
  EXPECT_EQ(attention_route(at::kCUDA, at::kBFloat16, even, {}), kFlash);
  EXPECT_EQ(attention_route(at::kCUDA, at::kBFloat16, even, windowed), kFlash);
  EXPECT_EQ(attention_route(at::kCUDA, at::kBFloat16, even, capped), kProducts);
  EXPECT_EQ(attention_route(at::kCUDA, at::kFloat, even, {}), kProducts);
  EXPECT_EQ(attention_route(at::kCUDA, at::kBFloat16, odd, {}), kProducts);
  const AttentionShape cut = {1, 4, 2, 1, 16, 8, {0, 2}, {6, 2}};
  EXPECT_EQ(attention_route(at::kCPU, at::kBFloat16, cut, {}), kTiles);
  EXPECT_EQ(attention_route(at::kCUDA, at::kBFloat16, cut, {.window = 4}), kFlash);
  EXPECT_EQ(attention_route(at::kCUDA, at::kBFloat16, cut, windowed), kProducts) << "it drops";
  EXPECT_EQ(attention_route(at::kCUDA, at::kFloat, cut, {}), kProducts);
  const ScoreRules free{.any_order = true};
  EXPECT_EQ(attention_route(at::kCUDA, at::kBFloat16, even, free), kCudnn);
  EXPECT_EQ(attention_route(at::kCUDA, at::kBFloat16, even, {.window = 4, .any_order = true}), kFlash);
  EXPECT_EQ(attention_route(at::kCUDA, at::kBFloat16, cut, free), kFlash);
  EXPECT_EQ(attention_route(at::kCUDA, at::kFloat, even, free), kProducts);
  EXPECT_EQ(attention_route(at::kCPU, at::kBFloat16, even, free), kTiles);
}

/// Spans of a whole shape's tokens as the queries of a shape of their own.
AttentionShape cut_shape(const AttentionShape& whole, TokenSpan early, TokenSpan late) {
  AttentionShape cut = whole;
  cut.seq = early.count + late.count, cut.keys = whole.seq, cut.early = early, cut.late = late;
  return cut;
}

/// Pairs of spans that name every token once, in as many parts as two `pairs`.
std::vector<AttentionShape> cuts(const AttentionShape& whole, int64_t pairs) {
  std::vector<AttentionShape> all;
  const auto start = [&](int64_t part) { return part * whole.seq / (2 * pairs); };
  const auto span = [&](int64_t part) { return TokenSpan{start(part), start(part + 1) - start(part)}; };
  for (int64_t i = 0; i < pairs; ++i) {
    const AttentionShape cut = cut_shape(whole, span(i), span(2 * pairs - 1 - i));
    if (cut.seq > 0) all.push_back(cut);
  }
  return all;
}

/// Output rows are those of the whole, and so are gradients: of queries in their places, of keys in sum.
void expect_spans_equal_whole(const AttentionShape& s, at::ScalarType type, const at::Device& device) {
  at::manual_seed(4);
  const int64_t q = s.heads * s.head_dim, kv = 2 * s.kv_heads * s.head_dim, tokens = s.batch * s.seq;
  const Tensor qkv = at::randn({tokens, q + kv}).to(type), dout = at::randn({tokens, q}).to(type);
  const EveryRule every(s);
  for (const ScoreRules& rules : every.rules()) {
    Tensor leaf_qkv = leaf(qkv);
    const Tensor oracle = oracle_packed(s, rules, leaf_qkv);
    oracle.backward(as_double(dout));
    for (const int64_t pairs : {2, 3}) {
      Tensor gradient = at::zeros({s.batch, s.seq, q + kv}, at::kDouble);
      for (const AttentionShape& cut : cuts(s, pairs)) {
        const Tensor position_T = query_positions(cut);
        const auto take = [&](const Tensor& x) {
          return x.reshape({s.batch, s.seq, q}).index_select(1, position_T).view({s.batch * cut.seq, q});
        };
        const OnDevice on(cut, rules, device);
        const AttentionRows rows = {take(qkv.narrow(1, 0, q)).to(device), qkv.to(device).narrow(1, q, kv)};
        const AttentionRows given = {at::full_like(rows.q_NE, 7.0),
                                     at::full({tokens, kv}, 7.0, rows.kv.options())};
        Memory saved(cut, rows.q_NE);
        attention(cut, on.rules, rows, saved, on.flash);
        expect_near(saved.out_NE, take(oracle), 1e-5, 0x1p-7);
        attention_backward(cut, on.rules, rows, saved, take(dout).to(device), given, on.flash);
        gradient.narrow(2, 0, q).index_copy_(1, position_T,
                                             as_double(given.q_NE).view({s.batch, cut.seq, q}));
        gradient.narrow(2, q, kv).add_(as_double(given.kv).view({s.batch, s.seq, kv}));
      }
      expect_near(gradient.view({tokens, q + kv}).to(type), leaf_qkv.grad(), 2e-5, 0x1p-5);
    }
  }
}

TEST_P(AttentionTest, OverSpansEqualsTheWhole) {
  expect_spans_equal_whole(GetParam().shape, GetParam().type, at::kCPU);
}

/// Compares attention over all keys with attention over each pair of spans in turn, the order of a ring.
void expect_parts_equal_whole(const AttentionShape& s, at::ScalarType type, const at::Device& device) {
  at::manual_seed(4);
  const int64_t q = s.heads * s.head_dim, kv = 2 * s.kv_heads * s.head_dim, tokens = s.batch * s.seq;
  const Tensor qkv = at::randn({tokens, q + kv}).to(type), dout = at::randn({tokens, q}).to(type);
  const auto take = [&](const Tensor& x, const Tensor& position_T) {
    return x.reshape({s.batch, s.seq, x.size(1)}).index_select(1, position_T).view({-1, x.size(1)});
  };
  const EveryRule every(s);
  for (const ScoreRules& rules : every.rules()) {
    Tensor leaf_qkv = leaf(qkv);
    const Tensor oracle = oracle_packed(s, rules, leaf_qkv);
    oracle.backward(as_double(dout));
    Tensor gradient = at::zeros({s.batch, s.seq, q + kv}, at::kDouble);
    for (const AttentionShape& cut : cuts(s, 3)) {
      const Tensor position_T = query_positions(cut);
      const OnDevice on(cut, rules, device);
      const Tensor q_NE = take(qkv.narrow(1, 0, q), position_T).to(device),
                   own_dout = take(dout, position_T).to(device);
      Memory saved(cut, q_NE);
      const Tensor sum_NE = at::zeros(q_NE.sizes(), q_NE.options().dtype(at::kFloat));
      saved.out_NE = sum_NE, saved.log_sum_exp_BHT.fill_(-INFINITY);
      std::vector<AttentionShape> parts;
      std::vector<Tensor> kv_of;
      for (const AttentionShape& other : cuts(s, 3)) {
        AttentionShape part = cut;
        part.early_keys = other.early, part.late_keys = other.late;
        if (!part.is_part()) part.early_keys = other.late, part.late_keys = {};
        parts.push_back(part);
        kv_of.push_back(take(qkv.narrow(1, q, kv), key_positions(part)).to(device));
        attention(part, on.rules, {q_NE, kv_of.back()}, saved, on.flash);
      }
      expect_near(sum_NE.to(type), take(oracle, position_T), 1e-5, 0x1p-6);
      saved.out_NE = sum_NE.to(type);
      const Tensor dq_NE = at::zeros(sum_NE.sizes(), sum_NE.options());
      for (size_t i = 0; i < parts.size(); ++i) {
        const Tensor dkv = at::full(kv_of[i].sizes(), 7.0, sum_NE.options());
        attention_backward(parts[i], on.rules, {q_NE, kv_of[i]}, saved, own_dout, {dq_NE, dkv}, on.flash);
        Tensor of_keys = gradient.narrow(2, q, kv);
        of_keys.index_add_(1, key_positions(parts[i]), as_double(dkv).view({s.batch, -1, kv}));
      }
      gradient.narrow(2, 0, q).index_copy_(1, position_T, as_double(dq_NE).view({s.batch, cut.seq, q}));
    }
    expect_near(gradient.view({tokens, q + kv}).to(type), leaf_qkv.grad(), 2e-5, 0x1p-5);
  }
}

TEST_P(AttentionTest, OfPartsOfTheKeysIsThatOfTheWhole) {
  expect_parts_equal_whole(GetParam().shape, GetParam().type, at::kCPU);
}

class AttentionOnGpu : public testing::TestWithParam<AttentionCase> {
 protected:
  void SetUp() override {
    if (!find_table("cuda")) GTEST_SKIP() << "no GPU: its attention is not compared with the oracle";
  }
};

TEST_P(AttentionOnGpu, EqualsAutogradUnderEveryRule) {
  const auto& [s, type] = GetParam();
  const EveryRule every(s);
  for (ScoreRules rules : every.rules()) {
    // ATen draws other bits; plain products draw the CPU's.
    if (attention_route(at::kCUDA, type, s, rules) == AttentionRoute::kFlash) rules.dropout = {};
    expect_equals_autograd(s, rules, type, at::kCUDA);
  }
}

TEST_P(AttentionOnGpu, OfCudnnEqualsAutograd) {
  const auto& [s, type] = GetParam();
  ScoreRules rules = plain_rules(s);
  rules.any_order = true;
  if (attention_route(at::kCUDA, type, s, rules) != AttentionRoute::kCudnn)
    GTEST_SKIP() << "cuDNN does not compute this case";
  expect_equals_autograd(s, rules, type, at::kCUDA);
}

TEST_P(AttentionOnGpu, TurnsGradientsBackAsRopeDoes) {
  const auto& [s, type] = GetParam();
  if (s.head_dim % 2 != 0) GTEST_SKIP() << "heads without pairs";
  const auto options = at::TensorOptions(at::kCUDA).dtype(type);
  const Tensor qkv = at::randn({s.batch * s.seq, (s.heads + 2 * s.kv_heads) * s.head_dim}, options),
               dout = at::randn({s.batch * s.seq, s.heads * s.head_dim}, options);
  const Tensor table = rope_table(s.seq, rope_frequencies(s.head_dim, 100.0, {}, s.seq)).to(at::kCUDA);
  for (const bool any_order : {false, true}) {
    ScoreRules rules = plain_rules(s);
    rules.any_order = any_order;
    Memory saved(s, qkv);
    attention(s, rules, packed_rows(s, qkv), saved);
    Tensor apart = at::empty_like(qkv), together = at::empty_like(qkv);
    attention_backward(s, rules, packed_rows(s, qkv), saved, dout, packed_rows(s, apart));
    const bool is_rotated = attention_backward(s, rules, packed_rows(s, qkv), saved, dout,
                                               packed_rows(s, together), {}, {table, {}});
    EXPECT_EQ(is_rotated, attention_route(at::kCUDA, type, s, rules) != AttentionRoute::kProducts);
    if (is_rotated) rope(apart, table, s.seq, 0, {0, s.heads + s.kv_heads}, s.head_dim, /*inverse=*/true);
    EXPECT_TRUE(at::equal(apart, together));
  }
}

// With ALiBi the result has columns that are no output, so that it is copied; else it is the kernel's own.
TEST_P(AttentionOnGpu, LeavesItsResultWhereItIsWhenGivenNoMemory) {
  const auto& [s, type] = GetParam();
  const auto options = at::TensorOptions(at::kCUDA).dtype(type);
  const Tensor qkv = at::randn({s.batch * s.seq, (s.heads + 2 * s.kv_heads) * s.head_dim}, options),
               dout = at::randn({s.batch * s.seq, s.heads * s.head_dim}, options);
  const EveryRule every(s);
  std::vector<ScoreRules> all = every.rules();
  all.push_back(plain_rules(s)), all.back().any_order = true;
  int64_t num_left = 0;
  for (const ScoreRules& rules : all) {
    if (attention_route(at::kCUDA, type, s, rules) == AttentionRoute::kProducts) continue;
    const OnDevice on(s, rules, at::kCUDA);
    Memory given(s, qkv), left(s, qkv);
    left.out_NE = left.log_sum_exp_BHT = Tensor();
    attention(s, on.rules, packed_rows(s, qkv), given, on.flash);
    attention(s, on.rules, packed_rows(s, qkv), left, on.flash);
    EXPECT_TRUE(left.out_NE.is_contiguous());
    EXPECT_TRUE(at::equal(given.out_NE, left.out_NE));
    Tensor of_given = at::empty_like(qkv), of_left = at::empty_like(qkv);
    attention_backward(s, on.rules, packed_rows(s, qkv), given, dout, packed_rows(s, of_given), on.flash);
    attention_backward(s, on.rules, packed_rows(s, qkv), left, dout, packed_rows(s, of_left), on.flash);
    EXPECT_TRUE(at::equal(of_given, of_left));
    ++num_left;
  }
  EXPECT_EQ(num_left > 0, type == at::kBFloat16 && s.head_dim % 8 == 0);
  if (num_left > 0) return;
  Tensor none;
  std::vector<Tensor> state;
  EXPECT_THROW(attention(s, plain_rules(s), packed_rows(s, qkv), {none, none, state}), Error);
}

TEST_P(AttentionOnGpu, OverSpansEqualsTheWhole) {
  expect_spans_equal_whole(GetParam().shape, GetParam().type, at::kCUDA);
}

TEST_P(AttentionOnGpu, OfPartsOfTheKeysIsThatOfTheWhole) {
  expect_parts_equal_whole(GetParam().shape, GetParam().type, at::kCUDA);
}

/// How far apart two passes are whose masks should be one, as a share of what they are compared by. The
/// output is linear in the values, so for each column of a key head dv · v is dout · out, summed over the
/// positions and the heads that share it. Rounding leaves a few 2^-9; another mask leaves about half.
double mask_difference(const AttentionShape& s, const Tensor& qkv, const Tensor& out, const Tensor& dout,
                       const Tensor& dqkv) {
  const int64_t first_value = (s.heads + s.kv_heads) * s.head_dim, width = s.kv_heads * s.head_dim;
  const Tensor by_values = (as_double(dqkv) * as_double(qkv))
                               .narrow(1, first_value, width)
                               .view({s.batch, s.seq, s.kv_heads, s.head_dim})
                               .sum(1);
  const Tensor by_output = (as_double(dout) * as_double(out))
                               .view({s.batch, s.seq, s.kv_heads, s.heads / s.kv_heads, s.head_dim})
                               .sum(at::IntArrayRef{1, 3});
  return ((by_values - by_output).norm() / by_output.norm()).item<double>();
}
constexpr double kOneMask = 0.05;

TEST_P(AttentionOnGpu, DropsTheSameTwiceAndInBackward) {
  const auto& [s, type] = GetParam();
  const auto options = at::TensorOptions(at::kCUDA).dtype(type);
  const Tensor qkv = at::randn({s.batch * s.seq, (s.heads + 2 * s.kv_heads) * s.head_dim}, options),
               dout = at::randn({s.batch * s.seq, s.heads * s.head_dim}, options);
  ScoreRules rules = plain_rules(s);
  rules.dropout = {.p = 0.3, .key = 5};
  Tensor log_sum_exp = at::empty({s.batch, s.heads, s.seq}, options.dtype(at::kFloat));
  Tensor first = at::empty_like(dout), again = at::empty_like(dout), dqkv = at::empty_like(qkv);
  std::vector<Tensor> state;
  attention(s, rules, packed_rows(s, qkv), {first, log_sum_exp, state});
  attention(s, rules, packed_rows(s, qkv), {again, log_sum_exp, state});
  EXPECT_TRUE(at::equal(first, again));
  attention_backward(s, rules, packed_rows(s, qkv), {again, log_sum_exp, state}, dout, packed_rows(s, dqkv));
  EXPECT_LT(mask_difference(s, qkv, again, dout, dqkv), kOneMask);
}

TEST_P(AttentionTest, TheCheckOfMasksSeesAnotherMaskInBackward) {
  const auto& [s, type] = GetParam();
  if (s.seq == 1) GTEST_SKIP() << "one key: few masks differ";
  at::manual_seed(3);
  const Tensor qkv = at::randn({s.batch * s.seq, (s.heads + 2 * s.kv_heads) * s.head_dim}).to(type),
               dout = at::randn({s.batch * s.seq, s.heads * s.head_dim}).to(type);
  ScoreRules rules = plain_rules(s);
  rules.dropout = {.p = 0.3, .key = 5};
  Memory saved(s, qkv);
  attention(s, rules, packed_rows(s, qkv), saved);
  Tensor dqkv = at::empty_like(qkv);
  attention_backward(s, rules, packed_rows(s, qkv), saved, dout, packed_rows(s, dqkv));
  EXPECT_LT(mask_difference(s, qkv, saved.out_NE, dout, dqkv), kOneMask);
  rules.dropout.key = 6;
  attention_backward(s, rules, packed_rows(s, qkv), saved, dout, packed_rows(s, dqkv));
  EXPECT_GT(mask_difference(s, qkv, saved.out_NE, dout, dqkv), 4 * kOneMask);
}

INSTANTIATE_TEST_SUITE_P(Shapes, AttentionTest, testing::ValuesIn(attention_cases()), attention_case_name);
INSTANTIATE_TEST_SUITE_P(Shapes, AttentionOnGpu, testing::ValuesIn(attention_cases()), attention_case_name);

TEST(AttentionOp, NamesArgumentsThatDoNotFit) {
  const Tensor qkv = at::ones({6, 20});
  const auto error = [&](const AttentionShape& s) {
    return error_of([&] {
      Memory saved(s, qkv);
      attention(s, plain_rules(s), {qkv.narrow(1, 0, 8), qkv.narrow(1, 8, 8)}, saved);
    });
  };
  EXPECT_EQ(error({2, 3, 3, 2, 4}), "[attention] 3 query heads cannot evenly share 2 key heads");
  EXPECT_NE(error({2, 3, 3, 1, 4}).find("[6, 12]"), std::string::npos);
  EXPECT_EQ(error({2, 3, 2, 1, 4, 6, {0, 1}, {3, 1}}),
            "[attention] expected 3 queries as two spans of 6 tokens, one after the other, got 1 from 0 on "
            "and 1 from 3 on");
  EXPECT_NE(error({2, 3, 2, 1, 4, 6, {2, 2}, {3, 1}}), "");
  EXPECT_NE(error({2, 3, 2, 1, 4, 6, {0, 2}, {6, 1}}), "");
  EXPECT_EQ(error({2, 3, 2, 1, 4, 6, {0, 2}, {5, 1}, {0, 2}, {1, 1}}),
            "[attention] expected some of 6 keys as two spans, one after the other, got 2 from 0 on and 1 "
            "from 1 on");
  EXPECT_NE(error({2, 3, 2, 1, 4, 6, {0, 2}, {5, 1}, {4, 3}}), "");
  EXPECT_NE(error({2, 3, 2, 1, 4, 6, {0, 2}, {5, 1}, {0, 2}}).find("[4, 8]"), std::string::npos);
  EXPECT_NE(error_of([&] {
              const AttentionShape s = {2, 3, 3, 1, 4};
              Memory saved(s, qkv);
              attention(s, {.dropout = {.p = 1.0}}, packed_rows(s, qkv), saved);
            }).find("probability of dropout in [0, 1), got 1"),
            std::string::npos);
}

}  // namespace
}  // namespace tycho
