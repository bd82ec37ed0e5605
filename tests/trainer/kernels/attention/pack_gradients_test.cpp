// Gradients of attention, written into rows and rotated back, against copies and rope().
#include "trainer/kernels/attention/pack_gradients.h"

#include "tests/trainer/kernels/kernel_test.h"

namespace tycho {
namespace {

struct PackCase {
  AttentionShape shape;
  int64_t rotary;  // 0: no rotation
  int64_t behind;  // elements that a library leaves behind each head
  bool apart;      // another table for keys
};
const std::vector<PackCase> kPackCases = {
    {{1, 1, 1, 1, 2}, 2, 0, false},   {{2, 9, 4, 2, 22}, 22, 0, false}, {{3, 40, 6, 2, 64}, 64, 0, false},
    {{2, 5, 3, 1, 5}, 4, 0, false},   {{2, 7, 4, 2, 64}, 48, 0, true},  {{2, 9, 4, 4, 64}, 0, 0, false},
    {{2, 9, 4, 2, 64}, 64, 8, false}, {{1, 33, 12, 1, 32}, 0, 8, false}};

/// Heads [B, T, heads, d] with `behind` elements between them.
Tensor heads_apart(const Tensor& wide, int64_t dim) { return wide.narrow(3, 0, dim); }

class PackGradientsTest : public KernelTest {
 protected:
  /// Returns the rows after copies, and after rope() where there is a table.
  Tensor copied_and_turned(const PackCase& c, const std::vector<Tensor>& gradients,
                           const RopeTables& tables) const {
    const AttentionShape& s = c.shape;
    std::vector<Tensor> parts;
    for (const Tensor& x : gradients) parts.push_back(x.reshape({s.batch * s.seq, -1}));
    Tensor rows = at::concat(parts, 1);
    if (c.rotary == 0) return rows;
    const auto turn_back = [&](int64_t first, int64_t heads, const Tensor& table) {
      const RopeShape shape{rows.size(0), s.seq, 0, rows.size(1), heads, s.head_dim, c.rotary};
      Tensor from_first = rows.narrow(1, first * s.head_dim, heads * s.head_dim);
      table_->rope(shape, dtype_, table.const_data_ptr<float>(), true, from_first.mutable_data_ptr(),
                   stream_of(rows));
    };
    turn_back(0, s.heads, tables.queries);
    turn_back(s.heads, s.kv_heads, tables.keys.defined() ? tables.keys : tables.queries);
    return rows;
  }
};

HeadRows head_rows(const Tensor& x_BTHd) {
  return {x_BTHd.const_data_ptr(), x_BTHd.stride(1), x_BTHd.stride(2)};
}

TEST_P(PackGradientsTest, EqualsCopiesAndTheInverseRotation) {
  for (const PackCase& c : kPackCases) {
    const AttentionShape& s = c.shape;
    SCOPED_TRACE(testing::Message() << s.heads << " heads of " << s.head_dim << ", " << c.rotary
                                    << " rotated");
    std::vector<Tensor> gradients;
    for (const int64_t heads : {s.heads, s.kv_heads, s.kv_heads})
      gradients.push_back(heads_apart(normal({s.batch, s.seq, heads, s.head_dim + c.behind}), s.head_dim));
    RopeTables tables;
    Rotations rotations;
    if (c.rotary > 0) {
      const RopeFrequencies frequencies = rope_frequencies(c.rotary, 100.0, {}, s.seq);
      if (c.apart) tables = xpos_tables(s.seq, frequencies, 4.0);
      if (!c.apart) tables.queries = rope_table(s.seq, frequencies);
      tables.queries = on_device(tables.queries);
      if (c.apart) tables.keys = on_device(tables.keys);
      const Tensor& keys = c.apart ? tables.keys : tables.queries;
      rotations = {tables.queries.const_data_ptr<float>(), keys.const_data_ptr<float>(), c.rotary};
    }
    // Queries and keys in rows of one tensor, as training has them, wider than they need.
    const int64_t own = (s.heads + 2 * s.kv_heads) * s.head_dim;
    Tensor all = normal({s.batch * s.seq, own + 16});
    const Tensor behind = all.narrow(1, own, 16).clone();
    const AttentionRows rows = packed_rows(s, all.narrow(1, 0, own));
    table_->pack_gradients(
        s, dtype_, head_rows(gradients[0]), head_rows(gradients[1]), head_rows(gradients[2]), rotations,
        {rows.q_NE.mutable_data_ptr(), all.stride(0), rows.kv.mutable_data_ptr(), all.stride(0)},
        stream_of(all));
    // A rotation's two products may be contracted differently than rope()'s.
    expect_close(all.narrow(1, 0, own), as_double(copied_and_turned(c, gradients, tables)));
    EXPECT_TRUE(at::equal(all.narrow(1, own, 16), behind)) << "it wrote behind the rows";
    if (c.rotary == 0) {
      EXPECT_TRUE(at::equal(all.narrow(1, 0, own), copied_and_turned(c, gradients, tables)));
    }
  }
}

TYCHO_ON_EVERY_TABLE(PackGradientsTest);

TEST(PackGradients, TakesTensorsOfAnyLayout) {
  const AttentionShape s = {2, 5, 4, 2, 6};
  const RopeTables tables = {rope_table(5, rope_frequencies(4, 100.0, {}, 5)), {}};
  const Tensor dq = at::randn({2, 4, 5, 6}).transpose(1, 2), dk = at::randn({2, 5, 6, 2}).transpose(2, 3),
               dv = at::randn({10, 2, 6});
  const Tensor plain = at::empty({10, 48}), odd = at::empty({10, 48});
  pack_gradients(s, dq.contiguous(), dk.contiguous(), dv.view({2, 5, 2, 6}), tables, packed_rows(s, plain));
  pack_gradients(s, dq, dk, dv, tables, packed_rows(s, odd));
  EXPECT_TRUE(at::equal(plain, odd));
  EXPECT_TRUE(at::equal(odd.narrow(1, 36, 12), dv.view({10, 12}))) << "values do not rotate";
}

TEST(PackGradients, NamesWhatDoesNotFit) {
  const AttentionShape s = {1, 4, 2, 1, 4};
  const Tensor dq = at::randn({1, 4, 2, 4}), dk = at::randn({1, 4, 1, 4}), rows = at::empty({4, 16});
  const auto error = [&](const Tensor& q, const Tensor& table) {
    return error_of([&] { pack_gradients(s, q, dk, dk, {table, {}}, packed_rows(s, rows)); });
  };
  EXPECT_EQ(
      error(dk, {}),
      "[pack_gradients] dq: expected 4 tokens with 2 heads of 4, of the dtype and device of the rows, got "
      "4 dims and 16 elements");
  EXPECT_EQ(
      error(dq, rope_table(3, rope_frequencies(4, 100.0, {}, 4))),
      "[pack_gradients] expected a table of rope_table for 4 positions and heads of 4, got 3 dims and 2 "
      "pairs");
}

}  // namespace
}  // namespace tycho
