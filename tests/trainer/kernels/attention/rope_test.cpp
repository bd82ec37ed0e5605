// Rotary positions against Hugging Face's formula in double.
#include "trainer/kernels/attention/rope.h"

#include "tests/trainer/kernels/kernel_test.h"

namespace tycho {
namespace {

class RopeTest : public KernelTest {};

Tensor rotate_half(const Tensor& x) {
  const int64_t half = x.size(-1) / 2;
  return at::concat({-x.narrow(-1, half, half), x.narrow(-1, 0, half)}, -1);
}

/// x: [B, T, heads, d]; the first `rotary` of d are rotated, and grow by `factor`.
Tensor oracle_rope(const Tensor& all, int64_t rotary, int64_t first_position, double theta, double factor) {
  const Tensor x = all.narrow(-1, 0, rotary);
  const int64_t seq = x.size(1), dim = rotary;
  const Tensor inverse = at::pow(theta, -at::arange(0, dim, 2, at::kDouble) / static_cast<double>(dim));
  const Tensor angle = at::arange(first_position, first_position + seq, at::kDouble).unsqueeze(1) * inverse;
  const Tensor both = at::concat({angle, angle}, -1).unsqueeze(1);
  const Tensor rotated = (x * both.cos() + rotate_half(x) * both.sin()) * factor;
  return at::concat({rotated, all.narrow(-1, rotary, all.size(3) - rotary)}, -1);
}

TEST_P(RopeTest, EqualsHuggingFaceAndIsUndoneByItsInverse) {
  struct Case {
    int64_t batch, seq, first, heads, kv_heads, dim, rotary;
  };
  for (const Case& c : {Case{1, 1, 5, 1, 1, 2, 2}, Case{2, 9, 0, 4, 2, 22, 22}, Case{3, 40, 7, 6, 2, 64, 64},
                        Case{2, 9, 3, 3, 1, 5, 4}, Case{2, 9, 0, 4, 2, 22, 6}, Case{3, 40, 7, 6, 2, 64, 48},
                        Case{1, 7, 0, 2, 2, 36, 32}}) {
    SCOPED_TRACE(testing::Message() << c.rotary << " of " << c.dim);
    const int64_t rotated = c.heads + c.kv_heads, width = (c.heads + 2 * c.kv_heads) * c.dim;
    const Tensor qkv = normal({c.batch * c.seq, width});
    const Tensor angles = on_device(rope_table(64, rope_frequencies(c.rotary, 10000.0, {}, 64)));
    const RopeShape shape{c.batch * c.seq, c.seq, c.first, width, rotated, c.dim, c.rotary};
    Tensor turned = qkv.clone();
    table_->rope(shape, dtype_, angles.const_data_ptr<float>(), false, turned.mutable_data_ptr(),
                 stream_of(qkv));
    const Tensor heads = as_double(qkv).view({c.batch, c.seq, rotated + c.kv_heads, c.dim});
    const Tensor oracle = at::concat({oracle_rope(heads.narrow(2, 0, rotated), c.rotary, c.first, 10000.0, 1),
                                      heads.narrow(2, rotated, c.kv_heads)},
                                     2);
    expect_close(turned, oracle.view_as(qkv), 2);
    table_->rope(shape, dtype_, angles.const_data_ptr<float>(), true, turned.mutable_data_ptr(),
                 stream_of(qkv));
    const double rounding = type_ == at::kFloat ? 1e-5 : 0.04;  // of the pair's larger half
    EXPECT_TRUE(at::allclose(as_double(turned), as_double(qkv), 0.0, rounding));
  }
}

TYCHO_ON_EVERY_TABLE(RopeTest);

TEST(RopeTable, StoresCosThenSinForEachPosition) {
  const Tensor table = rope_table(4, rope_frequencies(4, 100.0, {}, 4));
  EXPECT_EQ(table.sizes(), at::IntArrayRef({4, 2, 2}));
  EXPECT_FLOAT_EQ(table[3][0][1].item<float>(), std::cos(0.3));
  EXPECT_FLOAT_EQ(table[3][1][0].item<float>(), std::sin(3.0));
}

TEST(RopeTable, GrowsByTheAttentionFactor) {
  const RopeFrequencies frequencies{{1.0, 0.1}, 1.25};
  const Tensor table = rope_table(4, frequencies);
  EXPECT_TRUE(at::equal(table[0][0], at::full({2}, 1.25))) << "position 0 grows too";
  EXPECT_FLOAT_EQ(table[3][1][0].item<float>(), 1.25 * std::sin(3.0));
}

TEST(XposTables, AScoreFadesByItsPairsFactorToTheDistance) {
  const RopeTables tables = xpos_tables(9, rope_frequencies(4, 100.0, {}, 9), 3.0);
  Tensor q = at::zeros({9, 4}), k = at::zeros({9, 4});
  q.narrow(1, 1, 1).fill_(1.0), k.narrow(1, 1, 1).fill_(1.0);  // in the second pair, which is turned by 0.1
  rope(q, tables.queries, 9, 0, {0, 1}, 4, false);
  rope(k, tables.keys, 9, 0, {0, 1}, 4, false);
  const double factor = (0.5 + 0.4) / 1.4;  // of the second of two pairs
  for (int64_t of_q = 0; of_q < 9; ++of_q)
    for (int64_t of_k = 0; of_k < 9; ++of_k)
      EXPECT_NEAR((q[of_q] * k[of_k]).sum().item<double>(),
                  std::cos(0.1 * static_cast<double>(of_q - of_k)) *
                      std::pow(factor, static_cast<double>(of_q - of_k) / 3),
                  1e-6);
  EXPECT_TRUE(at::equal(tables.queries[4], tables.keys[4])) << "the middle is not scaled";
}

TEST(RopeOp, RotatesTheGivenHeads) {
  const Tensor table = rope_table(4, rope_frequencies(4, 100.0, {}, 4));
  const Tensor given = at::randn({4, 12});
  Tensor all = given.clone(), last = given.clone();
  rope(all, table, 4, 0, {0, 3}, 4, false);
  rope(last, table, 4, 0, {2, 1}, 4, false);
  EXPECT_TRUE(at::equal(last.narrow(1, 8, 4), all.narrow(1, 8, 4)));
  EXPECT_TRUE(at::equal(last.narrow(1, 0, 8), given.narrow(1, 0, 8)));
  EXPECT_EQ(error_of([&] {
              rope(last, table, 4, 0, {2, 2}, 4, false);
            }),
            "[rope] 2 heads of 4 from head 2 on do not fit rows of 12");
}

TEST(RopeOp, GivesTheGradientOfTheElementsThatATableRotates) {
  const RopeFrequencies frequencies{rope_frequencies(6, 100.0, {}, 4).radians, 1.5};
  const Tensor table = rope_table(4, frequencies), x = at::randn({4, 20}), dy = at::randn({4, 20});
  Tensor y = x.clone(), dx = dy.clone(), leaf_x = leaf(x);
  rope(y, table, 4, 0, {0, 2}, 10, false);
  rope(dx, table, 4, 0, {0, 2}, 10, true);
  const Tensor wanted = oracle_rope(leaf_x.view({1, 4, 2, 10}), 6, 0, 100.0, 1.5).view({4, 20});
  wanted.backward(as_double(dy));
  EXPECT_TRUE(at::allclose(as_double(y), wanted, 1e-5, 1e-6));
  EXPECT_TRUE(at::allclose(as_double(dx), leaf_x.grad(), 1e-5, 1e-6));
  EXPECT_EQ(error_of([&] {
              rope(y, table, 4, 0, {0, 5}, 4, false);
            }),
            "[rope] cos_sin: expected 1 to 2 pairs, which heads of 4 have, got 3");
}

TEST(RopeOp, RefusesPositionsBeyondItsTable) {
  Tensor qkv = at::randn({6, 12});
  const Tensor table = rope_table(4, rope_frequencies(4, 100.0, {}, 4));
  EXPECT_EQ(error_of([&] {
              rope(qkv, table, 3, 2, {0, 2}, 4, false);
            }),
            "[rope] positions 2..4 are outside the table of 4");
  EXPECT_EQ(error_of([&] {
              rope(qkv, table, 3, 0, {0, 4}, 4, false);
            }),
            "[rope] 4 heads of 4 from head 0 on do not fit rows of 12");
  const Tensor before = qkv.clone();
  rope(qkv, table, 3, 1, {0, 2}, 4, false);
  EXPECT_TRUE(at::equal(qkv.narrow(1, 8, 4), before.narrow(1, 8, 4)));
  EXPECT_FALSE(at::equal(qkv.narrow(1, 0, 8), before.narrow(1, 0, 8)));
}

}  // namespace
}  // namespace tycho
