// The times of tries and of giving up, worked out by hand.
#include "trainer/saving/retry_policy.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

TEST(RetryPolicy, LosesNothingWhileSavesSucceed) {
  RetryPolicy policy(600);
  for (int step = 1; step <= 3; ++step) policy.trained(step, 400);
  EXPECT_FALSE(policy.is_failing());
  EXPECT_EQ(policy.lost_s(), 0);
  EXPECT_TRUE(policy.allows_loss());
}

TEST(RetryPolicy, LosesAllTimeSinceTheOldestSnapshotThatIsNotSaved) {
  RetryPolicy policy(600);
  policy.trained(1, 100);
  policy.took_snapshot();
  policy.trained(2, 150);
  policy.failed();
  EXPECT_EQ(policy.lost_s(), 150);
  policy.took_snapshot();  // the next try, whose snapshot is younger
  policy.trained(3, 50);
  policy.failed();
  EXPECT_EQ(policy.lost_s(), 200);
  EXPECT_EQ(policy.left_s(), 400);
  policy.waited(400);
  EXPECT_TRUE(policy.allows_loss()) << "exactly ckpt.max_lost";
  policy.waited(1);
  EXPECT_FALSE(policy.allows_loss());
  EXPECT_EQ(policy.left_s(), 0);
  policy.succeeded();
  EXPECT_EQ(policy.lost_s(), 0);
}

TEST(RetryPolicy, TriesTwentyTimesAndAtLeastEveryHalfMinute) {
  EXPECT_EQ(RetryPolicy(100).retry_s(), 5);
  EXPECT_EQ(RetryPolicy(3600).retry_s(), 30);
}

TEST(RetryPolicy, TriesAfterWholeSteps) {
  RetryPolicy policy(100);  // every 5 s
  EXPECT_EQ(policy.retry_step(7), 8) << "nothing is known of the length of a step";
  policy.trained(8, 2);
  policy.trained(9, 2);
  EXPECT_EQ(policy.retry_step(7), 12) << "three steps of 2 s";
  EXPECT_EQ(policy.retry_step(20), 23) << "the save is of a later step than the newest";
  EXPECT_EQ(policy.next_try_s(), 5);
  policy.trained(10, 26);
  EXPECT_EQ(policy.retry_step(7), 11) << "one step of 10 s";
  EXPECT_EQ(policy.next_try_s(), 10);
}

}  // namespace
}  // namespace tycho
