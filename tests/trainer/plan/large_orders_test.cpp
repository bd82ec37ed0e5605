// What a check says of orders that take much memory.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/trainer/base/temp_dir.h"
#include "trainer/base/json.h"
#include "trainer/plan/plan.h"

namespace tycho {
namespace {

// Counted in index.json: data of such a size need not be there.
TEST(LargeOrders, WarnsOfManySamplesThatAreShuffledAsOneList) {
  const TempDir dir;
  const auto shard = [](const char* name, int64_t samples) {
    return Json{{"column_encodings", {"ndarray:int32"}},
                {"column_names", {"tokens"}},
                {"column_sizes", {nullptr}},
                {"compression", nullptr},
                {"format", "mds"},
                {"hashes", Json::array()},
                {"samples", samples},
                {"raw_data", {{"basename", name}, {"bytes", 1'000'000'000}, {"hashes", Json::object()}}},
                {"size_limit", 1'000'000'000},
                {"version", 2},
                {"zip_data", nullptr}};
  };
  std::filesystem::create_directory(dir / "train");
  const auto write_index = [&](int64_t last) {
    const Json index = {{"version", 2}, {"shards", {shard("a.mds", 25'000'000), shard("b.mds", last)}}};
    std::ofstream(dir / "train/index.json") << index.dump();
  };
  TrainConfig config;
  MdsConfig data;
  data.local_dir = dir.path();
  data.split = "train";
  config.train_data.value = data;
  write_index(25'000'000);
  EXPECT_TRUE(large_orders(config).empty());
  write_index(25'000'001);
  const std::vector<ConfigProblem> found = large_orders(config);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].path, "train_data.shuffle_algo");
  for (const char* part : {"\"naive\" shuffles 50 million samples", "train as one list", "200 MB", "0.5 s",
                           "\"py1s\"", "\"py1e\""})
    EXPECT_NE(found[0].message.find(part), std::string::npos) << part << " in " << found[0].message;
  config.data_stages = {{.name = "later", .data = config.train_data}};
  EXPECT_EQ(large_orders(config).size(), 2u);
  EXPECT_EQ(large_orders(config).back().path, "data_stages[1].data.shuffle_algo");
  data.shuffle_algo = ShuffleAlgo::kPy1e;
  config.train_data.value = data;
  EXPECT_EQ(large_orders(config).size(), 1u);
  data.shuffle_algo = ShuffleAlgo::kNaive;
  data.shuffle = false;
  config.data_stages.clear();
  config.train_data.value = data;
  EXPECT_TRUE(large_orders(config).empty()) << "nothing is shuffled";
  data.shuffle = true;
  config.train_data.value = data;
  std::ofstream(dir / "train/index.json") << "{";
  EXPECT_TRUE(large_orders(config).empty()) << "the run says what is wrong";
  std::filesystem::remove(dir / "train/index.json");
  EXPECT_TRUE(large_orders(config).empty());
}

}  // namespace
}  // namespace tycho
