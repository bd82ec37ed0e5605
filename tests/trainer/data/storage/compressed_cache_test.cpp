// Compressed shards from a remote: what is fetched, decompressed, kept and evicted.
#include "tests/trainer/data/storage/cache_fixture.h"
#include "trainer/data/mds/preload.h"
#include "trainer/data/mds/shard_cache.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::SeenRequest;
using testing::ShardCacheTest;
using testing::write_text;

/// The same rows in compressed shards.
class CompressedCacheTest : public ShardCacheTest {
 protected:
  CompressedCacheTest() {
    write_data(temp_ / "www/zips", "xxh3_128", 0, "zstd");
    spec_.remote = server_.url() + "/zips";
  }
  std::set<std::string> zips() const {
    std::set<std::string> names;
    for (const std::string& name : files_in(spec_.dir))
      if (name.ends_with(".zstd")) names.insert(name);
    return names;
  }
};

TEST_F(CompressedCacheTest, FetchesTheCompressedFilesAndKeepsThemWhereAsked) {
  read_all();
  read_all();
  const size_t shards = index().shards.size();
  for (const SeenRequest& request : server_.requests())
    EXPECT_FALSE(request.path.ends_with(".mds")) << request.path;
  EXPECT_EQ(server_.count("/zips/shard.00003.mds.zstd"), 1);
  EXPECT_TRUE(zips().empty());
  EXPECT_TRUE(files_in(work_folder(spec_.dir)).empty());
  spec_.dir = temp_ / "keeping";
  spec_.keep_zip = true;
  read_all();
  EXPECT_EQ(zips().size(), shards);
  EXPECT_TRUE(files_in(work_folder(spec_.dir)).empty());
}

TEST_F(CompressedCacheTest, AKeptFileIsDecompressedAgainAndADamagedOneFetchedAgain) {
  spec_.keep_zip = true;
  read_all();
  std::filesystem::remove(spec_.dir + "/shard.00001.mds");
  std::filesystem::remove(spec_.dir + "/shard.00002.mds");
  const std::string zip = spec_.dir + "/shard.00002.mds.zstd";
  std::string bytes = read_file(zip);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_text(zip, bytes);
  read_all();
  EXPECT_EQ(server_.count("/zips/shard.00001.mds.zstd"), 1);
  EXPECT_EQ(server_.count("/zips/shard.00002.mds.zstd"), 2);
  EXPECT_EQ(read_file(work_folder(spec_.dir) + "/shard.00002.mds.zstd.bad"), bytes);
  EXPECT_EQ(zips().size(), index().shards.size());
}

TEST_F(CompressedCacheTest, DamageOfTheRawFileIsRepaired) {
  read_all();
  const std::string shard = spec_.dir + "/shard.00002.mds";
  std::string bytes = read_file(shard);
  bytes[bytes.size() / 2] ^= 1;
  write_text(shard, bytes);
  read_all();
  EXPECT_EQ(server_.count("/zips/shard.00002.mds.zstd"), 2);
  EXPECT_EQ(read_file(work_folder(spec_.dir) + "/shard.00002.mds.bad"), bytes);
}

TEST_F(CompressedCacheTest, OtherBytesAreNamedAndNothingIsLeftOfThem) {
  const std::string path = "/zips/shard.00001.mds.zstd";
  const std::string good = read_file(temp_ / "www/zips/shard.00001.mds.zstd");
  fail_times(1, {200, std::string(good.size(), 'x')}, path);
  read_all();
  EXPECT_EQ(server_.count(path), 2);
  std::filesystem::remove_all(spec_.dir);
  fail_times(9, {200, std::string(good.size(), 'x')}, path);
  expect_error(ExitCode::kUnusable, {server_.url() + path, "fetched twice", "shard.00001.mds.zstd.bad"},
               [&] { read_all(); });
  EXPECT_FALSE(std::filesystem::exists(spec_.dir + "/shard.00001.mds"));
  EXPECT_EQ(files_in(work_folder(spec_.dir)), std::set<std::string>{"shard.00001.mds.zstd.bad"});
}

TEST_F(CompressedCacheTest, TheLimitCountsCompressedAndRawFiles) {
  const MdsIndex shards = index();
  spec_.keep_zip = true;
  spec_.limit_bytes = 4 * (shards.shards[0].bytes + shards.shards[0].zip->bytes) + 100;
  ShardCache cache(spec_, shards);
  const auto used = [&] {
    int64_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(spec_.dir))
      if (entry.is_regular_file() && entry.path().extension() != ".json")
        bytes += static_cast<int64_t>(entry.file_size());
    return bytes;
  };
  for (size_t i = 0; i < shards.shards.size(); ++i) {
    ::close(cache.open(i, {}));
    EXPECT_LE(used(), *spec_.limit_bytes);
    EXPECT_TRUE(std::filesystem::exists(shards.shards[i].zip->path));
  }
  EXPECT_FALSE(std::filesystem::exists(shards.shards[0].path));
  EXPECT_FALSE(std::filesystem::exists(shards.shards[0].zip->path));
  spec_.limit_bytes = 4 * shards.shards[0].bytes;
  expect_error(ExitCode::kUnusable, {"cache_limit", "at least"}, [&] { ShardCache small(spec_, shards); });
}

TEST_F(CompressedCacheTest, ContinuesTheDownloadOfAKilledProcessAndDropsWhatItDecompressed) {
  const MdsIndex shards = index();
  const std::string name = "shard.00001.mds.zstd", whole = read_file(temp_ / ("www/zips/" + name));
  write_text(work_folder(spec_.dir) + "/" + name + ".part", whole.substr(0, 50));
  write_text(work_folder(spec_.dir) + "/shard.00001.mds.part", std::string(99999, 'x'));
  ShardCache cache(spec_, shards);
  EXPECT_EQ(files_in(work_folder(spec_.dir)), std::set<std::string>{name + ".part"});
  ::close(cache.open(1, {}));
  EXPECT_EQ(server_.requests().back().headers.at("range"), "bytes=50-");
  EXPECT_TRUE(files_in(work_folder(spec_.dir)).empty());
}

TEST_F(CompressedCacheTest, ProcessesThatAreKilledLeaveNothingBehind) { share_with_killed_processes(); }

TEST_F(CompressedCacheTest, PreloadCountsWhatIsFetched) {
  const PreloadReport first = preload(spec_, 3, {});
  EXPECT_EQ(first.fetched_shards, first.shards);
  EXPECT_LT(first.fetched_bytes, first.bytes);
  EXPECT_EQ(first.with_checksum, first.shards);
  EXPECT_EQ(preload(spec_, 3, {}).fetched_shards, 0);
  read_all();
}

}  // namespace
}  // namespace tycho
