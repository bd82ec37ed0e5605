// Counts of a data set whose tokens are known.
#include "trainer/data/prepare/dataset_stats.h"

#include <numeric>

#include "tests/trainer/data/data_testing.h"
#include "trainer/data/mds/conversion_note.h"
#include "trainer/data/mds/mds_reader.h"
#include "trainer/data/mds/mds_tokens.h"
#include "trainer/data/mds/mds_writer.h"
#include "trainer/data/prepare/convert.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TempDir;

class DatasetStatsTest : public ::testing::Test {
 protected:
  template <class Stored>
  void write(const std::vector<std::vector<Stored>>& samples, const std::string& encoding) {
    std::filesystem::remove_all(dir_);
    std::filesystem::create_directory(dir_);
    MdsWriter writer(real_files(), dir_, {.columns = {{"tokens", encoding}}, .size_limit = 300});
    for (const auto& sample : samples)
      writer.write(
          {encoding == "bytes"
               ? std::string(reinterpret_cast<const char*>(sample.data()), sample.size() * sizeof(Stored))
               : encode_mds_array(sample.data(), std::ssize(sample), sizeof(Stored))});
    writer.finish();
  }
  TempDir temp_;
  std::string dir_ = temp_ / "data";
};

TEST_F(DatasetStatsTest, CountsTokensSamplesAndDocuments) {
  // Documents that end with 9: of 2, 5 (across two samples), 1 and 3 tokens; the last is not ended.
  const std::vector<std::vector<int32_t>> samples = {{1, 9, 2, 3}, {4, 5, 9}, {9, 6, 7, 6}};
  write(samples, "ndarray:int32");
  const DatasetStats stats = dataset_stats(dir_, nullptr, {.ends_with = 9});
  EXPECT_EQ(stats.samples, 3);
  EXPECT_EQ(stats.tokens, 11);
  EXPECT_EQ(stats.distinct_tokens, 8);
  EXPECT_EQ(stats.sample_tokens.counts, (std::map<int64_t, int64_t>{{3, 1}, {4, 2}}));
  EXPECT_EQ(stats.document_tokens.counts, (std::map<int64_t, int64_t>{{1, 1}, {2, 1}, {3, 1}, {5, 1}}));
  const DatasetStats begins = dataset_stats(dir_, nullptr, {.begins_with = 9});
  EXPECT_EQ(begins.document_tokens.counts, (std::map<int64_t, int64_t>{{1, 2}, {4, 1}, {5, 1}}));
  EXPECT_TRUE(dataset_stats(dir_, nullptr, {}).document_tokens.counts.empty());
}

TEST_F(DatasetStatsTest, DocumentsEndWithTheSampleWhereTheRestWasDropped) {
  write<int32_t>({{1, 2}, {3, 9}}, "ndarray:int32");
  write_conversion_note(real_files(), dir_, {.no_wrap = true});
  EXPECT_EQ(dataset_stats(dir_, nullptr, {.ends_with = 9}).document_tokens.counts,
            (std::map<int64_t, int64_t>{{2, 2}}));
}

TEST_F(DatasetStatsTest, ReadsEveryTypeOfToken) {
  write<uint16_t>({{65535, 1}}, "ndarray:uint16");
  EXPECT_EQ(dataset_stats(dir_, nullptr, {.ends_with = 65535}).document_tokens.number(), 2);
  write<int64_t>({{7, 7}}, "bytes");
  EXPECT_EQ(dataset_stats(dir_, nullptr, {}).distinct_tokens, 1);
  write<uint32_t>({{5, 3000000000u}}, "ndarray:uint32");
  expect_error(ExitCode::kUnusable, {"sample 0 of", "3000000000 at position 1"},
               [&] { dataset_stats(dir_, nullptr, {}); });
  write<float>({{1.0F}}, "ndarray:float32");
  expect_error(ExitCode::kUnusable, {"float32"}, [&] { dataset_stats(dir_, nullptr, {}); });
}

TEST_F(DatasetStatsTest, ConvertedTextHasItsOwnBytesAndDocuments) {
  ConvertOptions options{.inputs = {golden("tokenizer/corpus.txt")},
                         .tokenizer = golden("tokenizer/whole.json"),
                         .out_dir = dir_};
  options.eos_text = "<|endoftext|>";
  options.concat_tokens = 16;
  const ConvertResult converted = convert_text(options);
  const auto tokenizer = load_tokenizer(options.tokenizer);
  const Separators separators = separators_of(dir_ + "/train", *tokenizer);
  EXPECT_EQ(separators.ends_with, tokenizer->find("<|endoftext|>"));
  const DatasetStats stats = dataset_stats(dir_ + "/train", tokenizer.get(), separators);
  EXPECT_EQ(stats.tokens, converted.splits[0].samples * 16);
  EXPECT_EQ(stats.sample_tokens.number(), converted.splits[0].samples);
  EXPECT_LE(stats.text_bytes, converted.splits[0].bytes);
  EXPECT_GE(stats.text_bytes, converted.splits[0].bytes - 64) << "all but the tail that fills no sample";
}

TEST_F(DatasetStatsTest, QuantilesAreThoseOfTheSortedLengths) {
  LengthCounts lengths;
  for (int64_t length = 1; length <= 100; ++length) lengths.add(length);
  EXPECT_EQ(lengths.quantile(0), 1);
  EXPECT_EQ(lengths.quantile(0.5), 50);
  EXPECT_EQ(lengths.quantile(0.9), 90);
  EXPECT_EQ(lengths.quantile(1), 100);
  EXPECT_EQ(lengths.total(), 5050);
  EXPECT_EQ(LengthCounts().quantile(0.5), 0);
}

}  // namespace
}  // namespace tycho
