// Damage of every kind that a data set can show.
#include "trainer/data/prepare/dataset_damage.h"

#include <cstring>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"
#include "trainer/data/mds/compressed_shard.h"
#include "trainer/data/mds/mds_index.h"
#include "trainer/data/prepare/convert.h"

namespace tycho {
namespace {

using testing::golden;
using testing::TempDir;
using testing::write_text;

class DatasetDamageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ConvertOptions options{.inputs = {golden("tokenizer/corpus.txt")},
                           .tokenizer = golden("tokenizer/whole.json"),
                           .out_dir = temp_.path()};
    options.concat_tokens = 16;
    options.size_limit = 2000;
    convert_text(options);
    dir_ = temp_ / "train";
    shard_ = dir_ + "/shard.00001.mds";
    good_ = read_file(shard_);
    ASSERT_TRUE(find_damage(dir_, false).empty());
  }
  /// Leaves the shard without a checksum, so that only what it says can tell.
  void forget_checksums() {
    Json note = Json::parse(read_file(dir_ + "/tycho.json"));
    note.erase("shards");
    write_text(dir_ + "/tycho.json", note.dump());
  }
  uint32_t word(size_t at) const {
    uint32_t value = 0;
    std::memcpy(&value, good_.data() + at, sizeof value);
    return value;
  }
  void put(size_t at, uint32_t value) {
    std::string bad = good_;
    std::memcpy(bad.data() + at, &value, sizeof value);
    write_text(shard_, bad);
  }
  void expect_found(bool quick, std::initializer_list<std::string_view> parts) {
    const auto findings = find_damage(dir_, quick);
    ASSERT_EQ(findings.size(), 1u) << fmt::format("{}", fmt::join(findings, "\n"));
    for (const std::string_view part : parts)
      EXPECT_NE(findings[0].find(part), std::string::npos) << part << " in: " << findings[0];
  }

  TempDir temp_;
  std::string dir_, shard_, good_;
};

TEST_F(DatasetDamageTest, InconsistentOffsets) {
  const uint32_t samples = word(0), size = static_cast<uint32_t>(good_.size());
  ASSERT_GT(samples, 5u);
  for (const bool quick : {true, false}) {
    put(0, samples + 1);
    expect_found(quick, {shard_, "samples, index.json"});
    put(4, 7);
    expect_found(quick, {shard_, "the first sample cannot begin at byte 7"});
    put(4, size + 1);
    expect_found(quick, {"the first sample cannot begin"});
    put(4 + 4 * 3, word(4 + 4 * 2));  // a sample without bytes
    expect_found(quick, {shard_, "offset 3 of"});
    put(4 + 4 * 3, word(4 + 4 * 5));  // those after it are out of order
    expect_found(quick, {"offset 4 of"});
    put(4 + 4 * 3, size + 9);
    expect_found(quick, {"offset 3 of", "in a file of"});
    put(4 + 4 * samples, size - 1);
    expect_found(quick, {"the last sample ends at byte"});
    write_text(shard_, good_.substr(0, good_.size() - 1));
    expect_found(quick, {"bytes, index.json says"});
    write_text(shard_, good_);
  }
}

TEST_F(DatasetDamageTest, FilesAndIndexThatDisagree) {
  for (const bool quick : {true, false}) {
    write_text(dir_ + "/shard.00099.mds", "x");
    expect_found(quick, {"shard.00099.mds is not listed"});
    std::filesystem::remove(dir_ + "/shard.00099.mds");
    std::filesystem::rename(shard_, dir_ + "/gone");
    expect_found(quick, {shard_, "No such file"});
    std::filesystem::rename(dir_ + "/gone", shard_);
    std::string other = good_;
    other.replace(other.find("\"tokens\""), 8, "\"tokenz\"");
    write_text(shard_, other);
    expect_found(quick, {"has different columns than index.json: tokenz"});
    other.replace(other.find("\"tokenz\""), 8, "{{{{{{{{");
    write_text(shard_, other);
    expect_found(quick, {"its header", "is damaged"});
    write_text(shard_, good_);
    EXPECT_TRUE(find_damage(dir_, quick).empty());
  }
  Json index = Json::parse(read_file(dir_ + "/index.json"));
  index["shards"].push_back(index["shards"][0]);
  write_text(dir_ + "/index.json", index.dump());
  const auto findings = find_damage(dir_, true);
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_NE(findings[0].find("shard.00000.mds is listed twice"), std::string::npos);
  EXPECT_NE(findings[1].find("tycho.json"), std::string::npos);
}

