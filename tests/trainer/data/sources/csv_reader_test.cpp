// CSV and TSV files, against the rows that Python's csv module reads from them.
#include "trainer/data/sources/csv_reader.h"

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"
#include "trainer/data/storage/compress.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

using CsvRows = std::vector<std::vector<std::string>>;

/// All rows, the names of the columns first.
CsvRows read_csv(const std::string& path) {
  CsvReader reader(path, path.ends_with(".tsv") ? '\t' : ',');
  CsvRows rows = {reader.columns()};
  for (std::vector<std::string> values; reader.next(values);) rows.push_back(values);
  return rows;
}

bool equally_long(const Json& rows) {
  for (const Json& row : rows)
    if (row.size() != rows[0].size()) return false;
  return true;
}

TEST(CsvReaderTest, ReadsWhatPythonReads) {
  const Json wanted = Json::parse(read_file(golden("csv/rows.json")));
  for (const auto& [name, rows] : wanted.at("files").items()) {
    const std::string path = golden("csv/" + name);
    if (rows == "error") {
      expect_error(ExitCode::kUnusable, {path, "quote"}, [&, &path = path] { read_csv(path); });
    } else {
      EXPECT_EQ(Json(read_csv(path)), rows) << name;
    }
  }
  const TempDir temp;
  int read = 0, refused = 0;
  for (const Json& test : wanted.at("random")) {
    write_text(temp / "a.csv", test[0].get<std::string>());
    if (test[1] != "error" && equally_long(test[1])) {
      EXPECT_EQ(Json(read_csv(temp / "a.csv")), test[1]) << test[0];
      ++read;
    } else {  // Python takes rows of any length
      EXPECT_THROW(read_csv(temp / "a.csv"), Error) << test[0];
      ++refused;
    }
  }
  EXPECT_GT(read, 100);
  EXPECT_GT(refused, 30);
}

TEST(CsvReaderTest, ValuesGoOnAcrossBlocksAndCompressedFilesAreUnpacked) {
  const TempDir temp;
  const std::string lines(100000, '\n'), words(300000, 'x');
  std::string text = "id,text\r\n";
  CsvRows wanted = {{"id", "text"}};
  for (int i = 0; i < 9; ++i) {
    const std::string id(static_cast<size_t>(i) * 37777, 'i');
    text += id + ",\"" + lines + "\"\"" + words + "\"\r\n";
    wanted.push_back({id, lines + "\"" + words});
  }
  write_text(temp / "a.csv", text);
  EXPECT_EQ(read_csv(temp / "a.csv"), wanted);
  write_text(temp / "a.csv.zst", compress_bytes(parse_compression("zstd", "test"), text));
  EXPECT_EQ(read_csv(temp / "a.csv.zst"), wanted);
  CsvReader reader(temp / "a.csv", ',');
  std::vector<std::string> values;
  reader.next(values);
  EXPECT_EQ(reader.line(), 2);
  reader.next(values);
  EXPECT_EQ(reader.line(), 100003);
}

TEST(CsvReaderTest, WrongFilesAreNamedWithLineAndWhatToDo) {
  const TempDir temp;
  const std::string path = temp / "a.csv";
  const auto refuses = [&](std::string_view text, std::initializer_list<std::string_view> parts,
                           const std::string& column = "text") {
    write_text(path, text);
    expect_error(ExitCode::kUnusable, parts, [&] {
      const auto texts = open_csv(path, ',', column);
      for (std::string value; texts->next(value);) {
      }
    });
  };
  refuses("", {path, "is empty: its first line must name its columns"});
  refuses("\n\n", {path, "is empty"});
  refuses("id,body\n1,x\n", {path, "has no column \"text\"", "names \"id\", \"body\"", "--field NAME"});
  refuses("id;text\n1;x\n", {"names \"id;text\", separated by commas"});
  refuses("text,text\n1,x\n", {path, "has two columns \"text\": rename one of them"});
  refuses("id,text\n1,x\n\n2\n", {path + ":4 has 1 values, and the first line names 2 columns"});
  refuses("id,text\n1,\"x\ny\"\n2,one, two\n", {path + ":4 has 3 values", "into quotes"});
  refuses("id,text\n1,\"x\ny\" z\n", {path + ":3 continues after a closing quote"});
  refuses("id,text\n1,x\n2,\"x\ny\nz\n", {path, "ends inside quotes", "begins in line 3"});
  // A hole in a file reads as zeros and takes no room on the disk.
  write_text(path, "text\n\"x");
  std::filesystem::resize_file(path, 1 << 30);
  expect_error(ExitCode::kUnusable, {path + ":2 begins a row of more than 256 MiB", "closing quote"}, [&] {
    const auto texts = open_csv(path, ',', "text");
    for (std::string value; texts->next(value);) {
    }
  });
  expect_error(ExitCode::kUnusable, {"cannot read"}, [&] { open_csv(temp / "none.csv", ',', "text"); });
}

}  // namespace
}  // namespace tycho
