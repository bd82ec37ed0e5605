// A cache that processes share, fill, and are killed over.
#include "trainer/data/mds/shard_cache.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "tests/trainer/data/storage/cache_fixture.h"
#include "trainer/data/loader/loader.h"
#include "trainer/data/mds/preload.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::kRowTokens;
using testing::SeenRequest;
using testing::ServerReply;
using testing::ShardCacheTest;
using testing::write_text;

TEST_F(ShardCacheTest, FetchesEachShardOnce) {
  read_all();
  read_all();
  const MdsIndex shards = index();
  ASSERT_GT(shards.shards.size(), 4u);
  for (const MdsShard& shard : shards.shards)
    EXPECT_EQ(server_.count("/train/" + shard.path.substr(spec_.dir.size() + 1)), 1);
  EXPECT_TRUE(files_in(work_folder(spec_.dir)).empty());
}

TEST_F(ShardCacheTest, ANoteOrAnIndexWithoutEndIsNotKeptInMemory) {
  const std::string remote = spec_.remote = temp_ / "www/train";
  std::filesystem::resize_file(remote + "/index.json", uintmax_t{3} << 30);  // no bytes on disk
  expect_error(ExitCode::kUnusable,
               {"/train/index.json is longer than the 268435456 bytes", "the folder of a data set"},
               [&] { index(); });
  std::filesystem::resize_file(remote + "/index.json", 2);
  write_text(remote + "/tycho.json", std::string(2 << 20, ' '));
  expect_error(ExitCode::kUnusable, {"/train/tycho.json is longer than the 1048576 bytes"}, [&] { index(); });
  EXPECT_FALSE(std::filesystem::exists(spec_.dir + "/index.json"));
}

TEST_F(ShardCacheTest, ReadsFromAFolderAndFromAFileUrl) {
  for (const std::string prefix : {"", "file://"}) {
    spec_.remote = prefix + (temp_ / "www/train");
    spec_.dir = temp_ / ("cache" + prefix.substr(0, 4));
    read_all();
  }
  spec_.remote = spec_.dir = temp_ / "www/train";
  expect_error(ExitCode::kUnusable, {"the same folder"}, [&] { index(); });
  spec_.remote = temp_ / "nowhere";
  expect_error(ExitCode::kUnusable, {"/nowhere/index.json does not exist"}, [&] { index(); });
}

TEST_F(ShardCacheTest, ReadsWhatWasDownloadedFromTheHub) {
  const std::string hub = temp_ / "hub", name = "/datasets--me--texts", commit(40, 'a');
  std::filesystem::create_directories(hub + name + "/snapshots/" + commit);
  std::filesystem::copy(temp_ / "www/train", hub + name + "/snapshots/" + commit + "/train");
  ::setenv("HF_HUB_CACHE", hub.c_str(), 1);
  ::setenv("HF_HUB_OFFLINE", "1", 1);
  spec_.remote = "hf://datasets/me/texts/train";
  expect_error(ExitCode::kUnusable, {"HF_HUB_OFFLINE is set", "tycho fetch hf://datasets/me/texts/train"},
               [&] { index(); });
  write_text(hub + name + "/refs/main", commit);
  read_all();
  ::unsetenv("HF_HUB_CACHE");
  ::unsetenv("HF_HUB_OFFLINE");
}

TEST_F(ShardCacheTest, RefusesACacheOfOtherData) {
  index();
  write_data(temp_ / "other", "xxh3_128", 1);
  std::filesystem::copy(temp_ / "other/index.json", temp_ / "www/train/index.json",
                        std::filesystem::copy_options::overwrite_existing);
  expect_error(ExitCode::kUnusable,
               {server_.url() + "/train/index.json", temp_ / "cache/index.json", "differ"}, [&] { index(); });
}

TEST_F(ShardCacheTest, FetchesWhatIsDamagedInTheCacheAgain) {
  read_all();
  const std::string shard = spec_.dir + "/shard.00002.mds";
  std::string bytes = read_file(shard);
  bytes[bytes.size() / 2] ^= 1;
  write_text(shard, bytes);
  read_all();
  EXPECT_EQ(server_.count("/train/shard.00002.mds"), 2);
  EXPECT_EQ(read_file(work_folder(spec_.dir) + "/shard.00002.mds.bad"), bytes);
  ASSERT_EQ(::truncate(shard.c_str(), 100), 0);
  read_all();
  EXPECT_EQ(server_.count("/train/shard.00002.mds"), 3);
}

TEST_F(ShardCacheTest, FetchesOtherBytesOnceMoreAndThenNamesBothPlaces) {
  const std::string path = "/train/shard.00001.mds", wrong(1000, 'x');
  fail_times(1, {200, wrong}, path);
  read_all();
  EXPECT_EQ(server_.count(path), 2);
  std::filesystem::remove_all(spec_.dir);
  fail_times(9, {200, wrong}, path);
  expect_error(ExitCode::kUnusable,
               {server_.url() + path, "fetched twice", "shard.00001.mds.bad", "1000 bytes"},
               [&] { read_all(); });
  EXPECT_FALSE(std::filesystem::exists(spec_.dir + "/shard.00001.mds"));
}

