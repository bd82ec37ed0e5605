// Reading text and JSONL in pieces.
#include "trainer/data/sources/document_reader.h"

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"
#include "trainer/data/mds/data_set_records.h"
#include "trainer/data/mds/mds_writer.h"
#include "trainer/data/storage/compress.h"

namespace tycho {
namespace {

using testing::bytes_of_number;
using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

class DocumentReaderTest : public ::testing::Test {
 protected:
  /// The documents of some files, put together from their chunks.
  std::vector<std::string> documents(const std::vector<InputFile>& files, const ReadRules& rules = {}) {
    std::vector<std::string> texts;
    DocumentReader reader(files, rules);
    num_chunks_ = 0;
    file_bytes_ = 0;
    while (const auto chunk = reader.next()) {
      ++num_chunks_;
      file_bytes_ += chunk->file_bytes;
      if (chunk->format == TextFormat::kJsonl) {
        for_each_record(*chunk, reader.file(*chunk), rules.field,
                        [&](std::string_view text) { texts.emplace_back(text); });
      } else {
        EXPECT_EQ(chunk->first, texts.empty() || finished_);
        if (chunk->first) texts.emplace_back();
        texts.back() += chunk->text;
        finished_ = chunk->last;
        if (!chunk->last) pieces_.push_back(chunk->text);
      }
    }
    return texts;
  }
  std::string text_of(const std::string& content, const ReadRules& rules = {}) {
    write_text(dir_ / "t.txt", content);
    finished_ = true;
    pieces_.clear();
    const auto texts = documents({{dir_ / "t.txt"}}, rules);
    EXPECT_EQ(texts.size(), 1u);
    return texts.at(0);
  }

