// Shards of text, whole and damaged, against what mosaicml-streaming's own readers gave.
#include "trainer/data/mds/line_format.h"

#include <cstring>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"
#include "trainer/data/mds/cached_source.h"
#include "trainer/data/mds/mds_reader.h"
#include "trainer/data/mds/mds_value.h"
#include "trainer/data/mds/merge_index.h"
#include "trainer/data/mds/preload.h"
#include "trainer/data/mds/token_dataset.h"
#include "trainer/data/prepare/dataset_damage.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

/// Every sample as an object, with numbers as numbers again.
Json samples_of(MdsReader& reader) {
  Json samples = Json::array();
  for (int64_t i = 0; i < reader.index().num_samples(); ++i) {
    const std::vector<std::string_view>& values = reader.read(i);
    Json sample = Json::object();
    for (size_t c = 0; c < values.size(); ++c) {
      const MdsColumn& column = reader.index().shards[0].columns[c];
      const std::string value(values[c]);
      if (column.encoding == "str")
        sample[column.name] = value;
      else
        sample[column.name] = Json::parse(value);
    }
    samples.push_back(sample);
  }
  return samples;
}

Json samples_of(const std::string& dir, RawShards raw = RawShards::kInMemory) {
  MdsReader reader(read_mds_index(dir), VerifyShards::kOnce, raw);
  return samples_of(reader);
}

Json wanted(const std::string& name) {
  return Json::parse(read_file(golden("line_shards/samples.json"))).at(name);
}

constexpr std::array kDataSets = {"json", "json_zstd", "xsv", "csv", "tsv_gz", "chat", "merged"};

class LineShardsTest : public ::testing::Test {
 protected:
  /// A copy of a golden data set; its folder.
  std::string copy(const std::string& name) {
    const std::string dir = temp_ / name;
    fs::remove_all(dir);
    fs::create_directories(fs::path(dir).parent_path());
    fs::copy(golden("line_shards/" + name), dir, fs::copy_options::recursive);
    return dir;
  }
  /// What is wrong when one file has other bytes. Checksums are left out, so that only the contents can tell.
  void expect_unusable(const std::string& name, const std::string& file, std::string_view bytes,
                       std::initializer_list<std::string_view> parts) {
    const std::string dir = copy(name);
    write_text(dir + "/" + file, bytes);
    auto index = SortedJson::parse(read_file(dir + "/index.json"));
    for (auto& shard : index["shards"])
      for (const char* key : {"raw_data", "raw_meta"}) {
        shard[key]["hashes"] = SortedJson::object();
        if (shard[key]["basename"] == file) shard[key]["bytes"] = bytes.size();
      }
    write_text(dir + "/index.json", index.dump());
    expect_error(ExitCode::kUnusable, parts, [&] { samples_of(dir); });
    EXPECT_FALSE(find_damage(dir, false).empty());
  }
  template <class Change>
  void expect_unusable_index(const std::string& name, Change change,
                             std::initializer_list<std::string_view> parts) {
    const std::string dir = copy(name);
    auto index = SortedJson::parse(read_file(dir + "/index.json"));
    change(index["shards"][0]);
    write_text(dir + "/index.json", index.dump());
    expect_error(ExitCode::kUnusable, parts, [&] { samples_of(dir); });
  }
  TempDir temp_;
};

TEST_F(LineShardsTest, ReadsWhatStreamingWrote) {
  for (const char* name : kDataSets)
    for (const RawShards raw : {RawShards::kInMemory, RawShards::kInFiles}) {
      const std::string dir = copy(name);
      EXPECT_EQ(samples_of(dir, raw), wanted(name)) << name;
      EXPECT_EQ(find_damage(dir, false), std::vector<std::string>()) << name;
      EXPECT_EQ(find_damage(dir, true), std::vector<std::string>()) << name;
    }
}

TEST_F(LineShardsTest, InAnyOrder) {
  MdsReader reader(read_mds_index(golden("line_shards/json")));
  const Json samples = wanted("json");
  for (const int64_t i : {6, 0, 5, 5, 1, 6})
    EXPECT_EQ(reader.read(i)[reader.column("text")], samples[static_cast<size_t>(i)]["text"]);
}