TEST_F(ShardCacheTest, NamesAShardThatTheRemoteDoesNotHave) {
  fail_times(9, {404, ""}, "/train/shard.00003.mds");
  expect_error(ExitCode::kUnusable, {"/train/shard.00003.mds does not exist", "complete"},
               [&] { read_all(); });
}

TEST_F(ShardCacheTest, KeepsWithinItsLimitAndDoesNotEvictWhatIsOpen) {
  const MdsIndex shards = index();
  const int64_t largest = shards.shards[0].bytes;
  spec_.limit_bytes = 4 * largest;
  ShardCache cache(spec_, shards);
  const int open = cache.open(0, {});
  for (size_t i = 1; i < shards.shards.size(); ++i) {
    ::close(cache.open(i, {}));
    EXPECT_LE(cached_bytes(), 4 * largest);
  }
  EXPECT_TRUE(std::filesystem::exists(shards.shards[0].path)) << "is open";
  EXPECT_FALSE(std::filesystem::exists(shards.shards[1].path)) << "the oldest";
  ::close(open);
  read_all();
  EXPECT_LE(cached_bytes(), 4 * largest);
  spec_.limit_bytes = largest;
  expect_error(ExitCode::kUnusable, {"cache_limit", "at least"}, [&] { ShardCache small(spec_, shards); });
}

TEST_F(ShardCacheTest, PrefetchLeavesWhatIsNeededSooner) {
  const MdsIndex shards = index();
  spec_.limit_bytes = 4 * shards.shards[0].bytes;
  ShardCache cache(spec_, shards);
  for (size_t i = 0; i < 4; ++i) cache.prefetch(i, {}, [](size_t) { return false; });
  cache.prefetch(4, {}, [](size_t) { return false; });
  EXPECT_FALSE(cache.touch(4));
  EXPECT_TRUE(cache.touch(0));
  cache.prefetch(4, {}, [](size_t shard) { return shard == 2; });
  EXPECT_TRUE(cache.touch(4));
  EXPECT_FALSE(cache.touch(2));
}

