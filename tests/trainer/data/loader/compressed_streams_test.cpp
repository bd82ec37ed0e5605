// Batches of compressed shards, in memory and in files, against those of the same shards uncompressed.
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "tests/trainer/data/data_testing.h"
#include "trainer/data/loader/loader.h"
#include "trainer/data/mds/mds_writer.h"

namespace tycho {
namespace {

using testing::TempDir;

constexpr int32_t kShardTokens = 8;

class CompressedStreamsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* kind : {"plain", "zipped"}) {
      write(kind, "one", 23, 500);
      write(kind, "two", 11, 300);
    }
  }
  void write(const std::string& kind, const std::string& split, int32_t num_samples, int64_t size_limit) {
    make_dirs(real_files(), temp_ / (kind + "/" + split));
    MdsWriter writer(real_files(), temp_ / (kind + "/" + split),
                     {.columns = {{"tokens", "ndarray:int32"}},
                      .size_limit = size_limit,
                      .hashes = {"xxh64"},
                      .compression = kind == "zipped" ? "zstd" : ""});
    for (int32_t s = 0; s < num_samples; ++s) {
      std::vector<int32_t> tokens(kShardTokens);
      std::iota(tokens.begin(), tokens.end(), 10 * s + (split == "one" ? 0 : 300));
      writer.write({encode_mds_array(tokens.data(), kShardTokens, sizeof(int32_t))});
    }
    writer.finish();
    ASSERT_GT(writer.num_shards(), 1);
  }
  std::vector<TokenArray> batches_of(const std::string& kind) {
    config_.streams = {{.name = "one", .local_dir = temp_ / kind, .split = "one"},
                       {.name = "two", .local_dir = temp_ / kind, .split = "two"}};
    const auto loader = make_loader({{config_}}, shape_, {1, 8}, {});
    std::vector<TokenArray> batches;
    for (int i = 0; i < 60; ++i) batches.push_back(loader->next().tokens);
    return batches;
  }
  /// Decompressed files; they are removed.
  int num_files() const {
    int count = 0;
    std::vector<std::string> raw;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(temp_ / "zipped"))
      if (entry.path().extension() == ".mds") raw.push_back(entry.path());
    for (const std::string& path : raw) count += std::filesystem::remove(path);
    return count;
  }
  TempDir temp_;
  MdsConfig config_;
  LoaderShape shape_{.seq_len = kShardTokens, .global_sequences = 4, .vocab_size = 500, .seed = 17};
};

TEST_F(CompressedStreamsTest, GiveTheSameBatchesWithMuchMemoryLittleAndNone) {
  for (const ShuffleAlgo algo : {ShuffleAlgo::kNaive, ShuffleAlgo::kPy1e, ShuffleAlgo::kPy1s}) {
    config_.shuffle_algo = algo;
    if (algo == ShuffleAlgo::kPy1e) config_.shuffle_block_size = 9;
    if (algo == ShuffleAlgo::kPy1s) config_.num_canonical_nodes = 2;
    const auto wanted = batches_of("plain");
    std::map<int64_t, int> files;
    for (const int64_t limit : {0, 700, 1 << 20}) {
      config_.decompress_memory = Bytes{limit};
      EXPECT_TRUE(batches_of("zipped") == wanted) << limit;
      files[limit] = num_files();
    }
    config_.shuffle_block_size.reset();
    EXPECT_EQ(files[1 << 20], 0);
    EXPECT_GT(files[700], 0);
    EXPECT_GE(files[0], files[700]);
  }
}

TEST_F(CompressedStreamsTest, RanksOfAMachineShareFilesAndThoseOfSeveralDoNot) {
  shape_.num_ranks = 2;
  batches_of("zipped");
  EXPECT_GT(num_files(), 5);
  shape_.num_nodes = 2;
  batches_of("zipped");
  EXPECT_EQ(num_files(), 0);
}

}  // namespace
}  // namespace tycho
