// Shuffles against mosaicml-streaming's (tests/golden/make_order_goldens.py).
#include "trainer/data/order/shuffle.h"

#include <bit>
#include <cmath>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/field_types.h"
#include "trainer/base/json.h"
#include "trainer/data/order/canonical_nodes.h"
#include "trainer/data/order/shuffle_series.h"
#include "trainer/data/order/spread_buckets.h"

namespace tycho {
namespace {

using testing::crc32_of;
using testing::golden;

constexpr ShuffleAlgo kAll[] = {ShuffleAlgo::kNaive, ShuffleAlgo::kPy1s, ShuffleAlgo::kPy2s,
                                ShuffleAlgo::kPy1br, ShuffleAlgo::kPy1e};

int64_t total(const std::vector<uint32_t>& units) {
  int64_t sum = 0;
  for (const uint32_t unit : units) sum += unit;
  return sum;
}

/// The ids of all canonical nodes, read `step` at a time after `skipped` of each.
std::vector<uint32_t> ids_of(const std::vector<uint32_t>& units, const Shuffle& shuffle,
                             int64_t step = 1 << 30, int64_t skipped = 0, const OrderMarks& marks = {}) {
  const int64_t all = total(units), nodes = shuffle.num_canonical_nodes;
  const auto streams = shuffled_nodes(units, shuffle, marks);
  std::vector<uint32_t> ids;
  for (int64_t node = 0; node < nodes; ++node) {
    int64_t left = all * (node + 1) / nodes - all * node / nodes - skipped;
    streams[static_cast<size_t>(node)]->skip(skipped);
    for (; left > 0; left -= step) {
      std::vector<uint32_t> part(static_cast<size_t>(std::min(left, step)));
      streams[static_cast<size_t>(node)]->read(part);
      ids.insert(ids.end(), part.begin(), part.end());
    }
  }
  return ids;
}

TEST(ShuffleTest, SmallOrders) {
  const std::vector<uint32_t> units = {7, 5, 6, 4};
  const auto of = [&](ShuffleAlgo algo) { return ids_of(units, {algo, 2, 17, 1, 12}); };
  using Ids = std::vector<uint32_t>;
  EXPECT_EQ(of(ShuffleAlgo::kPy1s),
            (Ids{5, 3, 0, 2, 6, 4, 1, 14, 13, 15, 12, 16, 17, 19, 18, 21, 20, 7, 10, 8, 9, 11}));
  EXPECT_EQ(of(ShuffleAlgo::kPy1e),
            (Ids{5, 3, 0, 2, 14, 6, 13, 4, 15, 1, 12, 17, 20, 16, 18, 21, 19, 9, 11, 10, 8, 7}));
  EXPECT_EQ(of(ShuffleAlgo::kPy1br),
            (Ids{2, 6, 1, 5, 3, 0, 13, 4, 15, 14, 12, 8, 20, 16, 17, 18, 9, 19, 7, 10, 21, 11}));
  EXPECT_EQ(of(ShuffleAlgo::kPy2s),
            (Ids{1, 2, 4, 5, 6, 0, 3, 14, 17, 16, 15, 21, 19, 18, 20, 11, 7, 10, 9, 8, 12, 13}));
  EXPECT_EQ(of(ShuffleAlgo::kNaive),
            (Ids{13, 8, 20, 10, 2, 18, 21, 12, 7, 16, 5, 15, 11, 0, 6, 4, 14, 1, 17, 9, 3, 19}));
}

TEST(ShuffleTest, OrdersOfAMillionSamples) {
  const Json json = parse_json(read_file(golden("order/large.json")), "large.json");
  std::vector<uint32_t> units(json.at("shards").get<size_t>(), json.at("shard").get<uint32_t>());
  units.push_back(json.at("last").get<uint32_t>());
  for (const Json& one : json.at("orders")) {
    Shuffle shuffle{ShuffleAlgo::kNaive, one[1], one[2], one[3], one[4]};
    for (const ShuffleAlgo algo : kAll)
      if (enum_name(algo) == one[0].get<std::string>()) shuffle.algo = algo;
    EXPECT_EQ(crc32_of(ids_of(units, shuffle)), one[5].get<uint32_t>()) << one;
  }
}

TEST(ShuffleTest, AnyPositionCanBeSkippedTo) {
  std::vector<uint32_t> units;
  for (uint32_t i = 0; i < 60; ++i) units.push_back(100 + 37 * i % 500);
  for (const ShuffleAlgo algo : kAll)
    for (const int64_t nodes : {1, 3}) {
      const Shuffle shuffle = {algo, nodes, 5, 2, 700};
      const std::vector<uint32_t> all = ids_of(units, shuffle);
      EXPECT_EQ(ids_of(units, shuffle, 17), all) << enum_name(algo);
      const auto n = static_cast<int64_t>(all.size());
      for (const int64_t skipped : {1, 699, 4096, 5000, static_cast<int>(n / nodes) - 1}) {
        if (skipped >= n / nodes) continue;
        std::vector<uint32_t> expected;
        for (int64_t node = 0; node < nodes; ++node)
          expected.insert(expected.end(), all.begin() + n * node / nodes + skipped,
                          all.begin() + n * (node + 1) / nodes);
        EXPECT_EQ(ids_of(units, shuffle, 100, skipped), expected) << enum_name(algo) << " " << skipped;
      }
    }
}

TEST(ShuffleTest, MarksLeadToTheSameIds) {
  std::vector<uint32_t> units;
  for (uint32_t i = 0; i < 300; ++i) units.push_back(1 + i * 2741 % 8000);
  const int64_t all = total(units);
  for (const ShuffleAlgo algo : kAll)
    for (const int64_t nodes : {1, 3, 64})
      for (const int64_t between : {1, 10000, 1 << 19}) {
        const Shuffle shuffle = {algo, nodes, 5, 2, 50000, between};
        const OrderMarks marks = shuffle_marks(units, shuffle);
        for (const int64_t skipped : {int64_t{0}, all / nodes / 2, all / nodes - 1})
          ASSERT_EQ(ids_of(units, shuffle, 700, skipped, marks), ids_of(units, shuffle, 700, skipped))
              << enum_name(algo) << " " << nodes << " " << between << " " << skipped;
      }
}

// Where the words of all shuffles are known by their sum, as NumPy's generator draws them.
TEST(ShuffleTest, MarksCountTheWordsThatShufflesDraw) {
  const std::vector<uint32_t> units = {50, 70, 60, 20};
  const Shuffle shuffle = {ShuffleAlgo::kPy1s, 1, 5, 2, 0, 100};
  NumpyRng rng(shuffle.seed + static_cast<uint64_t>(shuffle.epoch));
  const NodeSpans spans = shuffled_node_spans(units, 1, shuffle.seed, rng)[0];
  std::vector<uint64_t> expected = {0};
  size_t items = 0;
  for (const IdSpan& span : spans) {
    if (items >= 100) expected.push_back(0), items = 0;
    items += span.size();
    for (uint32_t i = static_cast<uint32_t>(span.size()) - 1; i > 0; --i) {
      uint32_t word = 0;
      do {
        word = rng.next32() & UINT32_MAX >> std::countl_zero(i);
        ++expected.back();
      } while (word > i);
    }
  }
  const OrderMarks marks = shuffle_marks(units, shuffle);
  ASSERT_EQ(marks.size(), 1u);
  EXPECT_EQ(marks.begin()->second, expected);
}

TEST(ShuffleTest, MarksOfAnotherShuffleAreNotUsed) {
  const std::vector<uint32_t> units(20, 500);
  const Shuffle shuffle = {ShuffleAlgo::kPy1e, 2, 5, 2, 3000, 1000};
  std::vector<Shuffle> others(6, shuffle);
  others[0].algo = ShuffleAlgo::kPy1s, others[1].num_canonical_nodes = 1, others[2].seed = 6;
  others[3].epoch = 3, others[4].block_size = 2000, others[5].between_marks = 2000;
  const std::string key = shuffle_marks(units, shuffle).begin()->first;
  for (const Shuffle& other : others) EXPECT_NE(shuffle_marks(units, other).begin()->first, key);
  std::vector<uint32_t> longer = units;
  longer.back() = 501;
  EXPECT_NE(shuffle_marks(longer, shuffle).begin()->first, key);
  const OrderMarks wrong = shuffle_marks(units, others[3]);
  EXPECT_EQ(ids_of(units, shuffle, 100, 0, wrong), ids_of(units, shuffle, 100));
  EXPECT_TRUE(shuffle_marks(std::vector<uint32_t>(1, 999), shuffle).empty()) << "sooner drawn than read";
}

TEST(ShuffleTest, DamagedMarksAreNotUsed) {
  const std::vector<uint32_t> units(100, 500);
  for (const ShuffleAlgo algo : kAll) {
    const Shuffle shuffle = {algo, 4, 5, 2, 6000, 1 << 13};
    const std::vector<uint32_t> expected = ids_of(units, shuffle);
    for (const auto& [key, words] : shuffle_marks(units, shuffle)) {
      ASSERT_GE(words.size(), 4u);
      std::vector<std::vector<uint64_t>> damaged = {{}, {words.begin(), words.end() - 1}, words};
      damaged.back().push_back(1);
      for (size_t i = 0; i < words.size(); ++i) {
        damaged.push_back(words);
        damaged.back()[i] ^= uint64_t{1} << 5 * i;
      }
      for (const auto& wrong : damaged)
        EXPECT_EQ(ids_of(units, shuffle, 1 << 30, 0, {{key, wrong}}), expected);
      EXPECT_EQ(ids_of(units, shuffle, 1 << 30, 0, {{"0" + key.substr(1), words}, {"x", {}}}), expected);
    }
  }
}

// A series checks the marks it is given, should shuffles ever draw otherwise than when they were noted.
TEST(ShuffleTest, ASeriesRefusesMarksThatLeadElsewhere) {
  const std::vector<uint32_t> sizes(100, 5000);
  MarkBook noted(MarkBook::Use::kNote, 1 << 16);
  ShuffleSeries(sizes, NumpyRng(3), noted);
  const std::vector<uint64_t> words = noted.words();
  ASSERT_EQ(words.size(), 8u);
  const auto read = [&](const std::vector<uint64_t>& given) {
    MarkBook book(MarkBook::Use::kRead, 1 << 16, given);
    ShuffleSeries series(sizes, NumpyRng(3), book);
    NumpyRng rng(3);
    for (const uint32_t size : sizes) rng.skip_shuffle(size);
    EXPECT_EQ(series.after(), rng);
  };
  read(words);
  const auto expect_refused = [&](const std::vector<uint64_t>& wrong) {
    testing::expect_error(ExitCode::kUnusable, {"order_marks", "damaged", "another one"},
                          [&] { read(wrong); });
  };
  for (size_t i = 0; i < words.size(); ++i)
    for (const int64_t moved : {-3000, -1, 1, 3000}) {
      std::vector<uint64_t> wrong = words;
      wrong[i] += static_cast<uint64_t>(moved);
      SCOPED_TRACE(fmt::format("{} by {}", i, moved));
      expect_refused(wrong);
    }
  expect_refused({words.begin(), words.end() - 1});
}

TEST(ShuffleTest, EveryIdComesOnce) {
  const std::vector<uint32_t> units(50, 333);
  for (const ShuffleAlgo algo : kAll)
    for (const int64_t epoch : {0, 1}) {
      std::vector<uint32_t> ids = ids_of(units, {algo, 4, 3, epoch, 1500});
      std::sort(ids.begin(), ids.end());
      for (size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i], i) << enum_name(algo);
    }
}

struct PlacedId {
  double position;
  uint32_t id;
};

/// The one node of py1e as mosaicml-streaming makes it: all ids and their positions in memory, sorted.
std::vector<PlacedId> py1e_in_memory(const std::vector<uint32_t>& units, const Shuffle& shuffle) {
  NumpyRng rng(shuffle.seed + static_cast<uint64_t>(shuffle.epoch));
  const NodeSpans spans = shuffled_node_spans(units, 1, shuffle.seed, rng)[0];
  std::vector<PlacedId> placed;
  for (const IdSpan& span : spans) {
    std::vector<uint32_t> ids(span.size());
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = span.begin + static_cast<uint32_t>(i);
    rng.shuffle(std::span(ids));
    for (const uint32_t id : ids) placed.push_back({0, id});
  }
  const auto all = static_cast<double>(placed.size()), block = static_cast<double>(shuffle.block_size);
  double before = 0;
  for (const IdSpan& span : spans) {
    const auto size = static_cast<double>(span.size());
    const int64_t drawn =
        rng.integers(static_cast<int64_t>(0.75 * block), static_cast<int64_t>(1.25 * block));
    const double cutoff = std::max((static_cast<double>(drawn) - size) / 2, 0.0);
    const double low = std::max(-cutoff, -before), high = std::min(cutoff, all - before - size);
    for (size_t i = 0; i < span.size(); ++i) {
      const double place = before + static_cast<double>(i);
      placed[static_cast<size_t>(place)].position = place + (low + (high - low) * rng.next_double());
    }
    before += size;
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const PlacedId& a, const PlacedId& b) { return a.position < b.position; });
  return placed;
}

