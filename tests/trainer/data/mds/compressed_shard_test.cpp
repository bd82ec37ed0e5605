// Compressed shards: those of mosaicml-streaming are read, Tycho's hold the same bytes, and damage is found.
#include "trainer/data/mds/compressed_shard.h"

#include <unistd.h>

#include <chrono>
#include <thread>

#include "tests/trainer/data/data_testing.h"
#include "tests/trainer/data/storage/decompressed.h"
#include "trainer/data/mds/mds_reader.h"
#include "trainer/data/mds/mds_writer.h"
#include "trainer/data/storage/part_file.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;
using testing::decompressed;
using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

const std::vector<std::string> kSets = {"zstd", "zstd:19", "gz",    "gz:1",  "br",
                                        "br:5", "bz2",     "bz2:1", "snappy"};

std::string folder_of(std::string name) {
  std::replace(name.begin(), name.end(), ':', '_');
  return "compressed_" + name;
}

std::string sample_of(int32_t first) {
  std::vector<int32_t> tokens(40);
  for (int32_t i = 0; i < 40; ++i) tokens[static_cast<size_t>(i)] = (first + i) % 50;
  return encode_mds_array(tokens.data(), 40, sizeof(int32_t));
}

class CompressedShardTest : public ::testing::Test {
 protected:
  void copy(const std::string& name) {
    fs::remove_all(dir_);
    fs::copy(golden("mds_values/" + folder_of(name)), dir_, fs::copy_options::recursive);
  }
  void read_all(RawShards raw = RawShards::kInFiles, const std::string& decompress_dir = "") const {
    MdsReader reader(read_mds_index(dir_, decompress_dir), VerifyShards::kOnce, raw);
    ASSERT_EQ(reader.index().num_samples(), 12);
    for (int32_t i = 11; i >= 0; --i) EXPECT_EQ(reader.read(i)[0], sample_of(i)) << i;
  }
  void expect_unusable(std::initializer_list<std::string_view> parts) const {
    expect_error(ExitCode::kUnusable, parts, [&] { read_all(); });
  }
  template <class Change>
  void change_index(Change change) {
    Json json = parse_json(read_file(dir_ + "/index.json"), "index.json");
    change(json);
    write_text(dir_ + "/index.json", json.dump());
  }
  std::string raw() const { return dir_ + "/shard.00000.mds"; }
  std::string zip() const { return dir_ + "/shard.00000.mds.zstd"; }
  TempDir temp_;
  std::string dir_ = temp_ / "data";
};

TEST_F(CompressedShardTest, ReadsWhatStreamingCompressed) {
  for (const std::string& name : kSets) {
    SCOPED_TRACE(name);
    copy(name);
    const auto before = std::distance(fs::directory_iterator(dir_), {});
    read_all(RawShards::kInMemory);
    EXPECT_EQ(std::distance(fs::directory_iterator(dir_), {}), before) << "nothing was written";
    read_all();
    EXPECT_EQ(std::distance(fs::directory_iterator(dir_), {}), 2 * before - 1) << "each shard's raw file";
  }
}

TEST_F(CompressedShardTest, MemoryHoldsWhatFitsAndFilesTheRest) {
  for (const std::string& name : kSets) {
    SCOPED_TRACE(name);
    copy(name);
    const MdsIndex index = read_mds_index(dir_);
    const auto num_raw = [&] {
      return std::ranges::count_if(index.shards, [](const MdsShard& one) { return fs::exists(one.path); });
    };
    ASSERT_GT(index.shards.size(), 2u);
    int64_t all_bytes = 0;
    for (const MdsShard& one : index.shards) all_bytes += one.bytes;
    const auto read_twice = [&](int64_t limit_bytes) {
      const auto memory = std::make_shared<ShardMemory>(limit_bytes);
      MdsReader reader(index, local_source(VerifyShards::kAlways, RawShards::kInFiles, memory));
      EXPECT_TRUE(reader.prefetches());
      for (int32_t i = 23; i >= 0; --i) EXPECT_EQ(reader.read(i % 12)[0], sample_of(i % 12)) << i;
      EXPECT_LE(memory->held_bytes(), limit_bytes);
    };
    read_twice(all_bytes);
    EXPECT_EQ(num_raw(), 0) << "nothing was written";
    read_twice(index.shards.back().bytes);
    EXPECT_EQ(num_raw(), std::ssize(index.shards) - 1) << "all but the first that was read";
    fs::remove(index.shards[0].path);
    read_twice(all_bytes);
    EXPECT_EQ(num_raw(), std::ssize(index.shards) - 2) << "files that are there are read";
    read_twice(1);
    EXPECT_EQ(num_raw(), std::ssize(index.shards));
  }
}

