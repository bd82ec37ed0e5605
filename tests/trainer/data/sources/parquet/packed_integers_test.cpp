// Packed numbers, as the examples of Parquet's specification have them.
#include "trainer/data/sources/parquet/packed_integers.h"

#include "tests/trainer/data/data_testing.h"

namespace tycho {
namespace {

using testing::expect_error;

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}

TEST(RunReaderTest, RunsAndPackedGroups) {
  // The numbers 0 to 7 in three bits each: the example of "RLE / Bit-Packing Hybrid". Then nine times 4.
  const std::string mixed = bytes({0x03, 0x88, 0xC6, 0xFA, 9 << 1, 4});
  RunReader runs(mixed, 3);
  for (uint32_t value = 0; value < 8; ++value) EXPECT_EQ(runs.next(), value);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(runs.next(), 4u);
  expect_error(ExitCode::kUnusable, {"packed numbers end too early"}, [&] { runs.next(); });
}

TEST(RunReaderTest, WidthsAndEnds) {
  const std::string wide = bytes({3 << 1, 0x01, 0x02, 0x03, 0x04});
  RunReader runs(wide, 32);
  EXPECT_EQ(runs.next(), 0x04030201u);
  RunReader none(bytes({5 << 1}), 0);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(none.next(), 0u);
  for (const int width : {-1, 33})
    expect_error(ExitCode::kUnusable, {"impossible width"}, [&] { RunReader("", width); });
  for (const std::string& cut : {bytes({}), bytes({0x80}), bytes({2, 1}), bytes({1 << 1 | 1})})
    expect_error(ExitCode::kUnusable, {"end too early"}, [&] { RunReader(cut, 9).next(); });
  expect_error(ExitCode::kUnusable, {"impossible width"},
               [] { RunReader(std::string(10, '\xff'), 1).next(); });
}

TEST(DeltaReaderTest, TheExamplesOfTheSpecification) {
  // 7, 5, 3, 1, 2, 3, 4, 5: differences -2 -2 -2 1 1 1 1, the smallest -2, packed in two bits: 0 0 0 3 3 3 3.
  std::string packed = bytes({128, 1, 4, 8, 14, 3, 2, 0, 0, 0}) + bytes({0xC0, 0x3F}) + std::string(6, '\0');
  DeltaReader numbers(packed);
  ASSERT_EQ(numbers.num_values(), 8u);
  for (const int64_t wanted : {7, 5, 3, 1, 2, 3, 4, 5}) EXPECT_EQ(numbers.next(), wanted);
  EXPECT_EQ(numbers.position(), packed.size());
  expect_error(ExitCode::kUnusable, {"end too early"}, [&] { numbers.next(); });
  packed.pop_back();
  DeltaReader cut(packed);
  cut.next();
  expect_error(ExitCode::kUnusable, {"end too early"}, [&] { cut.next(); });
}

TEST(DeltaReaderTest, ImpossibleBlocks) {
  for (const std::string& head : {bytes({0, 4, 8, 14}), bytes({128, 1, 0, 8, 14}), bytes({128, 1, 3, 8, 14})})
    expect_error(ExitCode::kUnusable, {"impossible width"}, [&] { DeltaReader reader(head); });
  const std::string wide = bytes({128, 1, 1, 2, 0, 0, 65});
  DeltaReader numbers(wide);
  numbers.next();
  expect_error(ExitCode::kUnusable, {"impossible width"}, [&] { numbers.next(); });
}

}  // namespace
}  // namespace tycho
