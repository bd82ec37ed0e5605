// Attention's own tiles and its choice of route; on a GPU, flash attention under every rule.
#include "trainer/kernels/attention/attention.h"

#include "tests/trainer/kernels/attention/attention_check.h"
#include "trainer/kernels/attention/flash_attention_3.h"

namespace tycho {
namespace {

/// Flash attention 2 on a GPU is not asked to repeat its bits.
void expect_equals_autograd(const AttentionShape& s, const ScoreRules& rules, at::ScalarType type,
                            const at::Device& device = at::kCPU) {
  expect_equals_autograd(s, rules, type, device, /*repeats=*/device.is_cpu());
}

class AttentionTest : public testing::TestWithParam<AttentionCase> {};

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
    AttentionMemory saved(s, qkv);
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

TEST_P(AttentionTest, OverSpansEqualsTheWhole) {
  expect_spans_equal_whole(GetParam().shape, GetParam().type, at::kCPU);
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

/// The plain rules, computed by flash attention 2, by cuDNN, and by FlashAttention-3 if its library is there.
std::vector<ScoreRules> ways_to_compute(const AttentionShape& s) {
  std::vector<ScoreRules> ways(3, plain_rules(s));
  ways[1].any_order = ways[2].flash_3 = true;
  if (!flash_3_problem().empty()) ways.pop_back();
  return ways;
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
  for (ScoreRules rules : ways_to_compute(s)) {
    AttentionMemory saved(s, qkv);
    attention(s, rules, packed_rows(s, qkv), saved);
    Tensor apart = at::empty_like(qkv), together = at::empty_like(qkv);
    attention_backward(s, rules, packed_rows(s, qkv), saved, dout, packed_rows(s, apart));
    const bool is_rotated = attention_backward(s, rules, packed_rows(s, qkv), saved, dout,
                                               packed_rows(s, together), {}, {table, {}});
    const AttentionRoute route = attention_route(at::kCUDA, type, s, rules);
    EXPECT_EQ(is_rotated, route == AttentionRoute::kFlash || route == AttentionRoute::kCudnn);
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
  const std::vector<ScoreRules> ways = ways_to_compute(s);
  all.insert(all.end(), ways.begin(), ways.end());
  int64_t num_left = 0;
  for (const ScoreRules& rules : all) {
    if (attention_route(at::kCUDA, type, s, rules) == AttentionRoute::kProducts) continue;
    const OnDevice on(s, rules, at::kCUDA);
    AttentionMemory given(s, qkv), left(s, qkv);
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
  AttentionMemory saved(s, qkv);
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
      AttentionMemory saved(s, qkv);
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
              AttentionMemory saved(s, qkv);
              attention(s, {.dropout = {.p = 1.0}}, packed_rows(s, qkv), saved);
            }).find("probability of dropout in [0, 1), got 1"),
            std::string::npos);
}

}  // namespace
}  // namespace tycho
