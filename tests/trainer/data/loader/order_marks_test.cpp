// What a loader knows of the order of a large epoch, and where that leads another one.
#include <numeric>

#include "tests/trainer/data/data_testing.h"
#include "trainer/base/json.h"
#include "trainer/data/loader/loader.h"
#include "trainer/data/mds/mds_writer.h"

namespace tycho {
namespace {

constexpr int32_t kTokens = 8, kStored = 4096, kCopies = 260;

/// A million samples over a small folder: its index names a shard again and again.
class OrderMarksTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(temp_ / "train");
    MdsWriter writer(real_files(), temp_ / "train", {.columns = {{"tokens", "ndarray:int32"}}});
    for (int32_t s = 0; s < kStored; ++s) {
      std::vector<int32_t> tokens(kTokens);
      std::iota(tokens.begin(), tokens.end(), 10 * s);
      writer.write({encode_mds_array(tokens.data(), kTokens, sizeof(int32_t))});
    }
    writer.finish();
    const std::string index = temp_ / "train/index.json";
    Json json = parse_json(read_file(index), index);
    ASSERT_EQ(json.at("shards").size(), 1u);
    json["shards"] = Json(kCopies, json.at("shards")[0]);
    testing::write_text(index, json.dump());
    config_.local_dir = temp_.path();
  }

  std::unique_ptr<DataLoader> open(const DataCursor& cursor = {}, const OrderMarks& marks = {}) const {
    return make_loader({{config_}},
                       {.seq_len = kTokens, .global_sequences = 256, .vocab_size = 10 * kStored, .seed = 17},
                       cursor, {}, marks);
  }

  static std::vector<std::vector<int32_t>> next_batches(DataLoader& loader) {
    std::vector<std::vector<int32_t>> batches;
    for (int i = 0; i < 20; ++i) batches.push_back(loader.next().tokens.widened());
    return batches;
  }

  testing::TempDir temp_;
  MdsConfig config_;
};

TEST_F(OrderMarksTest, AreThoseOfTheEpochAndLeadToTheSameBatches) {
  for (const ShuffleAlgo algo : {ShuffleAlgo::kPy1s, ShuffleAlgo::kPy1e}) {
    config_.shuffle_algo = algo;
    const auto first = open();
    const int64_t batches = first->samples_per_epoch() / 256;
    const DataCursor middle = first->cursor_after(batches / 2), end = first->cursor_after(batches - 10);
    const OrderMarks marks = first->order_marks();
    EXPECT_EQ(marks.size(), 1u);
    for (const DataCursor& cursor : {middle, end}) {
      const auto marked = open(cursor, marks);
      EXPECT_EQ(marked->order_marks(), marks);
      EXPECT_EQ(next_batches(*marked), next_batches(*open(cursor)));
      EXPECT_EQ(marked->cursor().epoch, cursor == end ? 1 : 0);
      EXPECT_EQ(marked->order_marks() == marks, cursor == middle);
      EXPECT_EQ(marked->order_marks(), open(marked->cursor())->order_marks());
    }
  }
}

TEST_F(OrderMarksTest, NaiveHasNone) { EXPECT_TRUE(open()->order_marks().empty()); }

}  // namespace
}  // namespace tycho
