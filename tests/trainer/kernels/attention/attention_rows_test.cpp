// Views of packed rows, and positions of queries.
#include "trainer/kernels/attention/attention_rows.h"

#include <ATen/core/IListRef.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <gtest/gtest.h>

#include "tests/trainer/aten.h"

namespace tycho {
namespace {

TEST(AttentionRows, OfPackedRowsAreViews) {
  const AttentionShape s = {2, 3, 4, 2, 5};
  const Tensor qkv = at::randn({6, 8 * 5});
  const AttentionRows rows = packed_rows(s, qkv);
  EXPECT_TRUE(at::equal(at::cat({rows.q_NE, rows.kv}, 1), qkv));
  EXPECT_EQ(rows.kv.size(1), 20);
  EXPECT_EQ(rows.q_NE.data_ptr(), qkv.data_ptr());
}

TEST(AttentionRows, QueriesAreAllTokensOrThoseOfTwoSpans) {
  EXPECT_TRUE(at::equal(query_positions({1, 4, 1, 1, 2}), at::arange(4)));
  EXPECT_EQ(num_keys({1, 4, 1, 1, 2}), 4);
  const AttentionShape cut = {1, 5, 1, 1, 2, 12, {2, 2}, {8, 3}};
  EXPECT_TRUE(at::equal(query_positions(cut), at::tensor({2, 3, 8, 9, 10}, at::kLong)));
  EXPECT_EQ(num_keys(cut), 12);
}

}  // namespace
}  // namespace tycho
