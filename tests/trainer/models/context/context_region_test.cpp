// Which tokens a rank has, and rows that travel to all ranks and back.
#include "trainer/models/context/context_region.h"

#include <ATen/ops/arange.h>
#include <gtest/gtest.h>

#include "tests/trainer/aten.h"
#include "tests/trainer/comm/thread_world.h"

namespace tycho {
namespace {

TEST(ContextRegion, OfOneRankHasAllTokens) {
  const ContextRegion none;
  const Tensor x = at::arange(6, at::kInt);
  EXPECT_TRUE(at::equal(none.own(x), x));
  EXPECT_FALSE(none.is_shared());
  const auto alone = make_world_of_one();
  EXPECT_FALSE(ContextRegion(*alone, 3).is_shared());
}

TEST(ContextRegion, HasAnEarlyAndALatePartOfEachSequence) {
  ThreadWorld(2).run([](Communicator& world) {
    const ContextRegion region(world, 8);
    const Tensor wanted = world.rank() == 0 ? at::tensor({0, 1, 6, 7, 8, 9, 14, 15}, at::kInt)
                                            : at::tensor({2, 3, 4, 5, 10, 11, 12, 13}, at::kInt);
    EXPECT_TRUE(at::equal(region.own(at::arange(16, at::kInt)), wanted));
    EXPECT_FALSE(region.own(Tensor()).defined());
  });
}

TEST(ContextRegion, GathersRowsInTheOrderOfPositionsAndSumsThemBack) {
  ThreadWorld(3).run([](Communicator& world) {
    const ContextRegion region(world, 12);
    const Tensor whole = at::arange(2 * 12 * 5, at::kFloat).view({24, 5});
    const Tensor rows = region.own(at::arange(24, at::kLong));
    const Tensor wide = at::zeros({8, 7});  // rows that do not touch
    wide.narrow(1, 2, 5).copy_(whole.index_select(0, rows));
    Tensor all = at::empty({24, 5}), room = at::empty({24, 5});
    region.gather(wide.narrow(1, 2, 5), room, all);
    EXPECT_TRUE(at::equal(all, whole));
    const Tensor share = whole * (world.rank() + 1);
    region.scatter(share, room, wide.narrow(1, 2, 5));
    EXPECT_TRUE(at::equal(wide.narrow(1, 2, 5), whole.index_select(0, rows) * 6));
    EXPECT_EQ(wide.narrow(1, 0, 2).abs().max().item<float>(), 0);
  });
}

TEST(ContextRegion, TakesItsRowsOfATableAndPutsThemBack) {
  ThreadWorld(2).run([](Communicator& world) {
    const ContextRegion region(world, 8);
    const Tensor table = at::arange(20, at::kFloat).view({10, 2});
    const Tensor rows = region.own_rows(table), wanted = region.own(at::arange(8, at::kLong));
    EXPECT_TRUE(at::equal(rows, table.index_select(0, wanted)));
    Tensor sum = at::ones({10, 2});
    region.put_rows(rows, sum, /*add=*/true);
    EXPECT_TRUE(at::equal(sum.index_select(0, wanted), rows + 1));
    EXPECT_EQ(sum[9][0].item<float>(), 1);
    region.put_rows(rows, sum, /*add=*/false);
    EXPECT_EQ(sum.sum().item<float>(), rows.sum().item<float>());
  });
}

}  // namespace
}  // namespace tycho
