// Numbers whose sum depends on the order, against the order written out.
#include "trainer/sharding/tree_sum.h"

#include <gtest/gtest.h>

#include "tests/trainer/aten.h"

namespace tycho {
namespace {

std::vector<Tensor> leaves(int64_t count) {
  at::manual_seed(3);
  std::vector<Tensor> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(at::randn({5, 7}));
  return all;
}

Tensor sum_of(TreeSum& sum, const std::vector<Tensor>& all) {
  Tensor last;
  for (const Tensor& leaf : all) sum.add(last = leaf.clone());
  return last;
}

TEST(TreeSum, AddsInTheOrderOfTheTree) {
  const std::vector<Tensor> x = leaves(8);
  TreeSum eight({8}, x[0]), six({6}, x[0]), one({1}, x[0]);
  const Tensor wanted = ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
  for (int step = 0; step < 2; ++step) EXPECT_TRUE(at::equal(sum_of(eight, x), wanted));
  Tensor as_they_come = x[0].clone();
  for (size_t i = 1; i < x.size(); ++i) as_they_come += x[i];
  EXPECT_FALSE(at::equal(wanted, as_they_come)) << "the numbers do not tell orders apart";
  const std::vector<Tensor> first_six(x.begin(), x.begin() + 6);
  EXPECT_TRUE(at::equal(sum_of(six, first_six), ((x[0] + x[1]) + x[2]) + ((x[3] + x[4]) + x[5])));
  EXPECT_TRUE(at::equal(sum_of(one, {x[0]}), x[0]));
}

TEST(TreeSum, ForgetsAStepThatFailed) {
  const std::vector<Tensor> x = leaves(4);
  TreeSum sum({4}, x[0]);
  sum_of(sum, {x[0], x[1], x[2]});
  sum.restart();
  EXPECT_TRUE(at::equal(sum_of(sum, x), (x[0] + x[1]) + (x[2] + x[3])));
}

}  // namespace
}  // namespace tycho