TEST_F(CompressedShardTest, DamageIsFoundInMemoryToo) {
  const auto read_in_memory = [&] {
    const auto memory = std::make_shared<ShardMemory>(1 << 20);
    MdsReader(read_mds_index(dir_), local_source(VerifyShards::kOnce, RawShards::kInFiles, memory)).read(0);
  };
  const auto refuses = [&](std::initializer_list<std::string_view> parts, auto change) {
    copy("zstd");
    change();
    expect_error(ExitCode::kUnusable, parts, read_in_memory);
    EXPECT_FALSE(fs::exists(raw()));
  };
  refuses({"shard.00000.mds.zstd is damaged: its checksum"}, [&] {
    std::string bytes = read_file(zip());
    bytes[bytes.size() / 2] = static_cast<char>(bytes[bytes.size() / 2] ^ 4);
    write_text(zip(), bytes);
  });
  refuses({"the contents of", "shard.00000.mds.zstd is damaged: its checksum"}, [&] {
    change_index([](Json& json) {
      for (auto& [name, hash] : json["shards"][0]["raw_data"]["hashes"].items())
        hash = std::string(hash.template get<std::string>().size(), '0');
    });
  });
  refuses({"shard.00000.mds.zstd", "gives more than the"}, [&] {
    change_index([](Json& json) {
      json["shards"][0]["raw_data"]["bytes"] = json["shards"][0]["raw_data"]["bytes"].get<int64_t>() - 1;
    });
  });
  refuses({"the contents of", "samples"}, [&] {
    change_index([](Json& json) {
      json["shards"][0]["samples"] = json["shards"][0]["samples"].get<int64_t>() - 1;
      json["shards"][0]["raw_data"]["hashes"] = Json::object();
    });
  });
}

TEST_F(CompressedShardTest, ACompressedFileThatIsReplacedIsNoticedWhenItIsDecompressedAgain) {
  const auto read_before_and_after = [&](bool has_checksums) {
    copy("zstd");
    if (!has_checksums)
      change_index([](Json& json) {
        for (Json& one : json["shards"])
          for (const char* file : {"raw_data", "zip_data"}) one[file]["hashes"] = Json::object();
      });
    const MdsIndex index = read_mds_index(dir_);
    const auto memory = std::make_shared<ShardMemory>(index.shards[0].bytes + index.shards[1].bytes);
    MdsReader reader(index, local_source(VerifyShards::kOnce, RawShards::kInFiles, memory));
    const auto read_shard_at = [&](size_t one) {  // often, so that it makes room for others
      for (int round = 0; round < 200; ++round)
        for (int64_t i = index.first_sample[one]; i < index.first_sample[one + 1]; ++i)
          EXPECT_EQ(reader.read(i)[0], sample_of(static_cast<int32_t>(i)));
    };
    const auto others = [&](const char* from) {
      fs::copy_file(golden("mds_values/" + folder_of("zstd")) + "/shard.00000.mds.zstd", temp_ / from);
      fs::rename(temp_ / from, zip());
    };
    read_shard_at(0);
    others("equal");
    for (const size_t one : {0, 1, 2}) read_shard_at(one);  // the first is still in memory
    read_shard_at(0);                                       // anew
    EXPECT_FALSE(fs::exists(raw()));
  };
  read_before_and_after(true);
  expect_error(ExitCode::kUnusable, {"shard.00000.mds.zstd was written to while this run reads it"},
               [&] { read_before_and_after(false); });
}

