// packing_ratio = "auto" against LLM Foundry's own search.
#include "trainer/data/chat/packing_ratio.h"

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

TEST(PackingRatio, IsTheOneThatLlmFoundryFinds) {
  const Json cases = Json::parse(read_file(testing::golden("packing/cases.json"))).at("ratios");
  ASSERT_GE(cases.size(), 10u);
  for (const Json& wanted : cases) {
    const auto lengths = wanted.at("lengths").get<std::vector<int32_t>>();
    EXPECT_EQ(find_packing_ratio(lengths, {wanted.at("rows"), wanted.at("row_tokens")}),
              wanted.at("ratio").get<double>())
        << "rows of " << wanted.at("row_tokens") << ", " << wanted.at("rows") << " at a time";
  }
}

TEST(PackingRatio, GivesWholeExamples) {
  EXPECT_EQ(examples_per_batch(2.3, 4), 9);
  EXPECT_EQ(examples_per_batch(1.9, 1), 1);
  EXPECT_EQ(find_packing_ratio({}, {4, 2048}), 1);
}

}  // namespace
}  // namespace tycho