TEST_F(ShardCacheTest, AReadOnlyCacheServesWhatItHasAndNamesWhatItLacks) {
  read_all();
  std::filesystem::remove(spec_.dir + "/shard.00003.mds");
  std::filesystem::permissions(temp_.path(), std::filesystem::perms(0755));
  std::filesystem::remove_all(work_folder(spec_.dir));
  std::filesystem::permissions(spec_.dir, std::filesystem::perms(0555));
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(3);  // root may write anywhere
    const MdsIndex shards = index();
    ShardCache cache(spec_, shards);
    ::close(cache.open(2, {}));
    expect_error(ExitCode::kStorage, {spec_.dir}, [&] { cache.open(3, {}); });
    ::_exit(HasFailure() ? 1 : 0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  std::filesystem::permissions(spec_.dir, std::filesystem::perms(0755));
}

TEST_F(ShardCacheTest, EightProcessesOfWhichHalfAreKilledShareAColdCache) { share_with_killed_processes(); }

TEST_F(ShardCacheTest, ContinuesWhereAKilledProcessWas) {
  const MdsIndex shards = index();
  const std::string name = "shard.00001.mds", whole = read_file(temp_ / ("www/train/" + name));
  const std::string part = work_folder(spec_.dir) + "/" + name + ".part";
  write_text(part, whole.substr(0, 700));
  write_text(work_folder(spec_.dir) + "/shard.99999.mds.part", "of no shard");
  ShardCache cache(spec_, shards);
  EXPECT_EQ(files_in(work_folder(spec_.dir)), std::set<std::string>{name + ".part"});
  ::close(cache.open(1, {}));
  EXPECT_EQ(server_.requests().back().headers.at("range"), "bytes=700-");
  EXPECT_EQ(read_file(shards.shards[1].path), whole);
}

TEST_F(ShardCacheTest, StartsOverWithoutAChecksum) {
  write_data(temp_ / "www/plain", "", 0);
  spec_.remote = server_.url() + "/plain";
  const MdsIndex shards = index();
  write_text(work_folder(spec_.dir) + "/shard.00001.mds.part", "from another time");
  read_all();
  for (const SeenRequest& request : server_.requests()) EXPECT_FALSE(request.headers.contains("range"));
}

TEST_F(ShardCacheTest, PreloadFetchesWhatIsMissingAndVerifiesTheRest) {
  const PreloadReport first = preload(spec_, 3, {});
  EXPECT_EQ(first.fetched_shards, first.shards);
  EXPECT_EQ(first.fetched_bytes, first.bytes);
  EXPECT_EQ(first.with_checksum, first.shards);
  std::filesystem::remove(spec_.dir + "/shard.00001.mds");
  std::string bytes = read_file(spec_.dir + "/shard.00002.mds");
  bytes.back() ^= 1;
  write_text(spec_.dir + "/shard.00002.mds", bytes);
  const PreloadReport again = preload(spec_, 3, {});
  EXPECT_EQ(again.fetched_shards, 2);
  EXPECT_EQ(preload(spec_, 3, {}).fetched_shards, 0);
  read_all();
}

TEST_F(ShardCacheTest, PreloadEndsWithTheFirstError) {
  fail_times(1000, {403, "no"}, "/train/shard.00003.mds");
  expect_error(ExitCode::kUnusable, {"/train/shard.00003.mds", "answers 403"},
               [&] { preload(spec_, 2, {}); });
}

/// Batches of two mixed streams through caches, as numbers.
class CachedLoaderTest : public ShardCacheTest {
 protected:
  CachedLoaderTest() {
    write_data(temp_ / "www/two", "", 100);
    config_.streams = {
        {.name = "one", .local_dir = temp_ / "c1", .remote = server_.url(), .proportion = 3},
        {.name = "two", .local_dir = temp_ / "c2", .remote = server_.url(), .split = "two", .proportion = 1}};
    config_.shuffle_algo = ShuffleAlgo::kPy1e;
    local_.streams = {{.name = "one", .local_dir = temp_ / "www", .proportion = 3},
                      {.name = "two", .local_dir = temp_ / "www", .split = "two", .proportion = 1}};
    local_.shuffle_algo = ShuffleAlgo::kPy1e;
  }

  static std::vector<std::vector<int32_t>> batches(const MdsConfig& config, int64_t from, int64_t until,
                                                   int64_t num_ranks) {
    std::vector<std::vector<int32_t>> all(static_cast<size_t>(until - from));
    for (int64_t rank = 0; rank < num_ranks; ++rank) {
      LoaderShape shape{.seq_len = kRowTokens,
                        .global_sequences = 8,
                        .rank = rank,
                        .num_ranks = num_ranks,
                        .vocab_size = 1000,
                        .seed = 3};
      const auto first = make_loader({{config}}, shape, {}, {});
      const auto loader = make_loader({{config}}, shape, first->cursor_after(from), {});
      for (auto& batch : all) {
        const std::vector<int32_t> part = loader->next().tokens.widened();
        batch.insert(batch.end(), part.begin(), part.end());
      }
    }
    return all;
  }

  MdsConfig config_, local_;
};

TEST_F(CachedLoaderTest, GivesTheBatchesOfALocalFolderAndResumesOnOtherRanks) {
  const auto wanted = batches(local_, 0, 25, 1);
  EXPECT_EQ(batches(config_, 0, 11, 1), std::vector(wanted.begin(), wanted.begin() + 11));
  EXPECT_EQ(batches(config_, 11, 25, 4), std::vector(wanted.begin() + 11, wanted.end()));
}

TEST_F(CachedLoaderTest, GivesTheSameFromACacheThatIsTooSmallForAnEpoch) {
  const auto wanted = batches(local_, 0, 25, 1);
  config_.cache_limit = Bytes{9000};
  EXPECT_EQ(batches(config_, 0, 25, 2), wanted);
}

TEST_F(CachedLoaderTest, GivesTheSameFromCompressedShards) {
  const auto wanted = batches(local_, 0, 25, 1);
  write_data(temp_ / "www/zips", "", 0, "zstd");
  config_.streams[0].split = "zips";
  config_.cache_limit = Bytes{20000};
  EXPECT_EQ(batches(config_, 0, 25, 2), wanted);
  config_.cache_limit = {};
  config_.streams[0].remote = "";
  config_.streams[0].local_dir = temp_ / "www";
  config_.decompress_dir = temp_ / "raw";
  EXPECT_EQ(batches(config_, 0, 25, 1), wanted);
  EXPECT_FALSE(std::filesystem::exists(temp_ / "www/zips/shard.00000.mds"));
}

TEST_F(CachedLoaderTest, AnErrorOfTheServerReachesTheTrainer) {
  fail_times(1000, {403, "no"}, "/train/shard.00003.mds");
  config_.download_retry = 0;
  expect_error(ExitCode::kUnusable, {"/train/shard.00003.mds", "answers 403"},
               [&] { batches(config_, 0, 25, 1); });
}

TEST_F(CachedLoaderTest, EndsWhileTheServerHangs) {
  const auto hang = [](const SeenRequest& request) {
    const bool first = request.path.ends_with("json") || request.path.ends_with("shard.00000.mds");
    return first ? std::nullopt : std::optional(ServerReply{.body = "late", .hang_s = 60});
  };
  server_.set_fault(hang);
  const auto start = std::chrono::steady_clock::now();
  { make_loader({{config_}}, {.seq_len = kRowTokens, .global_sequences = 8, .vocab_size = 1000}, {}, {}); }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
}

}  // namespace
}  // namespace tycho
