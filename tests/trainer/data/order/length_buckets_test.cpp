// Buckets of similar lengths against NumPy, and read from any place on.
#include "trainer/data/order/length_buckets.h"

#include <algorithm>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"

namespace tycho {
namespace {

using testing::golden;

/// Those of make_bucket_goldens.py.
struct Case {
  explicit Case(const Json& json)
      : buckets{.window_batches = json.at("window"),
                .batch_rows = json.at("batch"),
                .num_rows = json.at("rows"),
                .seed = json.at("seed"),
                .epoch = json.at("epoch")},
        order(json.at("order").get<std::vector<uint32_t>>()) {
    for (int64_t row = 0; row < buckets.num_rows; ++row)
      lengths.push_back(static_cast<int32_t>(1 + (row * row + 5 * row) % 23));
  }
  std::unique_ptr<IdStream> stream() const {
    auto rows = std::make_shared<IdChunk>();
    for (int64_t i = 0; i < buckets.num_rows; ++i)
      rows->push_back(static_cast<uint32_t>((7 * i + 3) % buckets.num_rows));
    return in_length_buckets(make_list_stream(rows, 0), lengths, buckets);
  }
  std::vector<uint32_t> read(IdStream& stream, size_t count) const {
    std::vector<uint32_t> ids(count);
    stream.read(ids);
    return ids;
  }

  LengthBuckets buckets;
  std::vector<int32_t> lengths;
  std::vector<uint32_t> order;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Json& json : Json::parse(read_file(golden("order/buckets.json")))) all.emplace_back(json);
  return all;
}

TEST(LengthBuckets, AreThoseOfNumpy) {
  ASSERT_GE(cases().size(), 24u);
  for (const Case& one : cases()) EXPECT_EQ(one.read(*one.stream(), one.order.size()), one.order);
}

TEST(LengthBuckets, EveryPlaceCanBeSkippedTo) {
  for (const Case& one : cases())
    for (size_t begin = 0; begin < one.order.size(); ++begin) {
      const auto stream = one.stream();
      stream->skip(static_cast<int64_t>(begin / 2));
      stream->skip(static_cast<int64_t>(begin - begin / 2));
      EXPECT_EQ(one.read(*stream, one.order.size() - begin),
                std::vector(one.order.begin() + static_cast<int64_t>(begin), one.order.end()));
    }
}

TEST(LengthBuckets, EveryRowComesOnceAndBatchesAreNarrower) {
  for (const Case& one : cases()) {
    std::vector<uint32_t> sorted = one.order;
    std::sort(sorted.begin(), sorted.end());
    for (size_t i = 0; i < sorted.size(); ++i) EXPECT_EQ(sorted[i], i);
    if (one.buckets.window_batches < 3 || one.buckets.num_rows < 40 || one.buckets.batch_rows == 1) continue;
    const auto sum_of_longest = [&](const std::vector<uint32_t>& rows) {
      const auto batch = static_cast<size_t>(one.buckets.batch_rows);
      int64_t sum = 0;
      for (size_t begin = 0; begin + batch <= rows.size(); begin += batch) {
        int32_t longest = 0;
        for (size_t i = begin; i < begin + batch; ++i) longest = std::max(longest, one.lengths[rows[i]]);
        sum += longest;
      }
      return sum;
    };
    std::vector<uint32_t> unsorted;
    for (int64_t i = 0; i < one.buckets.num_rows; ++i)
      unsorted.push_back(static_cast<uint32_t>((7 * i + 3) % one.buckets.num_rows));
    EXPECT_LT(sum_of_longest(one.order), sum_of_longest(unsorted));
  }
}

}  // namespace
}  // namespace tycho
