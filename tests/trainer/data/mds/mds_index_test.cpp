// Indexes of very many shards.
#include "trainer/data/mds/mds_index.h"

#include <ctime>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::TempDir;
using testing::write_text;

std::string shard_entry(int64_t number) {
  return fmt::format(
      R"({{"column_encodings":["ndarray:uint16:64"],"column_names":["tokens"],"column_sizes":[128],"compression":null,)"
      R"("format":"mds","hashes":["xxh3_128"],"raw_data":{{"basename":"shard.{:05}.mds","bytes":2000,)"
      R"("hashes":{{"xxh3_128":"{:032x}"}}}},"samples":10,"size_limit":67108864,"version":2,"zip_data":null}})",
      number, number);
}

// A reader that looks through what it has read needs minutes here.
TEST(MdsIndex, TakesTimeInProportionToItsShards) {
  constexpr int64_t kMany = 100'000;
  std::string text = "{\"shards\":[";
  for (int64_t i = 0; i < kMany; ++i) text += (i == 0 ? "" : ",") + shard_entry(i);
  const TempDir dir;
  write_text(dir / "index.json", text + "],\"version\":2}");
  const std::clock_t start = std::clock();
  const MdsIndex index = read_mds_index(dir.path());
  EXPECT_LT(static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, 20);
  EXPECT_EQ(std::ssize(index.shards), kMany);
  EXPECT_EQ(index.num_samples(), 10 * kMany);
  EXPECT_EQ(index.shards.back().hash, fmt::format("{:032x}", kMany - 1));
}

TEST(MdsIndex, ReadsWhatStandsBeforeAndAfterItsShards) {
  const TempDir dir;
  write_text(dir / "index.json", "{\"version\":2,\"shards\":[" + shard_entry(7) + "]}");
  EXPECT_EQ(read_mds_index(dir.path()).num_samples(), 10);
  write_text(dir / "index.json", "{\"shards\":[" + shard_entry(7) + "],\"version\":1}");
  expect_error(ExitCode::kUnusable, {"\"version\" must be 2"}, [&] { read_mds_index(dir.path()); });
  write_text(dir / "index.json", "{\"shards\":{\"a\":" + shard_entry(7) + "},\"version\":2}");
  expect_error(ExitCode::kUnusable, {"\"shards\" must be a list"}, [&] { read_mds_index(dir.path()); });
}

}  // namespace
}  // namespace tycho
