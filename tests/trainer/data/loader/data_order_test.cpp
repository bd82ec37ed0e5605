// From keys of a recipe to an order of samples.
#include "trainer/data/loader/data_order.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

/// mosaicml-streaming 0.13.0: World(machines, ranks of each, 1, 0).replicate(r).num_nodes.
TEST(DataOrderTest, MachinesOfRanksThatShareSamples) {
  struct Case {
    int64_t machines, ranks_of_machine, replication, wanted;
  };
  for (const auto& [machines, ranks, replication, wanted] : {Case{1, 4, 1, 1},
                                                             {1, 4, 2, 1},
                                                             {2, 4, 1, 2},
                                                             {2, 4, 2, 1},
                                                             {2, 4, 8, 1},
                                                             {4, 8, 2, 2},
                                                             {4, 8, 4, 1},
                                                             {4, 8, 8, 1},
                                                             {4, 8, 16, 1},
                                                             {3, 2, 3, 1},
                                                             {4, 2, 4, 1}})
    EXPECT_EQ(machines_of_data_ranks(machines * ranks / replication, machines * ranks, machines), wanted)
        << machines << " " << ranks << " " << replication;
  EXPECT_EQ(machines_of_data_ranks(5, 5, 2), 1);
}

}  // namespace
}  // namespace tycho
