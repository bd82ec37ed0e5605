// Where rows begin, counted by hand.
#include "trainer/data/mds/recut.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

TEST(Recut, EveryRowBelongsToTheShardWhereItBegins) {
  // Tokens 0-9, 10-19, 20-29 | 30-39 | 40-49, 50-59 in rows that begin at 0, 25 and, too short, at 50.
  EXPECT_EQ((Recut{.sample_tokens = 10, .row_tokens = 25}.shard_rows(std::vector<uint32_t>{3, 1, 2})),
            (std::vector<uint32_t>{2}));
  EXPECT_EQ((Recut{.sample_tokens = 10, .row_tokens = 4}.shard_rows(std::vector<uint32_t>{3, 1, 2})),
            (std::vector<uint32_t>{8, 2, 5}));
  EXPECT_EQ((Recut{.sample_tokens = 10, .row_tokens = 25}.samples_of(std::vector<uint32_t>{1, 0})),
            (std::vector<uint32_t>{2, 3, 4, 0, 1, 2}));
}

}  // namespace
}  // namespace tycho
