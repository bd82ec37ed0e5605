// Parquet files of pyarrow, whole and damaged, against the texts that pyarrow reads from them.
#include "trainer/data/sources/parquet/parquet_records.h"

#include <cstring>

#include "tests/trainer/data/data_testing.h"
#include "tests/trainer/data/sources/parquet/damaged_parquet.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::num_refused_of_damaged;
using testing::TempDir;
using testing::write_text;

std::string path_of(const std::string& name) { return golden("parquet/" + name + ".parquet"); }

std::vector<std::string> read_all(const std::string& path, const std::string& column = "text") {
  std::vector<std::string> texts;
  const auto source = open_parquet(path, column);
  for (std::string text; source->next(text);) texts.push_back(text);
  EXPECT_EQ(source->file_bytes(), static_cast<int64_t>(std::filesystem::file_size(path)));
  return texts;
}

Json wanted(const std::string& name) {
  const Json all = Json::parse(read_file(golden("parquet/texts.json")));
  return all.at(name) == "common" ? all.at("common") : all.at(name);
}

TEST(ParquetRecordsTest, ReadsWhatPyarrowReads) {
  for (const char* name : {"plain", "plain_v2", "snappy", "gzip", "brotli", "lz4", "zstd", "zstd_v2",
                           "dictionary_v2", "groups", "dictionary_too_large", "delta_length", "delta_text",
                           "delta_text_v2", "required", "required_v2", "empty"})
    EXPECT_EQ(Json(read_all(path_of(name))), wanted(name)) << name;
  EXPECT_EQ(Json(read_all(path_of("inside_struct"), "meta.text")), wanted("inside_struct"));
  EXPECT_EQ(read_all(path_of("same")), std::vector<std::string>(1000, "always the same"));
}

TEST(ParquetRecordsTest, NullsNameTheirRow) {
  const auto source = open_parquet(path_of("nulls"), "text");
  std::string text;
  for (int row = 0; row < 5; ++row) ASSERT_TRUE(source->next(text));
  expect_error(ExitCode::kUnusable, {"nulls.parquet", "column \"text\" is null in row 6"},
               [&] { source->next(text); });
  expect_error(ExitCode::kUnusable, {"is null in row 1"}, [] { read_all(path_of("all_null_v2")); });
}

TEST(ParquetRecordsTest, ColumnsThatHoldNoTexts) {
  const std::string path = path_of("plain");
  expect_error(
      ExitCode::kUnusable,
      {path, "has no column \"body\"; it has \"id\", \"text\", \"more.list.element\"", "--field NAME"},
      [&] { read_all(path, "body"); });
  expect_error(ExitCode::kUnusable, {"column \"id\" must hold texts, but holds whole numbers"},
               [&] { read_all(path, "id"); });
  expect_error(ExitCode::kUnusable, {"column \"more.list.element\"", "but holds lists"},
               [&] { read_all(path, "more.list.element"); });
}

TEST(ParquetRecordsTest, TextsAreReadBesideColumnsThatAreNot) {
  const std::string path = path_of("odd_types");
  EXPECT_EQ(read_all(path), (std::vector<std::string>{"one", "two"}));
  for (const auto& [column, kind] : {std::pair("seen", "96-bit timestamps"),
                                     {"price", "decimals"},
                                     {"cents", "decimals"},
                                     {"digest", "bytes of a fixed length"}})
    expect_error(
        ExitCode::kUnusable,
        {path, "column \"" + std::string(column) + "\" must hold texts, but holds " + kind, "--field"},
        [&, name = std::string(column)] { read_all(path, name); });
}

TEST(ParquetRecordsTest, FilesThatAreCutOff) {
  const TempDir temp;
  const std::string whole = read_file(path_of("zstd")), path = temp / "a.parquet";
  for (const size_t size :
       {size_t{0}, size_t{3}, size_t{11}, size_t{12}, whole.size() / 2, whole.size() - 1}) {
    write_text(path, whole.substr(0, size));
    expect_error(ExitCode::kUnusable, {path, "is not a whole Parquet file"}, [&] { read_all(path); });
  }
  std::string encrypted = whole;
  encrypted.replace(encrypted.size() - 4, 4, "PARE");
  write_text(path, encrypted);
  expect_error(ExitCode::kUnusable, {path, "is encrypted"}, [&] { read_all(path); });
  expect_error(ExitCode::kUnusable, {"cannot read"}, [&] { open_parquet(temp / "none", "text"); });
}

TEST(ParquetRecordsTest, DamagedBytesAreAnErrorOrOtherTexts) {
  int refused = 0;
  for (const char* name : {"plain", "zstd_v2", "groups", "delta_text_v2"})
    refused += num_refused_of_damaged(path_of(name), 60, [](const std::string& path) {
      const auto source = open_parquet(path, "text");
      const auto num_bytes = std::filesystem::file_size(path);
      for (std::string text; source->next(text);) ASSERT_LE(text.size(), num_bytes);
    });
  EXPECT_GT(refused, 40);
}

TEST(ParquetRecordsTest, DamagedPagesNameTheirRow) {
  const TempDir temp;
  const std::string path = temp / "a.parquet";
  std::string bytes = read_file(path_of("plain"));
  const size_t at = bytes.find("The first line.");
  const uint32_t length = 1 << 30;
  std::memcpy(bytes.data() + at - sizeof length, &length, sizeof length);
  write_text(path, bytes);
  expect_error(ExitCode::kUnusable,
               {path, "row 1 cannot be read: a page ends too early", "download it again"},
               [&] { read_all(path); });
}

}  // namespace
}  // namespace tycho
