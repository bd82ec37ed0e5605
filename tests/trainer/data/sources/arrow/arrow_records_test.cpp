// Files of pyarrow and folders of datasets, whole and damaged, against the rows that pyarrow reads from them.
#include "trainer/data/sources/arrow/arrow_records.h"

#include "tests/trainer/data/data_testing.h"
#include "trainer/data/sources/input_files.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;
using testing::expect_error;
using testing::golden;
using testing::TempDir;
using testing::write_text;

std::string arrow_file(const std::string& name) { return golden("arrow/" + name); }

Json read_rows(const std::string& path) {
  const auto file = std::make_shared<ArrowFile>(path);
  std::vector<std::string> names;
  for (const ArrowField& field : file->schema().children) names.push_back(field.name);
  ArrowRows rows(file, names);
  Json all = Json::array();
  for (std::vector<Json> values; rows.next(values);) {
    Json row = Json::object();
    for (size_t i = 0; i < names.size(); ++i) row[names[i]] = values[i];
    all.push_back(std::move(row));
  }
  EXPECT_EQ(rows.file_bytes(), file->num_bytes());
  return all;
}

std::vector<std::string> read_texts(const std::string& path, const std::string& field = "text") {
  const auto records = open_arrow(path, field);
  std::vector<std::string> texts;
  for (std::string text; records->next(text);) texts.push_back(text);
  return texts;
}

TEST(ArrowRecords, GivesTheRowsThatPyarrowReads) {
  const Json golden_rows = Json::parse(read_file(arrow_file("rows.json")));
  ASSERT_GE(golden_rows.size(), 17u);
  for (const auto& [name, rows] : golden_rows.items()) EXPECT_EQ(read_rows(arrow_file(name)), rows) << name;
}

TEST(ArrowRecords, GivesTheTextsOfAColumn) {
  const Json golden_rows = Json::parse(read_file(arrow_file("rows.json")));
  for (const char* name :
       {"stream.arrow", "file.arrow", "lz4.arrow", "zstd.arrow", "dictionary_replaced.arrow"}) {
    const std::vector<std::string> texts = read_texts(arrow_file(name));
    ASSERT_EQ(texts.size(), golden_rows.at(name).size()) << name;
    for (size_t i = 0; i < texts.size(); ++i) EXPECT_EQ(texts[i], golden_rows.at(name)[i].at("text")) << name;
  }
  // Blocks of LZ4 that copy from the ones before them.
  const std::vector<std::string> texts = read_texts(arrow_file("lz4_linked.arrow"));
  ASSERT_EQ(texts.size(), 22u);
  for (size_t i = 0; i < texts.size(); ++i) {
    std::string expected;
    for (size_t j = 0; j < 9000; ++j) expected += static_cast<char>('a' + (i % 11 + 1) * j * j % 23);
    EXPECT_EQ(texts[i], expected) << i;
  }
}

TEST(ArrowRecords, ANullIsABadRowAndReadingContinues) {
  const auto records = open_arrow(arrow_file("inside_struct.arrow"), "meta.text");
  std::string text;
  ASSERT_TRUE(records->next(text));
  EXPECT_EQ(text, "in");
  expect_error(ExitCode::kUnusable, {"column \"meta.text\" is null in row 2", "--field"},
               [&] { records->next(text); });
  expect_error(ExitCode::kUnusable, {"null in row 3"}, [&] { records->next(text); });
  ASSERT_TRUE(records->next(text));
  EXPECT_EQ(text, "side");
  EXPECT_FALSE(records->next(text));
  EXPECT_FALSE(records->next(text));
}

TEST(ArrowRecords, ColumnsThatAreNotReadDoNoHarm) {
  EXPECT_EQ(read_texts(arrow_file("odd.arrow")), (std::vector<std::string>{"one", "two", "three"}));
  const auto refuses = [](const std::string& column, std::string_view what) {
    expect_error(ExitCode::kUnusable, {"column \"" + column + "\" holds ", what, "not read"},
                 [&] { ArrowRows(std::make_shared<ArrowFile>(arrow_file("odd.arrow")), {column}); });
  };
  refuses("nothing", "only nulls");
  refuses("union", "unions");
  refuses("runs", "runs");
  refuses("decimal", "decimals");
  refuses("bytes", "bytes");
  expect_error(ExitCode::kUnusable, {"no column \"body\"", "\"text\"", "--field"},
               [] { open_arrow(arrow_file("odd.arrow"), "body"); });
  expect_error(ExitCode::kUnusable, {"must hold texts, but holds whole numbers"},
               [] { open_arrow(arrow_file("stream.arrow"), "id"); });
}

