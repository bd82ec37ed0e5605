// Places of units that ranks gather as codes, and those that they do not.
#include "trainer/layout/coded_unit.h"

#include <gtest/gtest.h>

#include <string>

#include "trainer/layout/gathered_bytes.h"
#include "trainer/layout/unit_shards.h"

namespace tycho {
namespace {

ParamSpec matrix(int64_t rows, int64_t columns) {
  return {.name = "matrix", .shape = {rows, columns}, .coded = true};
}
ParamSpec vector(int64_t size) { return {.name = "vector", .shape = {size}}; }
UnitSpec unit_of(std::vector<ParamSpec> params) { return {.name = "unit", .params = std::move(params)}; }

TEST(CodedUnit, HasItsMatricesAsCodesAndTheRestBehindThem) {
  const UnitSpec unit =
      unit_of({vector(32), matrix(32, 64), matrix(16, 64), vector(32), vector(64), matrix(16, 64)});
  const auto layout = coded_unit_layout(unit, 4);
  ASSERT_TRUE(layout);
  ASSERT_EQ(layout->matrices.size(), 3U);
  EXPECT_EQ(layout->matrices[0].param, 1U);
  EXPECT_EQ(layout->matrices[1].first_row, 32);
  EXPECT_EQ(layout->matrices[2].first_row, 48);
  EXPECT_EQ(layout->num_factors(), 64);
  ASSERT_EQ(layout->rest.size(), 2U);
  EXPECT_EQ(layout->rest[0].end, 32);
  EXPECT_EQ(layout->rest[1].begin, 32 + 2048 + 1024);
  EXPECT_EQ(layout->rest[1].end, 32 + 2048 + 1024 + 96);
  EXPECT_EQ(layout->rest[1].place, 32);
  EXPECT_EQ(layout->codes_each, shard_elements(unit.numel(), 4));
  EXPECT_EQ(layout->rest_each, 64) << "of the third rank, which has the first 64 of 96";
  EXPECT_EQ(layout->bytes_each(), layout->codes_each + 2 * 64);
  EXPECT_EQ(layout->rest_at, 4 * layout->codes_each);
  EXPECT_EQ(layout->placed_at, layout->rest_at + 4 * 2 * 64);
  EXPECT_LE(layout->placed_at + 2 * (32 + 96), 4 * 2 * layout->codes_each);
}

TEST(CodedUnit, IsNoneWhereCodesWouldNotHelp) {
  EXPECT_FALSE(coded_unit_layout(unit_of({vector(32), matrix(32, 64)}), 1)) << "nothing is gathered";
  EXPECT_TRUE(coded_unit_layout(unit_of({vector(32), matrix(32, 64)}), 2));
  EXPECT_FALSE(coded_unit_layout(unit_of({vector(32), vector(2048)}), 2)) << "nothing is in fp8";
  EXPECT_FALSE(coded_unit_layout(unit_of({vector(24), matrix(32, 64)}), 2)) << "a GPU could not multiply it";
  EXPECT_FALSE(coded_unit_layout(unit_of({vector(2048), matrix(32, 64)}), 2)) << "half of it stays bf16";
}

TEST(CodedUnit, CountsItsBytes) {
  const std::vector<UnitSpec> units = {unit_of({vector(64)}), unit_of({vector(32), matrix(32, 64)}),
                                       unit_of({vector(64)})};
  const ShardRules rules = {.num_ranks = 2};
  const int64_t ends = 2 * 2 * 64, block = 2 * shard_elements(32 + 2048, 2);
  EXPECT_EQ(gathered_bytes(units, rules, 1, 2), ends + block + 2 * 2 * 32);
  EXPECT_EQ(gathered_bytes(units, rules, 1, 4), 2 * ends + 4 * block) << "fp32 has no codes";
}

}  // namespace
}  // namespace tycho
