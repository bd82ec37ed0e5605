// Examples, as LLM Foundry's get_fewshot_sample_idxs draws them with Python's random.
#include "trainer/tasks/few_shot.h"

#include <gtest/gtest.h>

#include "tests/trainer/tasks/icl_golden.h"

namespace tycho {
namespace {

TEST(FewShot, DrawsWhatLlmFoundryDraws) {
  int compared = 0;
  for (const Json& draws : icl_golden("few_shot.json")) {
    const auto size = draws.at("size").get<int64_t>(), count = draws.at("count").get<int64_t>();
    PythonRandom random(draws.at("seed").get<uint64_t>());
    int64_t index = 0;
    for (const Json& shown : draws.at("shown")) {
      EXPECT_EQ(few_shot_examples(size, count, index++ % size, random), shown.get<std::vector<int64_t>>())
          << size << " " << count << " draw " << index;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 12 * 20);
}

TEST(FewShot, AnItemIsNeverItsOwnExample) {
  PythonRandom random(5);
  for (int64_t i = 0; i < 300; ++i)
    for (const int64_t shown : few_shot_examples(7, 1 + i % 9, i % 7, random)) EXPECT_NE(shown, i % 7);
  EXPECT_TRUE(few_shot_examples(1, 3, 0, random).empty());
}

}  // namespace
}  // namespace tycho
