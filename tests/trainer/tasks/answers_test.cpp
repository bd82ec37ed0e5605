// Answers, normalized as LLM Foundry normalizes them.
#include "trainer/tasks/answers.h"

#include <gtest/gtest.h>

#include "tests/trainer/tasks/icl_golden.h"

namespace tycho {
namespace {

TEST(Answers, AreNormalizedAsByLlmFoundry) {
  int compared = 0;
  for (const Json& one : icl_golden("answers.json")) {
    EXPECT_EQ(normalized_answer(one.at("text").get<std::string>()), one.at("normalized").get<std::string>());
    ++compared;
  }
  EXPECT_EQ(compared, 12);
}

TEST(Answers, AreRightWhenTheyBeginWithARightOne) {
  const IclTaskConfig task;
  EXPECT_TRUE(is_right(task, " The Cat, of course", {"dog", "cat"}));
  EXPECT_FALSE(is_right(task, "a black cat", {"cat"}));
  EXPECT_TRUE(is_right(task, "anything", {"the"}));  // nothing is left of it
}

TEST(Answers, AreCutBeforeTheFirstStopAndAfterTheThought) {
  IclTaskConfig task;
  task.early_stopping_criteria = {"\n\n", "Q"};
  task.cot_delimiter = "####";
  EXPECT_TRUE(is_right(task, "1 #### no #### 5 Q: #### 7", {"5"}));
  EXPECT_FALSE(is_right(task, "1 #### no #### 5 Q: #### 7", {"7"}));
  task.do_normalization = false;
  EXPECT_FALSE(is_right(task, "#### Five", {"five"}));
  EXPECT_TRUE(is_right(task, "####  Five ", {"Five "}));
}

}  // namespace
}  // namespace tycho
