// Packing batch by batch: the rules of LLM Foundry's packer one by one. Whole runs of it:
// packed_chat_reader_test.
#include "trainer/data/chat/batch_packer.h"

#include <numeric>

#include "tests/trainer/data/data_testing.h"

namespace tycho {
namespace {

using Rows = std::vector<std::vector<uint32_t>>;

Rows pack_all(BatchPacker& packer, const std::vector<int32_t>& lengths) {
  std::vector<uint32_t> examples(lengths.size());
  std::iota(examples.begin(), examples.end(), 0u);
  return packer.pack(examples, lengths);
}

TEST(BatchPacker, TheLongestGoIntoTheFirstRowWithRoom) {
  BatchPacker packer(2, 10);
  // 6 opens a row; of the four that are left, 4 fits there; 3, 3 and 2 share another.
  EXPECT_EQ(pack_all(packer, {3, 6, 2, 4, 3}), (Rows{{1, 3}, {0, 4, 2}}));
  EXPECT_EQ(packer.waiting_examples(), 0);
}

TEST(BatchPacker, ARowThatReceivedAnExampleStandsBehindTheOthers) {
  BatchPacker packer(2, 10);
  EXPECT_EQ(pack_all(packer, {5, 5, 4, 3, 2}), (Rows{{0, 1}, {2, 3, 4}}));
  // 8 takes 2 and goes behind 7; then 9 takes 1 and goes behind both.
  BatchPacker three(3, 10);
  EXPECT_EQ(pack_all(three, {7, 8, 9, 1, 1, 2}), (Rows{{1, 5}, {2, 3}, {0, 4}}));
}

TEST(BatchPacker, WhenAsFewExamplesAreLeftAsRowsAreMissingEachOpensOne) {
  BatchPacker packer(3, 10);
  EXPECT_EQ(pack_all(packer, {1, 1, 1}), (Rows{{0}, {1}, {2}}));
  EXPECT_EQ(pack_all(packer, {2, 1, 1, 3}), (Rows{{3, 0}, {1}, {2}}));
}

TEST(BatchPacker, RowsThatWaitAreFilledByTheNextBatch) {
  BatchPacker packer(1, 10);
  const std::vector<int32_t> lengths = {6, 5, 4, 9, 1, 5};
  EXPECT_EQ(packer.pack(std::vector<uint32_t>{0, 1}, lengths), (Rows{{0}}));
  EXPECT_EQ(packer.waiting_examples(), 1);
  EXPECT_EQ(packer.waiting_tokens(), 5);
  // 9 and 1 fill a row; 4 comes to the 5 that waits, and both wait on.
  EXPECT_EQ(packer.pack(std::vector<uint32_t>{2, 3, 4}, lengths), (Rows{{3, 4}}));
  EXPECT_EQ(packer.waiting_examples(), 2);
  EXPECT_EQ(packer.pack(std::vector<uint32_t>{5}, lengths), (Rows{{1, 2}}));
  EXPECT_EQ(packer.waiting_tokens(), 5);
}

TEST(BatchPacker, RefusesWhatFitsNoRowAndTooFewExamples) {
  testing::expect_error(ExitCode::kFailure, {"[packing] expected examples of 1 to 8 tokens, got one of 9"},
                        [] {
                          BatchPacker packer(1, 8);
                          pack_all(packer, {3, 9});
                        });
  testing::expect_error(ExitCode::kFailure, {"[packing] expected at least 3 examples for 3 rows, got 2"}, [] {
    BatchPacker packer(3, 8);
    pack_all(packer, {3, 3});
  });
}

}  // namespace
}  // namespace tycho
