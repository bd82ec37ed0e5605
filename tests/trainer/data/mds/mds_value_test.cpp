// Values of every encoding: what mosaicml-streaming wrote is read, and what was read makes the same bytes
// again.
#include "trainer/data/mds/mds_value.h"

#include <limits>

#include "tests/trainer/data/data_testing.h"
#include "tests/trainer/data/mds/mds_array_bytes.h"
#include "trainer/data/mds/mds_reader.h"
#include "trainer/data/mds/mds_writer.h"

namespace tycho {
namespace {

using testing::bytes_of_number;
using testing::expect_error;
using testing::golden;
using testing::mds_array_bytes;
using testing::TempDir;

std::string word(size_t number) { return bytes_of_number(static_cast<uint32_t>(number)); }

/// The value again, from what was read of it.
std::string array_again(const MdsColumn& column, const std::string& value) {
  const MdsArray array = read_mds_array(column.encoding, value, "[test]");
  return mds_array_bytes(column.encoding, array.dtype, array.shape, array.elements);
}

std::string picture_again(const std::string& value) {
  const MdsPicture picture = read_mds_picture(value, "[test]");
  return (word(picture.width) + word(picture.height) + word(picture.mode.size()))
      .append(picture.mode)
      .append(picture.pixels);
}

std::string list_again(const MdsColumn& column, const std::string& value) {
  const auto items = read_mds_list(column.encoding, value, "[test]");
  std::string again = column.encoding.starts_with("list[") ? word(0) : "";
  again += word(items.size());
  for (const std::string_view item : items) again += word(item.size());
  for (const std::string_view item : items) again += item;
  return again;
}

class MdsValueTest : public ::testing::Test {
 protected:
  explicit MdsValueTest() = default;
  /// A value of a golden data set, as people see it.
  static Json shown(const std::string& set, int64_t sample, const std::string& column) {
    MdsReader reader(read_mds_index(golden("mds_values/" + set)));
    const size_t at = reader.column(column);
    return show_mds_value(reader.index().shards[0].columns[at].encoding, reader.read(sample)[at], 8,
                          "[test]");
  }
  /// Writes the data set anew by `make` and compares every byte.
  template <class Make>
  void expect_same_shard(const std::string& set, Make make) {
    MdsReader reader(read_mds_index(golden("mds_values/" + set)));
    const auto columns = reader.index().shards[0].columns;
    std::filesystem::create_directory(temp_ / set);
    MdsWriter writer(real_files(), temp_ / set, {.columns = columns});
    for (int64_t i = 0; i < reader.index().num_samples(); ++i) {
      std::vector<std::string> values;
      for (size_t c = 0; c < columns.size(); ++c) {
        const std::string value(reader.read(i)[c]);
        values.push_back(make(columns[c], value));
        EXPECT_EQ(values.back(), value) << columns[c].encoding << " of sample " << i;
      }
      writer.write(values);
    }
    writer.finish();
    for (const char* file : {"/shard.00000.mds", "/index.json"})
      EXPECT_EQ(read_file(temp_ / set + file), read_file(golden("mds_values/" + set) + file));
  }
  TempDir temp_;
};

TEST_F(MdsValueTest, ReadsScalars) {
  EXPECT_EQ(shown("scalars", 0, "int8"), -128);
  EXPECT_EQ(shown("scalars", 1, "uint64"), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(shown("scalars", 0, "int64"), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(shown("scalars", 1, "float16"), 65504);
  EXPECT_EQ(shown("scalars", 2, "float16").dump(), "0.0999755859375");
  EXPECT_EQ(shown("scalars", 2, "float32").dump(), "0.1");
  EXPECT_EQ(shown("scalars", 2, "float64").dump(), "0.1");
}

TEST_F(MdsValueTest, ReadsTexts) {
  EXPECT_EQ(shown("texts", 0, "a"), "caf\u00e9 \U0001f600\n");
  EXPECT_EQ(shown("texts", 0, "b"), Json::parse(R"({"num_bytes": 2, "begins": "00ff"})"));
  EXPECT_EQ(shown("texts", 0, "c")["z"][2], 1e16);
  EXPECT_EQ(shown("texts", 0, "d"), "1" + std::string(30, '0'));
  EXPECT_EQ(shown("texts", 0, "e"), "1e+22");
  EXPECT_EQ(shown("texts", 0, "f"), "1.50E+7");
  EXPECT_EQ(shown("texts", 0, "g"), int64_t{1} << 62);
  EXPECT_EQ(shown("texts", 2, "c"), R"({"big": Infinity, "not": NaN})") << "JSON does not have these numbers";
  EXPECT_EQ(shown("texts", 2, "e"), "-inf");
}

TEST_F(MdsValueTest, ReadsArraysAndPictures) {
  EXPECT_EQ(shown("arrays", 0, "fixed").dump(), R"({"dtype":"int16","shape":[2,3],"values":[0,1,2,3,4,5]})");
  EXPECT_EQ(shown("arrays", 0, "free").dump(),
            R"({"dtype":"uint64","shape":[2,3,4],"values":[0,1,2,3,4,5,6,7]})");
  EXPECT_EQ(shown("arrays", 1, "free").dump(), R"({"dtype":"float16","shape":[1],"values":[1.5]})");
  EXPECT_EQ(shown("arrays", 1, "long")["shape"].dump(), "[1,70000]");
  EXPECT_EQ(shown("pictures", 0, "a").dump(), R"({"width":3,"height":2,"mode":"RGB","num_bytes":18})");
  EXPECT_EQ(shown("pictures", 0, "b")["begins"].get<std::string>().substr(0, 8), "89504e47");
  EXPECT_EQ(shown("pictures", 0, "c")["begins"].get<std::string>().substr(0, 6), "ffd8ff");
  EXPECT_EQ(shown("pictures", 0, "d")[1].dump(), R"({"width":4,"height":2,"mode":"L","num_bytes":8})");
  EXPECT_EQ(shown("pictures", 0, "f").size(), 2u);
  EXPECT_EQ(shown("pictures", 0, "g")[0]["num_bytes"], 4);
}

TEST_F(MdsValueTest, NothingIsLostOfArraysPicturesAndLists) {
  expect_same_shard("arrays", array_again);
  expect_same_shard("pictures", [](const MdsColumn& column, const std::string& value) {
    if (column.encoding == "png" || column.encoding == "jpeg") return value;
    return column.encoding == "pil" ? picture_again(value) : list_again(column, value);
  });
}

TEST_F(MdsValueTest, BytesThatAnEncodingCannotHaveAreRefused) {
  using namespace std::string_view_literals;
  const auto refuses = [](std::string_view encoding, std::string_view value, std::string_view part) {
    expect_error(ExitCode::kUnusable, {"[here]", part}, [&] { check_mds_value(encoding, value, "[here]"); });
  };
  refuses("int", "1234567", "expected 8 bytes, found 7");
  refuses("str", "a\xff", "not UTF-8 at byte 1");
  refuses("json", "{\"a\": ", "at byte");
  refuses("json", "", "");
  for (const char* text : {"", "x", "1e", "--1", "1.2.3", ".", "0x10"})
    refuses("str_float", text, "number as text");
  refuses("str_int", "1.0", "number as text");
  refuses("ndarray", "\x01\x04\x01x", "unknown dtype");
  refuses("ndarray:int32", "", "before its shape");
  refuses("ndarray:int32", "\x00"sv, "no dimensions");
  refuses("ndarray:int32", "\x0b\x01"sv, "inside its shape");
  refuses("ndarray:int32", "\x04\x00"sv, "dimension of 0");
  refuses("ndarray:int32", "\x07\xff\xff\xff\xff\xff\xff\xff\xff"sv, "dimension of");
  refuses("ndarray:uint8", "\x08\x02\x02xxx", "number of bytes");
  refuses("pil", "12345", "inside its header");
  refuses("pil", "\1\0\0\0\1\0\0\0\xff\0\0\0RGB"sv, "mode of 255 bytes");
  refuses("pil", "\xff\xff\xff\xff\xff\xff\xff\xff\1\0\0\0Lx"sv, "cannot have 1 bytes");
  refuses("list[png]", "\0\0\0\0"sv, "inside its header");
  refuses("list[png]", "\0\0\0\0\xff\xff\xff\xff"sv, "inside their sizes");
  refuses("jpeg_array", "\1\0\0\0\5\0\0\0abc"sv, "item 1 of the list");
  refuses("jpeg_array", "\1\0\0\0\1\0\0\0abc"sv, "2 bytes behind");
}

TEST_F(MdsValueTest, PicklesAreRefusedWithAReason) {
  expect_error(ExitCode::kUnusable, {"\"x\"", "pickle can run any program", "json"}, [] {
    mds_column_size({"x", "pkl"});
  });
}

TEST_F(MdsValueTest, FloatsAreWrittenAsPythonDoes) {
  const std::vector<std::pair<double, const char*>> known = {{0, "0.0"},
                                                             {-0.0, "-0.0"},
                                                             {1, "1.0"},
                                                             {100, "100.0"},
                                                             {0.0001, "0.0001"},
                                                             {0.00001, "1e-05"},
                                                             {1e15, "1000000000000000.0"},
                                                             {1e16, "1e+16"},
                                                             {123456.789, "123456.789"},
                                                             {1.5e300, "1.5e+300"},
                                                             {5e-324, "5e-324"},
                                                             {-2.5, "-2.5"},
                                                             {0.1 + 0.2, "0.30000000000000004"},
                                                             {9007199254740993.0, "9007199254740992.0"}};
  for (const auto& [value, text] : known) EXPECT_EQ(python_float(value), text);
}

}  // namespace
}  // namespace tycho
