// Reading MDS shards, whole and damaged.
#include "trainer/data/mds/mds_reader.h"

#include <chrono>
#include <cstring>
#include <fstream>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

std::vector<int64_t> tokens_of(MdsReader& reader, int64_t sample) {
  const size_t column = reader.column("tokens");
  const auto array = decode_mds_array(reader.index().shards[0].columns[column].encoding,
                                      reader.read(sample)[column], "[test]");
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < array.count; ++i) {
    const int64_t bytes = mds_dtype_bytes(array.dtype);
    int64_t token = 0;
    std::memcpy(&token, array.elements + i * bytes, static_cast<size_t>(bytes));
    tokens.push_back(token);
  }
  return tokens;
}

std::vector<int64_t> counting(int64_t from, int64_t count) {
  std::vector<int64_t> list(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) list[static_cast<size_t>(i)] = from + i;
  return list;
}

TEST(MdsReaderTest, ReadsWhatStreamingWrote) {
  MdsReader shards(read_mds_index(golden("mds/shards")));
  ASSERT_EQ(shards.index().num_samples(), 11);
  ASSERT_GT(shards.index().shards.size(), 2u);
  for (int64_t i = 10; i >= 0; --i) EXPECT_EQ(tokens_of(shards, i), counting(i, 10));
  EXPECT_EQ(shards.name_of(10).substr(0, 12), "sample 2 of ");

  for (const char* name : {"uint16", "untyped", "fixed_shape"}) {
    MdsReader reader(read_mds_index(golden(std::string("mds/") + name)));
    for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(tokens_of(reader, i), counting(i, 10)) << name;
  }
  MdsReader longer(read_mds_index(golden("mds/long_samples")));
  EXPECT_EQ(tokens_of(longer, 1), counting(1, 300));

  MdsReader text(read_mds_index(golden("mds/text_and_id")));
  EXPECT_EQ(text.read(0)[text.column("text")], "ab");
  EXPECT_EQ(text.read(1)[text.column("text")], "");
  EXPECT_EQ(text.read(1)[text.column("id")], std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff", 8));
  expect_error(ExitCode::kUnusable, {"no column \"tokens\"", "id, text"}, [&] { text.column("tokens"); });
}

class DamagedMdsTest : public ::testing::Test {
 protected:
  void SetUp() override { copy("shards"); }
  void copy(const std::string& name) {
    std::filesystem::remove_all(dir_);
    std::filesystem::copy(golden("mds/" + name), dir_, std::filesystem::copy_options::recursive);
  }
  void open_and_read() {
    MdsReader reader(read_mds_index(dir_));
    for (int64_t i = 0; i < reader.index().num_samples(); ++i) reader.read(i);
  }
  void expect_unusable(std::initializer_list<std::string_view> parts) {
    expect_error(ExitCode::kUnusable, parts, [&] { open_and_read(); });
  }
  template <class Change>
  void change_index(Change change) {
    auto json = SortedJson::parse(read_file(golden("mds/shards/index.json")));
    change(json);
    write_text(dir_ + "/index.json", json.dump());
  }
  TempDir temp_;
  std::string dir_ = temp_ / "data";
};

TEST_F(DamagedMdsTest, MissingFolderAndFiles) {
  std::filesystem::remove(dir_ + "/shard.00001.mds");
  expect_unusable({"cannot read shard", "shard.00001.mds"});
  std::filesystem::remove(dir_ + "/index.json");
  expect_unusable({"index.json does not exist", "tycho data convert"});
}

TEST_F(DamagedMdsTest, ADataSetWithoutShardsIsEmpty) {
  write_text(dir_ + "/index.json", R"({"shards": [], "version": 2})");
  const MdsReader reader(read_mds_index(dir_));
  expect_error(ExitCode::kUnusable, {"index.json lists no shards: the data set is empty"},
               [&] { reader.column("tokens"); });
}

TEST_F(DamagedMdsTest, TruncatedShard) {
  std::filesystem::resize_file(dir_ + "/shard.00001.mds", 200);
  expect_unusable({"shard.00001.mds has 200 bytes", "index.json says 394", "copy the shard again"});
}

TEST_F(DamagedMdsTest, EveryBitFlipIsFound) {
  const std::string path = dir_ + "/shard.00001.mds", good = read_file(path);
  for (size_t at = 0; at < good.size(); at += 7) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
    write_text(path, bad);
    expect_unusable({"shard.00001.mds"});
  }
}