// Where more samples came before a bucket than were expected, a stream that was to begin at it must go back.
TEST(ShuffleTest, Py1eGoesBackFartherWhereItHasSkippedTooMuch) {
  const std::vector<uint32_t> units(40000, 4);  // so short that the first step back is one position
  const Shuffle shuffle = {ShuffleAlgo::kPy1e, 1, 5, 2, 9000};
  const std::vector<PlacedId> all = py1e_in_memory(units, shuffle);
  int times = 0;
  for (int64_t begin = SpreadBuckets::kWidth; begin + 6000 < 160000; begin += SpreadBuckets::kWidth) {
    const auto first =
        std::lower_bound(all.begin(), all.end(), static_cast<double>(begin),
                         [](const PlacedId& placed, double position) { return placed.position < position; });
    const int64_t num_before = first - all.begin(), target = (num_before + begin) / 2;
    if (num_before < begin + 16)
      continue;  // as many as are expected, or the estimate may not reach the bucket
    ++times;
    const auto streams = shuffled_nodes(units, shuffle);
    streams[0]->skip(target);
    std::vector<uint32_t> ids(6000);
    streams[0]->read(ids);
    for (size_t i = 0; i < ids.size(); ++i)
      ASSERT_EQ(ids[i], all[static_cast<size_t>(target) + i].id) << "skipped to " << target;
  }
  EXPECT_GE(times, 3);
}

TEST(ShuffleTest, Py1eLooksAtTheLastBitsOfPositionsThatAgreeInOthers) {
  const std::vector<uint32_t> units(3000, 1000);
  const Shuffle shuffle = {ShuffleAlgo::kPy1e, 1, 9, 0, 100000};
  const std::vector<PlacedId> all = py1e_in_memory(units, shuffle);
  const auto kept_bits = [](double position) { return std::nearbyint(std::ldexp(position, 20)); };
  int close = 0;  // pairs that their ids would order the other way
  for (size_t i = 1; i < all.size(); ++i)
    close += kept_bits(all[i - 1].position) == kept_bits(all[i].position) && all[i - 1].id > all[i].id;
  EXPECT_GT(close, 0) << "choose another seed";
  const std::vector<uint32_t> ids = ids_of(units, shuffle);
  for (size_t i = 0; i < ids.size(); ++i) ASSERT_EQ(ids[i], all[i].id) << i;
}

}  // namespace
}  // namespace tycho
