// Ranks that write one checkpoint, without a saver: rank 0 has the shards of all, or the reason of one.
#include "trainer/saving/shard_collection.h"

#include <gtest/gtest.h>

#include <optional>

#include "tests/trainer/base/faulty_files.h"
#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/comm/thread_world.h"

namespace tycho {
namespace {

constexpr int kRanks = 3;

ShardCollection::Tensors one_tensor(int rank, std::vector<float>& values) {
  values.assign(4, static_cast<float>(rank));
  TensorBytes tensor;
  tensor.name = "of_rank_" + std::to_string(rank);
  tensor.dtype = "F32";
  tensor.shape = {4};
  tensor.data = values.data();
  tensor.num_bytes = 16;
  return {tensor};
}

/// Writes shards of `writers` into `dir`. Returns rank 0's files; throws its failure.
std::vector<WrittenShard> write_together(const std::string& dir, std::vector<int> writers, bool joins,
                                         int faulty_rank = -1) {
  std::vector<WrittenShard> all;
  std::exception_ptr failure;
  ThreadWorld(kRanks).run([&](Communicator& world) {
    FaultyFiles faulty(1, /*stay_broken=*/true);
    FileOps& files = world.rank() == faulty_rank ? static_cast<FileOps&>(faulty) : real_files();
    ShardCollection shards(writers, joins, files, world);
    WriterThread writer;
    std::vector<float> values;
    auto tensors = shards.writes() ? one_tensor(world.rank(), values) : ShardCollection::Tensors();
    if (world.rank() == 0) {
      shards.open();
      writer.start(/*async=*/true, [&] {
        try {
          all = shards.write_with_others(dir, tensors);
        } catch (...) {
          failure = std::current_exception();
        }
        shards.close();
      });
    }
    shards.start_others(writer, tensors);
    EXPECT_TRUE(shards.is_collecting());
    shards.collect(writer, /*wait=*/true);
    EXPECT_FALSE(shards.is_collecting());
    writer.join();
  });
  if (failure) std::rethrow_exception(failure);
  return all;
}

TEST(ShardCollection, Rank0HasTheFilesOfAllWriters) {
  const TempDir dir;
  const std::vector<WrittenShard> all = write_together(dir.path(), {0, 2}, /*joins=*/false);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].file.name, rank_file_name(0));
  EXPECT_EQ(all[1].file.name, rank_file_name(2));
  ASSERT_EQ(all[1].tensors.size(), 1U);
  EXPECT_EQ(all[1].tensors[0].name, "of_rank_2");
}

TEST(ShardCollection, JoinedShardsAreOneFile) {
  const TempDir dir;
  const std::vector<WrittenShard> all = write_together(dir.path(), {0, 1, 2}, /*joins=*/true);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].file.name, rank_file_name(0));
  EXPECT_EQ(all[0].tensors.size(), 3U);
}

TEST(ShardCollection, TheFailureOfARankIsRank0s) {
  for (int faulty_rank = 0; faulty_rank < kRanks; ++faulty_rank) {
    const TempDir dir;
    try {
      write_together(dir.path(), {0, 1, 2}, /*joins=*/false, faulty_rank);
      ADD_FAILURE() << "rank " << faulty_rank << " cannot write";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::kStorage);
      if (faulty_rank > 0) {
        EXPECT_EQ(std::string(error.what()).rfind(fmt::format("rank {}: ", faulty_rank), 0), 0U)
            << error.what();
      }
    }
  }
}

TEST(ShardCollection, ASaveWithoutAFolderLeavesNothingToCollect) {
  ThreadWorld(kRanks).run([&](Communicator& world) {
    ShardCollection shards({0, 1, 2}, /*joins=*/false, real_files(), world);
    WriterThread writer;
    if (world.rank() == 0) {
      shards.open();
      writer.start(/*async=*/true, [&] { shards.close(); });
    }
    shards.start_others(writer, {});
    EXPECT_FALSE(shards.is_collecting());
    EXPECT_EQ(writer.is_in_flight(), world.rank() == 0);
  });
}

}  // namespace
}  // namespace tycho