TEST_F(DatasetDamageTest, DamageThatOnlyReadingReveals) {
  const uint32_t first = word(4);
  const size_t token = first + 4 + 2 + 4 * 5;  // after the sample's length, and its array's head
  put(token, 7);
  EXPECT_TRUE(find_damage(dir_, true).empty());
  expect_found(false, {shard_, "its checksum is"});
  forget_checksums();
  EXPECT_TRUE(find_damage(dir_, false).empty());  // a token like any other
  put(token, 4096);
  expect_found(false, {"sample 0 of", shard_, "token 4096, outside the vocabulary of 420"});
  put(token, static_cast<uint32_t>(-3));
  expect_found(false, {"token -3"});
  put(first, 60);
  expect_found(false, {"sample 0 of", "do not add up"});
  Json note = Json::parse(read_file(dir_ + "/tycho.json"));
  note["concat_tokens"] = 17;
  write_text(dir_ + "/tycho.json", note.dump());
  write_text(shard_, good_);
  EXPECT_GT(find_damage(dir_, false).size(), 1u);
  EXPECT_NE(find_damage(dir_, false)[0].find("has 16 tokens, tycho.json says 17"), std::string::npos);
}

TEST_F(DatasetDamageTest, DataSetsMadeElsewhereAreFine) {
  for (const char* name :
       {"shards", "two_samples", "text_and_id", "uint16", "untyped", "fixed_shape", "raw_bytes"})
    EXPECT_TRUE(find_damage(golden(std::string("mds/") + name), false).empty()) << name;
}

TEST(CompressedDamageTest, CompressedShardsAreReadInMemoryAndDamageIsNamed) {
  testing::TempDir temp;
  const std::string dir = temp / "data";
  std::filesystem::copy(testing::golden("mds_values/compressed_zstd"), dir);
  const auto files = [&] { return std::distance(std::filesystem::directory_iterator(dir), {}); };
  const auto before = files();
  EXPECT_TRUE(find_damage(dir, false).empty());
  EXPECT_TRUE(find_damage(dir, true).empty());
  EXPECT_EQ(files(), before);
  const std::string path = dir + "/shard.00001.mds.zstd";
  std::string bytes = read_file(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  testing::write_text(path, bytes);
  const auto found = find_damage(dir, false);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find("shard.00001.mds.zstd is damaged"), std::string::npos) << found[0];
}

/// A cache of a compressed data set, as a run leaves it: shards are decompressed, their compressed files
/// gone.
class CacheDamageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::copy(testing::golden("mds_values/compressed_zstd"), dir_);
    index_ = read_mds_index(dir_);
    ASSERT_GE(index_.shards.size(), 3u);
    for (const MdsShard& shard : index_.shards) decompress_shard(shard, {});
    for (const MdsShard& shard : index_.shards) std::filesystem::remove(shard.zip->path);
    std::filesystem::create_directory(dir_ + "/.tycho-cache");
  }
  testing::TempDir temp_;
  std::string dir_ = temp_ / "data";
  MdsIndex index_;
};

TEST_F(CacheDamageTest, DecompressedShardsAreCheckedAndAbsentOnesCounted) {
  for (const bool quick : {true, false}) EXPECT_TRUE(find_damage(dir_, quick).empty());
  EXPECT_EQ(num_absent_shards(dir_), 0);
  std::filesystem::remove(index_.shards[1].path);
  for (const bool quick : {true, false}) EXPECT_TRUE(find_damage(dir_, quick).empty());
  EXPECT_EQ(num_absent_shards(dir_), 1);
  const std::string good = read_file(index_.shards[2].path);
  testing::write_text(index_.shards[2].path, good.substr(0, good.size() - 1));
  for (const bool quick : {true, false}) {
    const auto found = find_damage(dir_, quick);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_NE(found[0].find(index_.shards[2].path + " has"), std::string::npos) << found[0];
  }
}

// Nobody fetches what a plain folder lacks.
TEST_F(CacheDamageTest, WithoutARemoteAnAbsentShardIsDamage) {
  std::filesystem::remove(dir_ + "/.tycho-cache");
  EXPECT_TRUE(find_damage(dir_, false).empty());
  std::filesystem::remove(index_.shards[1].path);
  EXPECT_EQ(num_absent_shards(dir_), 0);
  const auto found = find_damage(dir_, true);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].find(index_.shards[1].zip->path), std::string::npos) << found[0];
}

}  // namespace
}  // namespace tycho