TEST_F(DamagedMdsTest, WithoutChecksumsOffsetsAreChecked) {
  copy("two_samples");
  const std::string path = dir_ + "/shard.00000.mds", good = read_file(path);
  for (size_t at = 0; at < 16; ++at)
    for (const char value : {'\x00', '\x7f', '\xff'}) {
      std::string bad = good;
      bad[at] = value;
      if (bad == good) continue;
      write_text(path, bad);
      expect_unusable({"shard.00000.mds"});
    }
  std::string bad = good;
  bad[0xc5] = 0x7f;  // the length of the first sample's column
  write_text(path, bad);
  expect_unusable({"sample 0 of", "do not add up"});
}

TEST_F(DamagedMdsTest, ShardThatShrinksWhileItIsRead) {
  MdsReader reader(read_mds_index(dir_));
  reader.read(10);
  std::filesystem::resize_file(dir_ + "/shard.00002.mds", 100);
  expect_error(ExitCode::kUnusable, {"shard.00002.mds", "has 100 bytes now"}, [&] { reader.read(10); });
}

TEST_F(DamagedMdsTest, ShardsThatAreNotReadAreNotOpened) {
  std::filesystem::remove(dir_ + "/shard.00001.mds");
  MdsReader reader(read_mds_index(dir_));
  EXPECT_FALSE(reader.read(0).empty());
  expect_error(ExitCode::kUnusable, {"cannot read shard", "shard.00001.mds"},
               [&] { reader.read(reader.index().first_sample[1]); });
}

class ChangingMdsTest : public DamagedMdsTest {
 protected:
  std::string shard() const { return dir_ + "/shard.00000.mds"; }
  /// Turns over one bit in the last byte of the shard, a second later.
  void flip_bit(std::chrono::seconds later = std::chrono::seconds(1)) {
    const auto time = std::filesystem::last_write_time(shard());
    std::string bytes = read_file(shard());
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    std::fstream(shard(), std::ios::in | std::ios::out | std::ios::binary) << bytes;
    std::filesystem::last_write_time(shard(), time + later);
  }
  static int64_t last_of(const MdsReader& reader) { return reader.index().first_sample[1] - 1; }
};

TEST_F(ChangingMdsTest, AShardThatIsWrittenToWhileItIsReadIsNoticed) {
  MdsReader reader(read_mds_index(dir_));
  reader.read(0);
  flip_bit();
  expect_error(ExitCode::kUnusable, {"shard.00000.mds is damaged since this run first read it", "checksum"},
               [&] { reader.read(last_of(reader)); });
  flip_bit();
  EXPECT_EQ(tokens_of(reader, last_of(reader)).size(), 10u) << "whole again";
}

TEST_F(ChangingMdsTest, AShardThatIsTheSameAfterAChangeOfItsTimeIsReadOn) {
  MdsReader reader(read_mds_index(dir_));
  reader.read(0);
  std::filesystem::last_write_time(shard(),
                                   std::filesystem::last_write_time(shard()) + std::chrono::hours(1));
  EXPECT_EQ(tokens_of(reader, 0), counting(0, 10));
  std::filesystem::copy_file(shard(), shard() + ".new");  // put in its place: who reads has the old one
  std::filesystem::rename(shard() + ".new", shard());
  EXPECT_EQ(tokens_of(reader, 1), counting(1, 10));
}

TEST_F(ChangingMdsTest, AShardThatIsReplacedByOtherBytesIsReadFromTheOldFileOrRefused) {
  MdsReader before(read_mds_index(dir_));
  before.read(0);
  std::string bytes = read_file(shard());
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_text(shard() + ".new", bytes);
  std::filesystem::rename(shard() + ".new", shard());
  EXPECT_EQ(tokens_of(before, last_of(before)), counting(last_of(before), 10));
  MdsReader after(read_mds_index(dir_));
  expect_error(ExitCode::kUnusable, {"shard.00000.mds", "checksum"}, [&] { after.read(0); });
}