TEST_F(LineShardsTest, MergedIndexHasTheBytesOfStreaming) {
  const std::string dir = copy("merged");
  fs::remove(dir + "/index.json");
  const MergedIndex merged = merge_indexes(real_files(), dir, {"a", "b"});
  EXPECT_EQ(merged.samples, 14);
  EXPECT_EQ(read_file(dir + "/index.json"), read_file(golden("line_shards/merged/index.json")));
}

TEST_F(LineShardsTest, FetchedFromARemoteWithTheirOffsets) {
  for (const char* name : {"json", "json_zstd", "tsv_gz"}) {
    CacheSpec spec{.remote = golden(std::string("line_shards/") + name), .dir = temp_ / "cache" + name};
    fetch_index(spec);
    MdsReader reader(read_mds_index(spec.dir), [&](const MdsIndex& index) {
      return make_cached_source(index, VerifyShards::kOnce, spec);
    });
    EXPECT_EQ(samples_of(reader), wanted(name));
    spec.dir = temp_ / "preloaded" + name;
    const PreloadReport report = preload(spec, 2, {});
    EXPECT_EQ(report.fetched_shards, 2 * std::ssize(reader.index().shards)) << "shards and their offsets";
    EXPECT_EQ(report.with_checksum, report.shards);
  }
}

TEST_F(LineShardsTest, DamageThatOnlyChecksumsReveal) {
  for (const char* file : {"shard.00001.csv", "shard.00001.csv.meta"}) {
    const std::string dir = copy("csv");
    std::string bytes = read_file(dir + "/" + file);
    bytes[9] ^= 1;
    write_text(dir + "/" + file, bytes);
    expect_error(ExitCode::kUnusable, {file, "is damaged: its checksum"}, [&] { samples_of(dir); });
  }
}

TEST_F(LineShardsTest, InvalidLines) {
  const std::string json = "shard.00001.json", row = R"({"prompt": "a", "response": "b"})";
  const auto with = [&](const std::string& line) {
    const std::string good = read_file(golden("line_shards/chat/" + json));
    return line + std::string(good.size() - line.size() - 1, ' ') + "\n";
  };
  expect_unusable("chat", json, with("not json"), {"sample 0 of", json});
  expect_unusable("chat", json, with("[1]"), {json});
  expect_unusable("chat", json, with(row.substr(0, 20) + "}"), {json});

  const auto line = [](const std::string& text) {
    return split_line({.is_json = true, .separator = "", .newline = "\n"},
                      {{"n", "str_int"}, {"t", "str"}, {"x", "str_float"}}, text + "\n", "a line");
  };
  EXPECT_EQ(line(R"({"t": "\u00e9", "x": 2.0, "n": -5, "more": []})"),
            (std::vector<std::string>{"-5", "é", "2.0"}));
  EXPECT_EQ(line(R"({"t": "", "x": 1e300, "n": 18446744073709551615})")[0], "18446744073709551615");
  const auto expect_wrong = [&](const std::string& text, std::string_view what) {
    expect_error(ExitCode::kUnusable, {"a line", what}, [&] { line(text); });
  };
  expect_wrong(R"({"t": "", "x": 1.5})", "no column \"n\"");
  expect_wrong(R"({"t": "", "x": 1.5, "n": 2.5})",
               "\"n\" must be a whole number of at most 64 bits, got 2.5");
  expect_wrong(R"({"t": "", "x": 1.5, "n": 123456789012345678901234567890})", "at most 64 bits");
  expect_wrong(R"({"t": 5, "x": 1.5, "n": 2})", "\"t\" must be a text, got 5");
  expect_wrong(R"({"t": "", "x": "1", "n": 2})", "\"x\" must be a number, got a text");
  expect_wrong("7", "must be a JSON object");
}