TEST(ArrowRecords, AFileWithoutItsEndIsRefused) {
  const TempDir temp;
  for (const char* name : {"stream.arrow", "file.arrow"}) {
    const std::string bytes = read_file(arrow_file(name));
    for (const size_t size : {size_t{0}, size_t{7}, size_t{20}, bytes.size() / 2, bytes.size() - 1}) {
      write_text(temp / "cut.arrow", bytes.substr(0, size));
      expect_error(ExitCode::kUnusable, {"cut.arrow is not a whole Arrow"},
                   [&] { read_texts(temp / "cut.arrow"); });
    }
  }
}

TEST(ArrowRecords, EveryDamagedByteIsRefusedOrGivesOtherTexts) {
  const TempDir temp;
  int num_refused = 0;
  for (const char* name : {"zstd.arrow", "dictionary.arrow", "string_view.arrow", "nested.arrow"}) {
    const std::string good = read_file(arrow_file(name));
    for (size_t at = 0; at < good.size(); at += 7) {
      std::string bytes = good;
      bytes[at] = static_cast<char>(bytes[at] ^ 0x81);
      write_text(temp / "damaged.arrow", bytes);
      try {
        read_rows(temp / "damaged.arrow");
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::kUnusable);
        EXPECT_NE(std::string_view(error.what()).find("damaged.arrow"), std::string_view::npos)
            << error.what();
        ++num_refused;
      }
    }
  }
  EXPECT_GT(num_refused, 100);
}

std::vector<std::string> names_of(const std::string& folder, const InputRules& rules) {
  std::vector<std::string> names;
  for (const InputFile& file : find_input_files({folder}, rules).files) {
    EXPECT_EQ(file.format, TextFormat::kArrow);
    names.push_back(fs::path(file.path).lexically_relative(folder).string());
  }
  return names;
}

TEST(SavedDataSet, ReadsTheFilesThatItsRecordsList) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_of(arrow_file("saved/texts"), {}),
            (Names{"data-00000-of-00002.arrow", "data-00001-of-00002.arrow"}));  // not cache-*.arrow
  EXPECT_EQ(names_of(arrow_file("saved/splits"), {.split = "test_sft"}),
            Names{"test_sft/data-00000-of-00001.arrow"});
  EXPECT_EQ(names_of(arrow_file("saved/splits"), {.split = ""}).size(), 2u);
  expect_error(ExitCode::kUnusable, {"expected files of the split train, got train_sft, test_sft"},
               [] { find_input_files({arrow_file("saved/splits")}, {}); });
  EXPECT_EQ(names_of(arrow_file("cache"), {}), Names{"json-train.arrow"});
  EXPECT_EQ(names_of(arrow_file("cache"), {.split = "validation"}), Names{"json-validation.arrow"});
}

TEST(SavedDataSet, DamagedRecordsAreRefused) {
  const TempDir temp;
  write_text(temp / "s/dataset_info.json", "{}");
  const auto refuses = [&](const std::string& state, std::initializer_list<std::string_view> parts) {
    write_text(temp / "s/state.json", state);
    expect_error(ExitCode::kUnusable, parts, [&] { find_input_files({temp / "s"}, {}); });
  };
  refuses("{", {"state.json"});
  refuses("{}", {"state.json has no list \"_data_files\""});
  refuses(R"({"_data_files": [{"filename": "../x.arrow"}]})", {"names of files in its folder", "../x.arrow"});
  refuses(R"({"_data_files": [{"filename": "x.arrow"}], "_indices_data_files": [{"filename": "i.arrow"}]})",
          {"selection of the rows"});
}

}  // namespace
}  // namespace tycho
