// Buckets against a stable sort of all positions.
#include "trainer/data/order/spread_buckets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

namespace tycho {
namespace {

struct Sample {
  double position;
  uint32_t id;
};

/// What buckets give out, all of them open at once. `asked`: how often they asked for an exact place.
std::vector<uint32_t> taken(const std::vector<Sample>& samples, int64_t num_buckets,
                            int64_t* asked = nullptr) {
  std::map<uint32_t, SortKey> places;
  std::vector<double> positions;
  std::vector<uint32_t> ids;
  for (const Sample& one : samples) {
    places[one.id] = {one.position, static_cast<int64_t>(places.size())};
    positions.push_back(one.position);
    ids.push_back(one.id);
  }
  int64_t times = 0;
  SpreadBuckets buckets(num_buckets + 5, num_buckets, [&](uint32_t id) {
    ++times;
    return places.at(id);
  });
  EXPECT_EQ(buckets.put(positions, ids), 0);
  IdChunk taken;
  for (int64_t i = 0; i < num_buckets; ++i) buckets.take_first(taken);
  if (asked != nullptr) *asked = times;
  return {taken.begin(), taken.end()};
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

TEST(SpreadBucketsTest, BucketsOfAnySize) {
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

TEST(SpreadBucketsTest, ExactPlacesAreSeldomAskedFor) {
  std::mt19937_64 random(6);
  std::uniform_real_distribution<double> place(0, 100.0 * SpreadBuckets::kWidth);
  std::vector<Sample> samples;
  for (uint32_t i = 0; i < 100 * SpreadBuckets::kWidth; ++i) samples.push_back({place(random), i});
  int64_t asked = 0;
  EXPECT_EQ(taken(samples, 100, &asked), sorted(samples));
  EXPECT_LT(asked, 20);
}

TEST(SpreadBucketsTest, PositionsUpToTheLargest) {
  constexpr double kEnd = 0x1p32;
  const int64_t last = (int64_t{1} << (32 - SpreadBuckets::kBits)) - 1;
  SpreadBuckets buckets(2, last + 1, [](uint32_t id) { return SortKey{kEnd - 1 - id, id}; });
  buckets.restart_at(last);
  const std::vector<double> positions = {std::nextafter(kEnd, 0), kEnd - 0.5, kEnd - 0.25, kEnd - 4095};
  EXPECT_EQ(buckets.put(positions, std::vector<uint32_t>{1, 2, 3, 4}), 0);
  IdChunk ids;
  buckets.take_first(ids);
  EXPECT_EQ(std::vector<uint32_t>(ids.begin(), ids.end()), (std::vector<uint32_t>{4, 2, 3, 1}));
}

TEST(SpreadBucketsTest, BeginsAnewAtAnyBucket) {
  SpreadBuckets buckets(3, 9, [](uint32_t id) { return SortKey{0, id}; });
  EXPECT_EQ(buckets.put(std::vector{1.0, 2.0}, std::vector<uint32_t>{1, 2}), 0);
  buckets.restart_at(5);
  const double begin = 5.0 * SpreadBuckets::kWidth;
  EXPECT_EQ(buckets.put(std::vector{begin - 1, begin + 1, begin, 0.0}, std::vector<uint32_t>{3, 4, 5, 6}), 2);
  IdChunk ids;
  buckets.take_first(ids);
  EXPECT_EQ(std::vector<uint32_t>(ids.begin(), ids.end()), (std::vector<uint32_t>{5, 4}));
  EXPECT_EQ(buckets.first(), 6);
}

TEST(SpreadBucketsTest, SlotsComeRoundAgain) {
  SpreadBuckets buckets(2, 50, [](uint32_t id) { return SortKey{0, id}; });
  IdChunk ids, expected;
  for (uint32_t bucket = 0; bucket < 50; ++bucket) {
    const double begin = bucket * static_cast<double>(SpreadBuckets::kWidth);
    for (uint32_t i = 0; i < 40; ++i) {
      const std::vector<uint32_t> id = {40 * bucket + i};
      EXPECT_EQ(buckets.put(std::vector{begin + 4000 - 100.0 * i}, id), 0);
    }
    for (uint32_t i = 40; i-- > 0;) expected.push_back(40 * bucket + i);
    buckets.take_first(ids);
    EXPECT_EQ(buckets.put(std::vector{begin}, std::vector<uint32_t>{0}), 1) << "a bucket that was given out";
  }
  EXPECT_EQ(ids, expected);
}

}  // namespace
}  // namespace tycho