TEST_F(CompressedShardTest, WritesShardsOfTheSameContents) {
  for (const std::string& name : kSets) {
    SCOPED_TRACE(name);
    fs::remove_all(dir_);
    fs::create_directory(dir_);
    MdsWriter writer(real_files(), dir_,
                     {.columns = {{"tokens", "ndarray:int32"}},
                      .size_limit = 1200,
                      .hashes = {"sha1", "xxh64"},
                      .compression = name});
    for (int32_t i = 0; i < 12; ++i) writer.write({sample_of(i)});
    writer.finish();
    const std::string peer = golden("mds_values/" + folder_of(name));
    Json ours = parse_json(read_file(dir_ + "/index.json"), "ours");
    Json theirs = parse_json(read_file(peer + "/index.json"), "theirs");
    for (Json* index : {&ours, &theirs})
      for (Json& shard : (*index)["shards"]) {
        // Versions of a library may compress differently.
        shard["zip_data"].erase("bytes");
        shard["zip_data"].erase("hashes");
      }
    EXPECT_EQ(ours.dump(), theirs.dump());
    const MdsIndex index = read_mds_index(dir_), peers = read_mds_index(peer);
    for (size_t i = 0; i < index.shards.size(); ++i) {
      const auto raw_of = [](const MdsShard& shard) {
        return decompressed(shard.zip->path, shard.zip->kind, shard.bytes);
      };
      EXPECT_EQ(raw_of(index.shards[i]), raw_of(peers.shards[i]));
    }
    read_all();
  }
}

TEST_F(CompressedShardTest, DecompressesOnceAndAgainWhenTheCompressedFileIsNewer) {
  copy("zstd");
  read_all();
  const auto first = fs::last_write_time(raw());
  fs::remove(zip());
  read_all();
  EXPECT_EQ(fs::last_write_time(raw()), first) << "the raw file alone is enough";
  copy("zstd");
  write_text(raw(), std::string(static_cast<size_t>(read_mds_index(dir_).shards[0].bytes), 'x'));
  fs::last_write_time(raw(), fs::last_write_time(zip()) - std::chrono::hours(1));
  read_all();
}

TEST_F(CompressedShardTest, ADamagedRawFileIsFoundByItsChecksum) {
  copy("zstd");
  read_all();
  std::string bytes = read_file(raw());
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_text(raw(), bytes);
  expect_unusable({"shard.00000.mds is damaged", "delete it, so that it is decompressed again"});
  fs::remove(raw());
  read_all();
}

TEST_F(CompressedShardTest, ShardsOfDataThatCannotBeWrittenToGoElsewhere) {
  copy("gz");
  const auto before = std::distance(fs::directory_iterator(dir_), {});
  read_all(RawShards::kInFiles, temp_ / "fast/disk");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), {}), before);
  const MdsIndex here = read_mds_index(dir_, temp_ / "fast/disk");
  EXPECT_TRUE(fs::exists(here.shards[0].path));
  fs::copy(dir_, temp_ / "other", fs::copy_options::recursive);
  EXPECT_NE(read_mds_index(temp_ / "other", temp_ / "fast/disk").shards[0].path, here.shards[0].path);
  write_text(temp_ / "file", "");
  expect_error(ExitCode::kStorage, {"cannot be decompressed there", ".mds.gz"},
               [&] { read_all(RawShards::kInFiles, temp_ / "file/x"); });
}

TEST_F(CompressedShardTest, ABatchOfShardsIsDecompressedAheadByOtherThreads) {
  copy("zstd");
  MdsReader reader(read_mds_index(dir_));
  ASSERT_TRUE(reader.prefetches());
  const std::vector<uint32_t> samples = {0, 11};
  reader.prefetch(samples);
  const std::string last = reader.index().shards.back().path;
  for (int i = 0; i < 30000 && !(fs::exists(raw()) && fs::exists(last)); ++i) ::usleep(1000);
  EXPECT_TRUE(fs::exists(raw()));
  EXPECT_TRUE(fs::exists(last));
  EXPECT_EQ(reader.read(11)[0], sample_of(11));
  fs::remove_all(dir_);
  fs::copy(golden("mds_values/" + folder_of("zstd")), dir_, fs::copy_options::recursive);
  EXPECT_FALSE(MdsReader(read_mds_index(dir_), VerifyShards::kOnce, RawShards::kInMemory).prefetches());
}