TEST_F(LineShardsTest, ValuesBetweenSeparators) {
  const LineFormat format{.is_json = false, .separator = "::", .newline = "\r\n"};
  const std::vector<MdsColumn> columns = {{"n", "str_int"}, {"t", "str"}};
  const auto line = [&](std::string_view text) { return split_line(format, columns, text, "a line"); };
  EXPECT_EQ(line("-12::\"a\n\r\n"), (std::vector<std::string>{"-12", "\"a\n"}));
  EXPECT_EQ(line("7::\r\n"), (std::vector<std::string>{"7", ""}));
  const auto expect_wrong = [&](std::string_view text, std::string_view what) {
    expect_error(ExitCode::kUnusable, {"a line", what}, [&] { line(text); });
  };
  expect_wrong("7::a\n", "does not end at the end of a line");
  expect_wrong("", "does not end at the end of a line");
  expect_wrong("7\r\n", "has 1 values, expected one for each of 2 columns");
  expect_wrong("7::a::b::c\r\n", "has more values, expected one for each of 2 columns");
  expect_wrong("x::a\r\n", "column \"n\"");
  expect_wrong("7::\xff\r\n", "column \"t\": the text is not UTF-8");
}

TEST_F(LineShardsTest, IncorrectOffsets) {
  const std::string meta = read_file(golden("line_shards/chat/shard.00000.json.meta"));
  const auto with = [&](size_t at, uint32_t value) {
    std::string bytes = meta;
    std::memcpy(bytes.data() + 4 * at, &value, sizeof value);
    return bytes;
  };
  const std::string file = "shard.00000.json.meta";
  expect_unusable("chat", file, with(0, 9), {file, "claims 9 samples"});
  expect_unusable("chat", file, with(2, 1'000'000), {"sample 0 of", "is damaged"});
  expect_unusable("chat", file, with(2, 3), {"sample 0 of"});
  uint32_t samples = 0;
  std::memcpy(&samples, meta.data(), sizeof samples);
  expect_unusable("chat", file, with(samples + 1, 1), {file, "the last sample ends at byte 1 of"});
}

TEST_F(LineShardsTest, IncorrectIndexes) {
  expect_unusable_index("csv", [](auto& shard) { shard["raw_meta"]["basename"] = "../x"; },
                        {"path inside the data set"});
  expect_unusable_index("csv",
                        [](auto& shard) { shard["raw_meta"]["basename"] = shard["raw_data"]["basename"]; },
                        {"\"raw_meta\" cannot be"});
  expect_unusable_index("csv", [](auto& shard) { shard["raw_meta"]["bytes"] = 4; },
                        {"\"bytes\" must be a whole number from"});
  expect_unusable_index("csv", [](auto& shard) { shard["raw_meta"]["bytes"] = 1 << 30; },
                        {"\"raw_meta\" cannot be"});
  expect_unusable_index("csv", [](auto& shard) { shard.erase("raw_meta"); }, {"has no \"raw_meta\""});
  expect_unusable_index("tsv_gz", [](auto& shard) { shard["zip_meta"] = nullptr; }, {"\"zip_meta\""});
  expect_unusable_index("csv", [](auto& shard) { shard["format"] = "parquet"; },
                        {"\"parquet\" is not supported"});
  expect_unusable_index("xsv", [](auto& shard) { shard["separator"] = ""; }, {"must not be empty"});
  expect_unusable_index("csv", [](auto& shard) { shard["newline"] = ""; }, {"must not be empty"});
  expect_unusable_index("json", [](auto& shard) { shard["columns"] = SortedJson::object(); },
                        {"\"columns\" is empty"});
  expect_unusable_index("json", [](auto& shard) { shard["columns"]["id"] = "pkl"; },
                        {"\"id\"", "str, int or float"});
}

TEST_F(LineShardsTest, UnlistedFiles) {
  const std::string dir = copy("tsv_gz");
  write_text(dir + "/shard.00009.tsv", "");
  const auto findings = find_damage(dir, true);
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_NE(findings[0].find("shard.00009.tsv is not listed"), std::string::npos) << findings[0];
}

TEST_F(LineShardsTest, TextsAreNotTokens) {
  const MdsConfig config{.local_dir = golden("line_shards/json"), .split = ""};
  expect_error(ExitCode::kUnusable,
               {"has no column \"tokens\", but texts", "t.data.text", "tycho data convert"},
               [&] { TokenDataset(config, {.seq_len = 8, .vocab_size = 100}); });
}

}  // namespace
}  // namespace tycho
