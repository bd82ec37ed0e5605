// Buckets against a stable sort of all positions.
#include "trainer/data/order/spread_buckets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace tycho {
namespace {

struct Sample {
  double position;
  uint32_t id;
};

/// What buckets give out, all of them open at once.
std::vector<uint32_t> taken(const std::vector<Sample>& samples, int64_t num_buckets) {
  SpreadBuckets buckets(num_buckets + 5, num_buckets);
  for (const Sample& one : samples) EXPECT_TRUE(buckets.put(one.position, one.id));
  std::vector<uint32_t> ids;
  for (int64_t i = 0; i < num_buckets; ++i) buckets.take_first(ids);
  return ids;
}

std::vector<uint32_t> sorted(std::vector<Sample> samples) {
  std::stable_sort(samples.begin(), samples.end(),
                   [](const Sample& a, const Sample& b) { return a.position < b.position; });
  std::vector<uint32_t> ids;
  for (const Sample& one : samples) ids.push_back(one.id);
  return ids;
}

TEST(SpreadBucketsTest, GivesOutByPosition) {
  std::mt19937_64 random(4);
  constexpr int64_t kBuckets = 7;
  std::uniform_real_distribution<double> place(0, static_cast<double>(kBuckets * SpreadBuckets::kWidth));
  std::vector<Sample> samples;
  for (uint32_t i = 0; i < kBuckets * SpreadBuckets::kWidth; ++i) samples.push_back({place(random), i});
  EXPECT_EQ(taken(samples, kBuckets), sorted(samples));
}

TEST(SpreadBucketsTest, PositionsThatDifferInTheirLastBits) {
  std::vector<Sample> samples;
  for (uint32_t i = 0; i < 600; ++i)  // 1e-12 apart, against their order; each third one is the same again
    samples.push_back({5000.25 - 1e-12 * (i - i % 3), i});
  EXPECT_EQ(taken(samples, 2), sorted(samples));
}

TEST(SpreadBucketsTest, MoreSamplesThanABucketHasRoomFor) {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> place(0, 3.0 * SpreadBuckets::kWidth);
  std::vector<Sample> samples;
  for (uint32_t i = 0; i < 8 * SpreadBuckets::kWidth; ++i) samples.push_back({place(random), i});
  for (uint32_t i = 0; i < 20000; ++i) samples.push_back({4096.5, 100000 + i});
  EXPECT_EQ(taken(samples, 3), sorted(samples));
}

TEST(SpreadBucketsTest, PositionsBeyondTheEndAreInTheLastBucket) {
  const std::vector<Sample> samples = {{8192.0, 1}, {8191.5, 2}, {4096.0, 3}, {0.0, 4}};
  EXPECT_EQ(taken(samples, 2), (std::vector<uint32_t>{4, 3, 2, 1}));
}

TEST(SpreadBucketsTest, SlotsComeRoundAgain) {
  SpreadBuckets buckets(2, 50);
  std::vector<uint32_t> ids, expected;
  for (uint32_t bucket = 0; bucket < 50; ++bucket) {
    const double begin = bucket * static_cast<double>(SpreadBuckets::kWidth);
    for (uint32_t i = 0; i < 40; ++i) EXPECT_TRUE(buckets.put(begin + 4000 - 100.0 * i, 40 * bucket + i));
    for (uint32_t i = 40; i-- > 0;) expected.push_back(40 * bucket + i);
    buckets.take_first(ids);
    EXPECT_FALSE(buckets.put(begin, 0)) << "a bucket that was given out";
  }
  EXPECT_EQ(ids, expected);
}

}  // namespace
}  // namespace tycho
