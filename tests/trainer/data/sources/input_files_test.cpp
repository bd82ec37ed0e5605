// What files are, by name and content.
#include "trainer/data/sources/input_files.h"

#include "tests/trainer/data/data_testing.h"

namespace tycho {
namespace {

using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

class InputFilesTest : public ::testing::Test {
 protected:
  /// Names below the folder, with J or T in front.
  std::vector<std::string> found(const InputRules& rules = {}, const std::string& input = "") {
    const InputFiles inputs = find_input_files({input.empty() ? dir_.path() : dir_ / input}, rules);
    std::vector<std::string> names;
    for (const InputFile& file : inputs.files) {
      names.push_back((file.format == TextFormat::kJsonl ? "J " : "T ") +
                      file.path.substr(dir_.path().size() + 1));
      EXPECT_EQ(file.bytes, static_cast<int64_t>(std::filesystem::file_size(file.path)));
    }
    skipped_ = inputs.skipped;
    return names;
  }
  using Names = std::vector<std::string>;

  TempDir dir_;
  std::vector<std::string> skipped_;
};

TEST_F(InputFilesTest, APatternStandsForWhatItMatches) {
  for (const char* name : {"b.md", "a.md", "c.txt", "deep/d.md", "f1/x.txt", "f2/y.txt", ".hidden.md"})
    write_text(dir_ / name, "x");
  EXPECT_EQ(found({}, "*.md"), (Names{"T a.md", "T b.md"}));
  EXPECT_EQ(found({}, "*/*.md"), Names{"T deep/d.md"});
  EXPECT_EQ(found({}, "f[12]"), (Names{"T f1/x.txt", "T f2/y.txt"}));
  EXPECT_EQ(found({}, "?.txt"), Names{"T c.txt"});
  expect_error(ExitCode::kUnusable, {"no file or folder matches", "/*.rst"}, [&] { found({}, "*.rst"); });
  write_text(dir_ / "odd*.txt", "x");  // a name, not a pattern
  write_text(dir_ / "odd1.txt", "x");
  EXPECT_EQ(found({}, "odd*.txt"), Names{"T odd*.txt"});
}

TEST_F(InputFilesTest, AFolderIsReadByWhatItsFilesAre) {
  write_text(dir_ / "b/z.txt", "x");
  write_text(dir_ / "b/a.TXT", "x");
  write_text(dir_ / "b/deep/c4.json.gz", read_file(golden("conversion/records.jsonl.gz")));
  write_text(dir_ / "b/d.txt.gz", read_file(golden("conversion/d.txt.gz")));
  write_text(dir_ / "c.jsonl", "{\"text\": \"x\"}\n");
  write_text(dir_ / "d.ndjson", "");
  write_text(dir_ / "dataset_infos.json", "{\"default\": {}}");
  write_text(dir_ / "pretty.json", "{\n  \"text\": \"x\"\n}");
  write_text(dir_ / "README.md", "x");
  write_text(dir_ / ".hidden.txt", "x");
  write_text(dir_ / ".git/x.txt", "x");
  EXPECT_EQ(found(), (Names{"T b/a.TXT", "T b/d.txt.gz", "J b/deep/c4.json.gz", "T b/z.txt", "J c.jsonl",
                            "J d.ndjson"}));
  EXPECT_EQ(skipped_, (Names{dir_ / "README.md", dir_ / "dataset_infos.json", dir_ / "pretty.json"}));
  EXPECT_EQ(found({.extensions = {".md", ".jsonl"}}), (Names{"T README.md", "J c.jsonl"}));
  EXPECT_TRUE(skipped_.empty());
  EXPECT_EQ(found({.extensions = {".txt"}}), (Names{"T b/d.txt.gz", "T b/z.txt"}));
  expect_error(ExitCode::kUnusable, {"no file that ends in .cpp or .h"}, [&] {
    found({.extensions = {".cpp", ".h"}});
  });
  write_text(dir_ / "none/x.bin", "");
  expect_error(ExitCode::kUnusable, {"none has no .txt, .jsonl"}, [&] { found({}, "none"); });
  expect_error(ExitCode::kUnusable, {"no file or folder"}, [&] { found({}, "nowhere"); });
}

TEST_F(InputFilesTest, ANamedFileOfAnyOtherNameIsText) {
  write_text(dir_ / "Makefile", "all:\n");
  EXPECT_EQ(found({}, "Makefile"), Names{"T Makefile"});
  write_text(dir_ / "code.json", "{\"content\": \"x\"}\n{\"content\": \"y\"}\n");
  EXPECT_EQ(found({}, "code.json"), Names{"J code.json"});  // the converter names the field that is missing
}

TEST_F(InputFilesTest, TextThatLooksLikeJsonlIsNotGuessedAt) {
  write_text(dir_ / "x.txt", "\n{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
  expect_error(ExitCode::kUsage, {"x.txt", "looks like JSONL", "--format jsonl", "--format text"},
               [&] { found({}, "x.txt"); });
  EXPECT_EQ(found({.format = TextFormat::kJsonl}, "x.txt"), Names{"J x.txt"});
  EXPECT_EQ(found({.format = TextFormat::kText}, "x.txt"), Names{"T x.txt"});
  write_text(dir_ / "long", "{\"id\": 1, \"text\": \"" + std::string(100000, 'x') + "\"}\n");
  expect_error(ExitCode::kUsage, {"looks like JSONL"}, [&] { found({}, "long"); });
  write_text(dir_ / "x.txt", "{ \"text\" means a block of code }");
  EXPECT_EQ(found({}, "x.txt"), Names{"T x.txt"});
  write_text(dir_ / "x.json", "[{\"text\": \"a\"}]");
  expect_error(ExitCode::kUnusable, {"x.json is JSON, but not one object per line", "jq -c '.[]'"},
               [&] { found({}, "x.json"); });
}

TEST_F(InputFilesTest, OtherKindsOfDataAreNamedWithWhatToDo) {
  const auto refuses = [&](const std::string& name, const std::string& content,
                           std::initializer_list<std::string_view> parts) {
    write_text(dir_ / "other/" + name, content);
    expect_error(ExitCode::kUnusable, parts, [&] { found({}, "other/" + name); });
    expect_error(ExitCode::kUnusable, {"--ext"}, [&] { found({}, "other"); });
    std::filesystem::remove_all(dir_ / "other");
  };
  refuses("a.parquet", "text", {"a.parquet is not a Parquet file", "--format"});
  refuses("a.parquet.gz", read_file(golden("conversion/d.txt.gz")), {"is not a Parquet file"});
  refuses("a.xlsx", "x", {"a.xlsx is a spreadsheet", "save it as CSV first"});
  refuses("a.csv", "PK\x03\x04", {"a.csv is a zip archive"});
  refuses("a.arrow", "text", {"a.arrow is not an Arrow file", "--format"});
  refuses("a.feather", "FEA1", {"a.feather is Feather of version 1", "write_feather"});
  refuses("a.txt", "%PDF-1.7", {"is a PDF"});
  refuses("a.txt", "BZh9", {"bzip2", "bunzip2"});
  refuses("a.tar.gz", read_file(golden("conversion/d.txt.gz")), {"is a tar archive", "unpack it"});
  refuses("x.txt", std::string(257, 'x') + "ustar", {"is a tar archive"});
  refuses("a.zip", "PK\x03\x04", {"zip archive"});
  refuses("shard.00000.mds", "x", {"an MDS shard", "already a data set"});
}

TEST_F(InputFilesTest, CsvAndTsv) {
  write_text(dir_ / "a.csv", "text\nx\n");
  write_text(dir_ / "b.TSV", "text\nx\n");
  write_text(dir_ / "table", "text\nx\n");
  const auto format_of = [&](const std::string& name, const InputRules& rules = {}) {
    return find_input_files({dir_ / name}, rules).files.at(0).format;
  };
  EXPECT_EQ(format_of("a.csv"), TextFormat::kCsv);
  EXPECT_EQ(format_of("b.TSV"), TextFormat::kTsv);
  EXPECT_EQ(format_of("table"), TextFormat::kText);
  EXPECT_EQ(format_of("table", {.format = TextFormat::kTsv}), TextFormat::kTsv);
  EXPECT_EQ(format_of("a.csv", {.format = TextFormat::kText}), TextFormat::kText);
  const InputFiles all = find_input_files({dir_.path()}, {});
  EXPECT_EQ(all.files.size(), 2u);
  EXPECT_EQ(all.skipped, Names{dir_ / "table"});
}

TEST_F(InputFilesTest, ParquetAndDataSetsOfTexts) {
  std::filesystem::copy(golden("parquet/zstd.parquet"), dir_ / "a.parquet");
  std::filesystem::copy(golden("parquet/zstd.parquet"), dir_ / "b.bin");
  for (const char* name : {"a.parquet", "b.bin"}) {
    const InputFiles files = find_input_files({dir_ / name}, {});
    ASSERT_EQ(files.files.size(), 1u);
    EXPECT_EQ(files.files[0].format, TextFormat::kParquet) << name;
  }
  EXPECT_EQ(find_input_files({dir_ / "b.bin"}, {.format = TextFormat::kParquet}).files.size(), 1u);
  expect_error(ExitCode::kUsage, {"is a Parquet file: leave --format out"},
               [&] { find_input_files({dir_ / "b.bin"}, {.format = TextFormat::kJsonl}); });

  const InputFiles data = find_input_files({golden("line_shards/json_zstd")}, {});
  ASSERT_EQ(data.files.size(), 1u);
  EXPECT_EQ(data.files[0].format, TextFormat::kDataSet);
  EXPECT_GT(data.files[0].bytes, 1000);
}

}  // namespace
}  // namespace tycho