TEST_F(ChangingMdsTest, WhatChangesWithoutATraceIsFoundWhenShardsAreAlwaysVerified) {
  MdsReader once(read_mds_index(dir_)), always(read_mds_index(dir_), VerifyShards::kAlways);
  const int64_t num_samples = last_of(once) + 1;
  for (MdsReader* reader : {&once, &always}) reader->read(0);
  flip_bit(std::chrono::seconds(0));  // as a disk does, which keeps the file's time
  for (int64_t i = 1; i < num_samples; ++i) {
    once.read(0);
    EXPECT_NO_THROW(always.read(0)) << i;
  }
  EXPECT_NO_THROW(once.read(0));
  expect_error(ExitCode::kUnusable, {"shard.00000.mds is damaged since this run first read it"},
               [&] { always.read(0); });
  flip_bit(std::chrono::seconds(0));
  for (int64_t i = 0; i < 3 * num_samples; ++i) EXPECT_NO_THROW(always.read(0)) << "whole again";
}

TEST_F(ChangingMdsTest, WithoutAChecksumAChangeEndsTheReading) {
  change_index([](SortedJson& json) {
    for (SortedJson& one : json["shards"]) one["raw_data"]["hashes"] = SortedJson::object();
  });
  MdsReader reader(read_mds_index(dir_));
  reader.read(0);
  flip_bit();
  expect_error(ExitCode::kUnusable, {"shard.00000.mds was written to while this run reads it"},
               [&] { reader.read(0); });
}

TEST_F(DamagedMdsTest, AnInconsistentIndex) {
  using Json = SortedJson;
  const auto refuses = [&](std::initializer_list<std::string_view> parts, auto change) {
    change_index(change);
    expect_unusable(parts);
  };
  refuses({"index.json", "\"version\" must be 2"}, [](Json& json) { json["version"] = 3; });
  refuses({"no \"shards\""}, [](Json& json) { json.erase("shards"); });
  refuses({"\"shards\" must be a list"}, [](Json& json) { json["shards"] = 1; });
  refuses({"shard 1", "must be an object"}, [](Json& json) { json["shards"][1] = 1; });
  refuses({"shard 0", "arrow"}, [](Json& json) { json["shards"][0]["format"] = "arrow"; });
  refuses({"shard 2", "\"samples\""}, [](Json& json) { json["shards"][2]["samples"] = -1; });
  refuses({"shard 2", "\"samples\""}, [](Json& json) { json["shards"][2]["samples"] = 1.5; });
  refuses({"claims 4 samples", "index.json 5"}, [](Json& json) { json["shards"][0]["samples"] = 5; });
  refuses({"\"raw_data\"", "\"bytes\""}, [](Json& json) { json["shards"][0]["raw_data"]["bytes"] = "x"; });
  refuses({"path inside", "../x"}, [](Json& json) { json["shards"][0]["raw_data"]["basename"] = "../x"; });
  refuses({"path inside"}, [](Json& json) { json["shards"][0]["raw_data"]["basename"] = "/etc/passwd"; });
  refuses({"pkl", "not supported"}, [](Json& json) { json["shards"][0]["column_encodings"][0] = "pkl"; });
  refuses({"the same length"}, [](Json& json) { json["shards"][0]["column_names"] = Json::array(); });
  refuses({"shard 1 has different columns"},
          [](Json& json) { json["shards"][1]["column_names"][0] = "other"; });
  write_text(dir_ + "/index.json", "{\"shards\": [");
  expect_unusable({"index.json", "byte"});
  write_text(dir_ + "/index.json", std::string(100000, '['));
  expect_unusable({"index.json"});
}

TEST(MdsArrayTest, RejectsAnInconsistentIndex) {
  const auto refuses = [](std::string_view encoding, std::string value) {
    expect_error(ExitCode::kUnusable, {"[here]"}, [&] { decode_mds_array(encoding, value, "[here]"); });
  };
  refuses("ndarray:int32", "");
  refuses("ndarray:int32", "\x05");
  refuses("ndarray:int32", "\x08\x01\x01xxxx");                          // two dimensions
  refuses("ndarray:int32", "\x04\x02xxxx");                              // two elements announced, one there
  refuses("ndarray:int32", "\x07\xff\xff\xff\xff\xff\xff\xff\x3fxxxx");  // 2^62 - 1 elements
  refuses("ndarray", "\x01\x04\x01x");                                   // no such dtype
  refuses("ndarray:int32:4", "xxxx");
  refuses("str", "xxxx");
}

}  // namespace
}  // namespace tycho
