// Checksums, against those that mosaicml-streaming recorded.
#include "trainer/data/mds/shard_hash.h"

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;

TEST(ShardHashTest, EveryChecksumIsThatOfStreaming) {
  const std::string bytes = read_file(golden("mds_values/hashes/shard.00000.mds"));
  const Json recorded = parse_json(read_file(golden("mds_values/hashes/index.json")),
                                   "index.json")["shards"][0]["raw_data"]["hashes"];
  EXPECT_EQ(recorded.size(), shard_hash_names().size());
  for (const std::string& name : shard_hash_names()) {
    EXPECT_EQ(shard_hash(name, bytes), recorded[name].get<std::string>()) << name;
    EXPECT_EQ(shard_hash_digits(name), recorded[name].get<std::string>().size());
    ShardHasher pieces(name);
    for (size_t at = 0; at < bytes.size(); at += 7)
      pieces.update(bytes.data() + at, std::min<size_t>(7, bytes.size() - at));
    EXPECT_EQ(pieces.hex(), shard_hash(name, bytes)) << name;
  }
}

TEST(ShardHashTest, AnUnknownNameIsRefused) {
  EXPECT_EQ(shard_hash_digits("crc32"), 0u);
  expect_error(ExitCode::kUnusable, {"\"crc32\"", "xxh3_128", "sha256"}, [] { ShardHasher hasher("crc32"); });
}

}  // namespace
}  // namespace tycho