  TempDir dir_;
  bool finished_ = true;
  size_t num_chunks_ = 0;
  int64_t file_bytes_ = 0;
  std::vector<std::string> pieces_;  // that are not the last of their document
};

TEST_F(DocumentReaderTest, EndsOfLinesAreOneAndTheSameUnlessKept) {
  const std::string mixed = "a\r\nb\rc\n\r\n\r\rd\n\r";
  EXPECT_EQ(text_of(mixed), "a\nb\nc\n\n\n\nd\n\n");
  EXPECT_EQ(text_of(mixed, {.keep_newlines = true}), mixed);
  EXPECT_EQ(text_of("\r"), "\n");
  EXPECT_EQ(text_of(""), "");
  EXPECT_EQ(num_chunks_, 1u);
  // Across every border of the blocks that are read.
  std::string text, expected;
  for (int i = 0; i < 300000; ++i) {
    text += i % 3 == 0 ? "\r\n" : i % 7 == 0 ? "\r" : "\u20ac";
    expected += i % 3 == 0 ? "\n" : i % 7 == 0 ? "\n" : "\u20ac";
  }
  EXPECT_EQ(text_of(text), expected);
}

TEST_F(DocumentReaderTest, PiecesAreAMillionCharactersLong) {
  std::string text;
  for (int i = 0; i < 2500000; ++i) text += i % 11 == 0 ? "\u00e9" : i % 13 == 0 ? "\U0001f642" : "x";
  EXPECT_EQ(text_of(text), text);
  ASSERT_EQ(pieces_.size(), 2u);
  for (const std::string& piece : pieces_) {
    const auto continuations = std::count_if(piece.begin(), piece.end(),
                                             [](char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; });
    EXPECT_EQ(static_cast<int64_t>(piece.size()) - continuations, 1000000);
  }
  text_of(std::string(1000000, 'x'));
  EXPECT_EQ(num_chunks_, 1u);
  text_of(std::string(1000001, 'x'));
  EXPECT_EQ(num_chunks_, 2u);
}

TEST_F(DocumentReaderTest, CutsAtWordsWhereItIsAskedTo) {
  std::string text;
  for (int i = 0; i < 700000; ++i) text += "word" + std::to_string(i % 97) + (i % 9 == 0 ? ",\n\n" : " ");
  EXPECT_EQ(text_of(text, {.cut = CutAt::kWords}), text);
  EXPECT_GT(pieces_.size(), 2u);
  for (const std::string& piece : pieces_) EXPECT_TRUE(std::isdigit(piece.back()));
  const std::string solid(3 << 20, '-');
  EXPECT_EQ(text_of(solid, {.cut = CutAt::kWords}), solid);
  EXPECT_EQ(num_chunks_, 1u);
}

TEST_F(DocumentReaderTest, RefusesWhatIsNotTextAndSaysWhere) {
  const auto refuses = [&](const std::string& bad, std::initializer_list<std::string_view> parts) {
    for (const size_t before : {size_t{0}, size_t{5}, size_t{262143}, size_t{262144}, size_t{700001}}) {
      const std::string at = "at byte " + std::to_string(before);
      expect_error(ExitCode::kUnusable, {dir_ / "t.txt", at},
                   [&] { text_of(std::string(before, 'x') + bad + "yyyy"); });
      expect_error(ExitCode::kUnusable, parts, [&] { text_of(std::string(before, 'x') + bad); });
    }
  };
  refuses("\xFF", {"not UTF-8", "0xff"});
  refuses("\x80", {"not UTF-8"});
  refuses("\xE2\x82", {"not UTF-8"});
  refuses("\xED\xA0\x80", {"not UTF-8"});      // a surrogate
  refuses("\xC0\xAF", {"not UTF-8"});          // too long a form
  refuses("\xF4\x90\x80\x80", {"not UTF-8"});  // beyond Unicode
  refuses(std::string(1, '\0'), {"binary"});
  expect_error(ExitCode::kUnusable, {"UTF-16", "iconv"}, [&] {
    text_of(
        "\xFF\xFE"
        "a");
  });
}

TEST_F(DocumentReaderTest, EveryLineOfJsonlIsADocument) {
  write_text(dir_ / "a.jsonl", "{\"text\": \"one\"}\n\n  \r\n{\"text\": \"two\\r\\n\"}\r\n{\"text\": \"\"}");
  write_text(dir_ / "empty.jsonl", "");
  write_text(dir_ / "b.txt", "three");
  const std::vector<InputFile> files = {
      {dir_ / "a.jsonl", TextFormat::kJsonl}, {dir_ / "empty.jsonl", TextFormat::kJsonl}, {dir_ / "b.txt"}};
  EXPECT_EQ(documents(files), (std::vector<std::string>{"one", "two\r\n", "", "three"}));

  std::string many;
  std::vector<std::string> expected;
  for (size_t i = 0; i < 3000; ++i) {
    expected.push_back(std::string(i, static_cast<char>('a' + i % 26)));
    many += Json{{"n", i}, {"text", expected.back()}}.dump() + "\n";
  }
  write_text(dir_ / "many.jsonl", many);
  EXPECT_EQ(documents({{dir_ / "many.jsonl", TextFormat::kJsonl}}), expected);
  EXPECT_GT(num_chunks_, 2u);
  EXPECT_EQ(file_bytes_, static_cast<int64_t>(many.size()));
}

TEST_F(DocumentReaderTest, WrongLinesAreNamed) {
  std::string lines;
  for (int i = 0; i < 100000; ++i) lines += "{\"text\": \"some text\"}\n";
  const auto refuses = [&](const std::string& line, std::initializer_list<std::string_view> parts) {
    write_text(dir_ / "x.jsonl", lines + "\n" + line + "\n" + lines);
    expect_error(ExitCode::kUnusable, parts, [&] { documents({{dir_ / "x.jsonl", TextFormat::kJsonl}}); });
  };
  refuses("{\"txt\": 1}", {"x.jsonl:100002 has no field \"text\""});
  refuses("{", {"x.jsonl:100002: not JSON at byte"});
  refuses("{\"text\": \"a\xFF\"}", {"not UTF-8 at byte 2200012, line 100002"});
  refuses(std::string("{\"text\": \"a") + '\0' + "\"}", {"binary at byte 2200012, line 100002"});
}

/// A hole in a file reads as zeros and takes no room on the disk.
TEST_F(DocumentReaderTest, ALineOfAGigabyteIsNamedAndNotReadToItsEnd) {
  write_text(dir_ / "a.jsonl", "{\"text\": \"x\"}\n");
  std::filesystem::resize_file(dir_ / "a.jsonl", 1 << 30);
  const auto read = [&](const char* name) {
    const std::vector<InputFile> files = {{dir_ / name, TextFormat::kJsonl}};
    DocumentReader reader(files, {});
    while (reader.next()) {
    }
  };
  expect_error(ExitCode::kUnusable, {"a.jsonl:2 is longer than 256 MiB", "one JSON object per line"},
               [&] { read("a.jsonl"); });
  // 300 MiB in 300 KiB.
  const std::string member =
      compress_bytes(parse_compression("gz", "test"), std::string(size_t{1} << 20, 'x'));
  std::string bomb;
  for (int i = 0; i < 300; ++i) bomb += member;
  write_text(dir_ / "b.jsonl.gz", bomb);
  expect_error(ExitCode::kUnusable, {"b.jsonl.gz:1 is longer than 256 MiB"}, [&] { read("b.jsonl.gz"); });
}

TEST_F(DocumentReaderTest, RowsOfParquetAndOfDataSets) {
  const auto rows_of = [&](const InputFile& file, const OpenDataSet& open = {}) {
    std::vector<std::string> rows;
    const std::vector<InputFile> twice = {file, file};
    DocumentReader reader(twice, {.open_data_set = open});
    while (const auto chunk = reader.next()) {
      EXPECT_EQ(chunk->line, 1 + std::ssize(rows) % 1000);
      for_each_record(*chunk, reader.file(*chunk), "text",
                      [&](std::string_view text) { rows.emplace_back(text); });
    }
    return rows;
  };
  const std::vector<std::string> same(2000, "always the same");
  EXPECT_EQ(rows_of({golden("parquet/same.parquet"), TextFormat::kParquet}), same);

  const std::vector<InputFile> data = {{golden("line_shards/json_zstd"), TextFormat::kDataSet}};
  DocumentReader reader(data, {.open_data_set = open_data_set_texts});
  const auto chunk = reader.next();
  ASSERT_TRUE(chunk);
  const Json samples = Json::parse(read_file(golden("line_shards/samples.json"))).at("json_zstd");
  ASSERT_EQ(chunk->rows.size(), samples.size());
  for (size_t i = 0; i < samples.size(); ++i) EXPECT_EQ(chunk->rows[i], samples[i]["text"]);
  EXPECT_GT(chunk->file_bytes, 500);
  EXPECT_FALSE(reader.next());
  expect_error(ExitCode::kUnusable, {"line_shards/json_zstd is a data set, not text"},
               [&] { rows_of(data[0]); });
}

TEST_F(DocumentReaderTest, RowsOfCsvAndTsv) {
  write_text(dir_ / "a.csv", "id,text\n1,\"one, two\"\n2,\"three\nfour\"\n");
  write_text(dir_ / "b.tsv", "text\tid\nfive\t1\n");
  const std::vector<InputFile> files = {{dir_ / "a.csv", TextFormat::kCsv},
                                        {dir_ / "b.tsv", TextFormat::kTsv}};
  std::vector<std::string> rows;
  DocumentReader reader(files, {});
  while (const auto chunk = reader.next())
    for_each_record(*chunk, reader.file(*chunk), "text",
                    [&](std::string_view text) { rows.emplace_back(text); });
  EXPECT_EQ(rows, (std::vector<std::string>{"one, two", "three\nfour", "five"}));

  write_text(dir_ / "c.csv", "text\nx\na\xFFz\n");
  const std::vector<InputFile> wrong = {{dir_ / "c.csv", TextFormat::kCsv}};
  DocumentReader damaged(wrong, {});
  const auto chunk = damaged.next();
  ASSERT_TRUE(chunk);
  expect_error(ExitCode::kUnusable, {"c.csv is not UTF-8 at byte 1 of row 2"},
               [&] { for_each_record(*chunk, wrong[0], "text", [](std::string_view) {}); });
}

TEST_F(DocumentReaderTest, RowsThatAreNotText) {
  const std::string dir = dir_ / "data";
  std::filesystem::create_directories(dir);
  MdsWriter writer(real_files(), dir, {.columns = {{"text", "str"}, {"n", "int"}}});
  writer.write({bytes_of_number<int64_t>(1), "good"});
  writer.write({bytes_of_number<int64_t>(2), "not \xff good"});
  writer.finish();
  const auto read = [&](const std::string& column) {
    const std::vector<InputFile> data = {{dir, TextFormat::kDataSet}};
    DocumentReader reader(data, {.field = column, .open_data_set = open_data_set_texts});
    while (const auto chunk = reader.next())
      for_each_record(*chunk, reader.file(*chunk), column, [](std::string_view) {});
  };
  expect_error(ExitCode::kUnusable, {dir, "is not UTF-8 at byte 4 of row 2"}, [&] { read("text"); });
  expect_error(ExitCode::kUnusable, {"column \"n\"", "encoding int, not str", "--field"}, [&] { read("n"); });
  expect_error(ExitCode::kUnusable, {"no column \"body\"; it has: n, text"}, [&] { read("body"); });
}

}  // namespace
}  // namespace tycho
