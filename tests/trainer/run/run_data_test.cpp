// What a run says of its data when it starts.
#include "trainer/run/run_data.h"

#include <gtest/gtest.h>

#include "trainer/metrics/reporter.h"

namespace tycho {
namespace {

class Warnings : public Reporter {
 public:
  void event(const std::string& kind, const std::string& text, const Json& /*facts*/) override {
    EXPECT_EQ(kind, "warning");
    texts.push_back(text);
  }
  std::vector<std::string> texts;
};

TEST(RunData, WarnsOfMoreThanFiftyMillionSamplesInOneList) {
  TrainConfig config;
  MdsConfig data;
  data.local_dir = "/data/c4";
  const auto texts = [&](int64_t num_samples) {
    config.train_data.value = data;
    Warnings warnings;
    report_orders(config, num_samples, warnings);
    return warnings.texts;
  };
  EXPECT_TRUE(texts(50'000'000).empty());
  const std::vector<std::string> found = texts(250'000'000);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].find("train_data.shuffle_algo: \"naive\" shuffles 250 million samples of /data/c4"), 0u)
      << found[0];
  EXPECT_NE(found[0].find("1.00 GB in every process, and 2.5 s"), std::string::npos) << found[0];
  data.shuffle_algo = ShuffleAlgo::kPy1s;
  EXPECT_TRUE(texts(250'000'000).empty());
  data.shuffle_algo = ShuffleAlgo::kNaive;
  data.shuffle = false;
  EXPECT_TRUE(texts(250'000'000).empty());
}

}  // namespace
}  // namespace tycho