TEST_F(CompressedShardTest, WhatAKilledDecompressionLeftIsTakenOverOrRemoved) {
  copy("zstd");
  const MdsIndex index = read_mds_index(dir_);
  ASSERT_GT(index.shards.size(), 2u);
  write_text(raw() + ".part", "the beginning of other bytes that is longer than" + std::string(9999, '.'));
  write_text(index.shards[2].path + ".part", "left over");
  write_text(dir_ + "/mine.part", "of no shard");
  MdsReader reader(index);
  EXPECT_EQ(reader.read(0)[0], sample_of(0));
  EXPECT_FALSE(fs::exists(raw() + ".part"));
  EXPECT_FALSE(fs::exists(index.shards[2].path + ".part")) << "before the shard is needed";
  EXPECT_TRUE(fs::exists(dir_ + "/mine.part"));
  read_all();
}

TEST_F(CompressedShardTest, AProcessThatDecompressesIsWaitedFor) {
  copy("zstd");
  const MdsIndex index = read_mds_index(dir_);
  std::optional<PartFile> other = PartFile::claim(raw() + ".part", [] { return false; }, {});
  const std::string bytes = decompressed(zip(), CompressionKind::kZstd, index.shards[0].bytes);
  std::jthread reader([&] { read_all(); });
  other->write(bytes.data(), bytes.size());
  other->publish(raw());
  other.reset();
  reader.join();
  std::stop_source stop;
  stop.request_stop();
  fs::remove(raw());
  other = PartFile::claim(raw() + ".part", [] { return false; }, {});
  expect_error(ExitCode::kTerminated, {"shard.00000.mds"},
               [&] { decompress_shard(index.shards[0], stop.get_token()); });
}

TEST_F(CompressedShardTest, TruncatedAndFlippedFilesAreFound) {
  copy("zstd");
  const std::string good = read_file(zip());
  write_text(zip(), good.substr(0, good.size() - 1));
  expect_unusable({"shard.00000.mds.zstd has", "index.json says"});
  for (size_t at = 0; at < good.size(); at += 11) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
    write_text(zip(), bad);
    expect_unusable({"shard.00000.mds.zstd is damaged: its checksum"});
    EXPECT_FALSE(fs::exists(raw()));
  }
  // Without checksums the format's own rules are what finds damage.
  change_index([](Json& json) {
    for (Json& shard : json["shards"])
      for (const char* file : {"raw_data", "zip_data"}) shard[file]["hashes"] = Json::object();
  });
  std::string bad = good;
  bad[0] = 'x';
  write_text(zip(), bad);
  expect_unusable({"shard.00000.mds.zstd is damaged near byte"});
  fs::remove(zip());
  expect_unusable({"cannot read shard", "shard.00000.mds.zstd"});
}

TEST_F(CompressedShardTest, AnIncorrectIndexIsRefused) {
  const auto refuses = [&](std::initializer_list<std::string_view> parts, auto change) {
    copy("zstd");
    change_index(change);
    expect_unusable(parts);
  };
  refuses({"shard 0", "\"lz4\""}, [](Json& json) { json["shards"][0]["compression"] = "lz4"; });
  refuses({"shard 0", "both"}, [](Json& json) { json["shards"][0]["compression"] = nullptr; });
  refuses({"shard 0", "both"}, [](Json& json) { json["shards"][0]["zip_data"] = nullptr; });
  refuses({"zip_data", "\"bytes\""}, [](Json& json) { json["shards"][0]["zip_data"]["bytes"] = 0; });
  refuses({"zip_data", "path inside"},
          [](Json& json) { json["shards"][0]["zip_data"]["basename"] = "../x"; });
  refuses({"different files"}, [](Json& json) {
    json["shards"][0]["zip_data"]["basename"] = json["shards"][0]["raw_data"]["basename"];
  });
  refuses({"size_limit"}, [](Json& json) { json["shards"][0]["raw_data"]["bytes"] = uint32_t{4000000000}; });
  refuses({"gives more than the"}, [](Json& json) {
    json["shards"][0]["raw_data"]["bytes"] = json["shards"][0]["raw_data"]["bytes"].get<int64_t>() - 1;
  });
  refuses({"hexadecimal digits"},
          [](Json& json) { json["shards"][0]["zip_data"]["hashes"]["xxh64"] = "xyz"; });
  refuses({"\"hashes\" must be an object"}, [](Json& json) { json["shards"][0]["zip_data"]["hashes"] = 1; });
}

}  // namespace
}  // namespace tycho
