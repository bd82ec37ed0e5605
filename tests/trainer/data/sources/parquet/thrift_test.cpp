// Bytes of Thrift's compact protocol, written by hand.
#include "trainer/data/sources/parquet/thrift.h"

#include "tests/trainer/data/data_testing.h"

namespace tycho {
namespace {

using testing::expect_error;
using Type = ThriftReader::Type;

std::string compact(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

TEST(ThriftReaderTest, FieldsOfAStruct) {
  // 1: i32 -3; 2: true; 20 (its number written out): "ab"; 21: list of two i64.
  const std::string text = compact({0x15, 5, 0x11, 0x08, 40, 2, 'a', 'b', 0x19, 0x26, 2, 4, 0});
  ThriftReader in(text);
  std::vector<int> ids;
  std::vector<int64_t> items;
  in.read_struct([&](int id, Type type) {
    ids.push_back(id);
    if (id == 1) {
      EXPECT_EQ(in.read_int(), -3);
    } else if (id == 20) {
      EXPECT_EQ(in.read_binary(), "ab");
    } else if (id == 21) {
      in.read_list(Type::kI64, [&] { items.push_back(in.read_int()); });
    } else {
      EXPECT_EQ(type, Type::kTrue);
      return false;
    }
    return true;
  });
  EXPECT_EQ(ids, (std::vector<int>{1, 2, 20, 21}));
  EXPECT_EQ(items, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(in.position(), text.size());
}

TEST(ThriftReaderTest, SkipsUnknownFields) {
  // Of every type: byte, double, binary, list of bools, set, struct in a struct.
  const std::string text = compact({0x13, 7,    0x17, 1, 2, 3,    4,    5, 6,    7,    8, 0x18, 1,
                                    'x',  0x19, 0x21, 1, 2, 0x1A, 0x15, 9, 0x1C, 0x1C, 0, 0,    0});
  ThriftReader in(text);
  int fields = 0;
  in.read_struct([&](int, Type) { return ++fields, false; });
  EXPECT_EQ(fields, 6);
  EXPECT_EQ(in.position(), text.size());
}

TEST(ThriftReaderTest, InvalidBytes) {
  const auto refuses = [](const std::string& text, std::string_view what) {
    expect_error(ExitCode::kUnusable, {what},
                 [&] { ThriftReader(text).read_struct([](int, Type) { return false; }); });
  };
  refuses("", "ends too early");
  refuses(compact({0x15}), "ends too early");
  refuses(compact({0x18, 5, 'a'}), "ends too early");
  refuses(compact({0x19, 0xF5, 0xFF, 0xFF, 0xFF, 0x7F}), "ends too early");
  refuses(compact({0x1B, 0, 0}), "unknown type");
  refuses(compact({0x1F, 0}), "unknown type");
  refuses(compact({0x15}) + std::string(10, '\xff'), "more than 64 bits");
  refuses(std::string(1000, '\x1C'), "nested too deeply");
  refuses(std::string(1, '\x19') + std::string(1000, '\x19'), "nested too deeply");
  const std::string list = compact({0x26, 2, 4});
  expect_error(ExitCode::kUnusable, {"items of another type"},
               [&] { ThriftReader(list).read_list(Type::kBinary, [] {}); });
}

}  // namespace
}  // namespace tycho
