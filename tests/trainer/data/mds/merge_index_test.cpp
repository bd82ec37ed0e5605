// One index over several data sets, compared with what mosaicml-streaming's merge_index wrote.
#include "trainer/data/mds/merge_index.h"

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"
#include "trainer/data/mds/conversion_note.h"
#include "trainer/data/mds/mds_reader.h"
#include "trainer/data/mds/mds_writer.h"
#include "trainer/data/prepare/convert.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

class MergeIndexTest : public ::testing::Test {
 protected:
  void copy_golden() {
    fs::copy(golden("mds/merged"), dir_, fs::copy_options::recursive);
    fs::remove(dir_ + "/index.json");
  }
  void convert(const std::string& split, const std::string& tokenizer, int64_t concat_tokens = 16) {
    ConvertOptions options{.inputs = {golden("tokenizer/corpus.txt")},
                           .tokenizer = golden("tokenizer/" + tokenizer),
                           .out_dir = temp_ / split};
    options.split = split;
    options.concat_tokens = concat_tokens;
    options.size_limit = 2000;
    options.no_separator = true;
    convert_text(options);
    fs::create_directories(dir_);
    fs::rename(temp_ / (split + "/" + split), dir_ + "/" + split);
  }
  TempDir temp_;
  std::string dir_ = temp_ / "all";
};

TEST_F(MergeIndexTest, WritesTheBytesOfMosaicmlStreaming) {
  copy_golden();
  const MergedIndex merged = merge_indexes(real_files(), dir_, {"a", "b"});
  EXPECT_EQ(read_file(dir_ + "/index.json"), read_file(golden("mds/merged/index.json")));
  EXPECT_EQ(merged.parts, 2);
  EXPECT_EQ(merged.shards, 4);
  EXPECT_EQ(merged.samples, 16);
  MdsReader all(read_mds_index(dir_)), b(read_mds_index(dir_ + "/b"));
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(all.read(11 + i)[0], b.read(i)[0]) << i;
}

TEST_F(MergeIndexTest, FindsFoldersInOrderAndNotWhatIsInsideThem) {
  for (const char* part : {"web/2024", "web/2023", "books", "books/inner", ".hidden", "empty"})
    fs::create_directories(dir_ + "/" + part);
  for (const char* part : {"web/2024", "web/2023", "books", "books/inner", ".hidden"})
    write_text(dir_ + "/" + part + "/index.json", "{}");
  EXPECT_EQ(find_parts(dir_), (std::vector<std::string>{"books", "web/2023", "web/2024"}));
  EXPECT_TRUE(find_parts(temp_ / "nowhere").empty());
}

TEST_F(MergeIndexTest, ChecksumsAndCountsOfConvertedPartsGoAlong) {
  convert("one", "whole.json");
  convert("two", "whole.json");
  merge_indexes(real_files(), dir_, find_parts(dir_));
  const ConversionNote part = read_conversion_note(dir_ + "/one"), all = read_conversion_note(dir_);
  EXPECT_EQ(all.samples, 2 * part.samples);
  EXPECT_EQ(all.tokens, 2 * part.tokens);
  EXPECT_EQ(all.shards.size(), 2 * part.shards.size());
  std::string shard = read_file(dir_ + "/two/shard.00001.mds");
  shard.back() = static_cast<char>(shard.back() ^ 1);
  write_text(dir_ + "/two/shard.00001.mds", shard);
  MdsReader reader(read_mds_index(dir_));
  expect_error(ExitCode::kUnusable, {"two/shard.00001.mds is damaged"}, [&] {
    for (int64_t i = 0; i < all.samples; ++i) reader.read(i);
  });
}

TEST_F(MergeIndexTest, PartsOfOtherRulesHaveNoCommonNote) {
  convert("one", "whole.json");
  convert("two", "whole.json", 32);
  merge_indexes(real_files(), dir_, find_parts(dir_));
  EXPECT_FALSE(fs::exists(dir_ + "/tycho.json"));
}

TEST_F(MergeIndexTest, WhatCannotBeMergedIsNamedAndChangesNothing) {
  expect_error(ExitCode::kUsage, {"nothing to merge"},
               [&] { merge_indexes(real_files(), dir_, find_parts(dir_)); });
  copy_golden();
  expect_error(ExitCode::kUnusable, {"/c/index.json does not exist"}, [&] {
    merge_indexes(real_files(), dir_, {"a", "c"});
  });
  fs::copy(golden("mds/text_and_id"), dir_ + "/c");
  expect_error(ExitCode::kUnusable, {"/c has other columns than", "/a"},
               [&] { merge_indexes(real_files(), dir_, find_parts(dir_)); });
  EXPECT_FALSE(fs::exists(dir_ + "/index.json"));
  merge_indexes(real_files(), dir_, {"a", "b"});
  merge_indexes(real_files(), dir_, {"a", "b"});
  expect_error(ExitCode::kUsage, {dir_ + "/index.json is there already"},
               [&] { merge_indexes(real_files(), dir_, {"a"}); });
}

TEST_F(MergeIndexTest, PartsOfTwoTokenizersAreRefused) {
  convert("one", "whole.json");
  convert("two", "whole.json");
  ConversionNote note = read_conversion_note(dir_ + "/two");
  note.tokenizer_hash = "another";
  write_conversion_note(real_files(), dir_ + "/two", note);
  expect_error(ExitCode::kUnusable, {"/two was made with another tokenizer"},
               [&] { merge_indexes(real_files(), dir_, find_parts(dir_)); });
}

}  // namespace
}  // namespace tycho
