// Lists and structs of pyarrow, whole and damaged, against the rows that pyarrow reads from them.
#include "trainer/data/sources/parquet/parquet_rows.h"

#include "tests/trainer/data/data_testing.h"
#include "tests/trainer/data/sources/parquet/damaged_parquet.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::num_refused_of_damaged;
using testing::TempDir;
using testing::write_text;

std::string nested_file(const std::string& name) { return golden("parquet/nested/" + name + ".parquet"); }

std::vector<std::string> column_names(const ParquetFile& file) {
  std::vector<std::string> names;
  for (const ParquetNode& node : file.footer().schema.children) names.push_back(node.name);
  return names;
}

Json read_nested(const std::string& path, std::vector<std::string> columns = {}) {
  const auto file = std::make_shared<const ParquetFile>(path);
  if (columns.empty()) columns = column_names(*file);
  ParquetRows rows(file, columns);
  Json all = Json::array();
  for (std::vector<Json> values; rows.next(values);) {
    Json row = Json::object();
    for (size_t i = 0; i < columns.size(); ++i) row[columns[i]] = values[i];
    all.push_back(row);
  }
  EXPECT_EQ(rows.file_bytes(), file->num_bytes());
  return all;
}

TEST(ParquetRowsTest, ReadsWhatPyarrowReads) {
  const Json wanted = Json::parse(read_file(golden("parquet/nested/rows.json")));
  ASSERT_EQ(wanted.size(), 10u);
  for (const auto& [name, rows] : wanted.items())
    EXPECT_EQ(read_nested(nested_file(name)), rows.is_string() ? wanted.at(rows.get<std::string>()) : rows)
        << name;
}

TEST(ParquetRowsTest, OtherColumnsAreNotRead) {
  const Json all = read_nested(nested_file("deep")), some = read_nested(nested_file("deep"), {"e", "b"});
  ASSERT_EQ(some.size(), 60u);
  for (size_t i = 0; i < 60; ++i) EXPECT_EQ(some[i], (Json{{"e", all[i]["e"]}, {"b", all[i]["b"]}}));
  expect_error(ExitCode::kUnusable,
               {"deep.parquet has no column \"x\"; it has \"a.list.element.list.element\""},
               [] { read_nested(nested_file("deep"), {"x"}); });
}

// A decimal that is stored as a whole number would come without its point.
TEST(ParquetRowsTest, ColumnsOfOtherTypesAreRefusedOnlyWhenAskedFor) {
  const std::string path = golden("parquet/odd_types.parquet");
  EXPECT_EQ(read_nested(path, {"id", "text"}),
            Json::parse(R"([{"id": 0, "text": "one"}, {"id": 1, "text": "two"}])"));
  for (const auto& [column, kind] :
       {std::pair("seen", "96-bit timestamps"), {"price", "decimals"}, {"cents", "decimals"}})
    expect_error(ExitCode::kUnusable,
                 {path, "column \"" + std::string(column) + "\" holds " + kind + ", which are not read",
                  "leave it out"},
                 [&, name = std::string(column)] {
                   read_nested(path, {"id", name});
                 });
}

TEST(ParquetRowsTest, DamagedBytesAreAnErrorOrOtherRows) {
  int refused = 0;
  for (const char* name : {"deep", "deep_v2", "chat_pages", "deep_delta"})
    refused +=
        num_refused_of_damaged(nested_file(name), 150, [](const std::string& path) { read_nested(path); });
  EXPECT_GT(refused, 100);
}

TEST(ParquetRowsTest, ColumnsOfAListThatDisagreeAreNamedWithTheirRow) {
  const TempDir temp;
  // The levels of "content" of a page with two rows say one item less than those of "role".
  std::string bytes = read_file(nested_file("chat_pages"));
  const Json wanted = read_nested(nested_file("chat_pages"));
  int disagreements = 0;
  for (size_t at = 0; at < bytes.size() && disagreements == 0; ++at) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 2);
    write_text(temp / "a.parquet", damaged);
    try {
      read_nested(temp / "a.parquet");
    } catch (const Error& error) {
      const std::string_view what = error.what();
      if (what.find("its columns disagree") == std::string_view::npos) continue;
      EXPECT_NE(what.find("a.parquet: row "), std::string_view::npos) << what;
      ++disagreements;
    }
  }
  EXPECT_EQ(disagreements, 1);
}

}  // namespace
}  // namespace tycho
