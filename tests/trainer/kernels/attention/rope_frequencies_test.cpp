// Rotary frequencies against those that transformers computes (tests/golden/rope.py).
#include "trainer/kernels/attention/rope_frequencies.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <string>

#include "trainer/base/error.h"
#include "trainer/base/file_ops.h"
#include "trainer/base/json_reader.h"

namespace tycho {
namespace {

Json golden() {
  const char* source = std::getenv("TYCHO_SOURCE_DIR");
  const std::string path =
      std::string(source == nullptr ? "." : source) + "/tests/golden/rope/frequencies.json";
  return parse_json(read_file(path), path);
}

TEST(RopeFrequencies, EqualThoseOfTransformers) {
  for (const Json& c : golden()["cases"]) {
    SCOPED_TRACE(c["scaling"].dump());
    std::vector<ConfigProblem> problems;
    const auto scaling = from_json<RopeScalingConfig>(c["scaling"], problems);
    ASSERT_TRUE(problems.empty());
    const auto wanted = c["frequencies"].get<std::vector<double>>();
    const auto [got, factor] = rope_frequencies(c["rotary_dim"], c["theta"], scaling, c["seq"]);
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t j = 0; j < got.size(); ++j) EXPECT_NEAR(got[j] / wanted[j], 1.0, 1e-12) << "pair " << j;
    EXPECT_NEAR(factor / c["attention_factor"].get<double>(), 1.0, 1e-12);
  }
}

TEST(RopeFrequencies, StayAsTheyAreUpToTheTrainedLengthOfDynamicScaling) {
  const RopeScalingConfig dynamic{.type = RopeScaling::kDynamic, .factor = 4, .original_max_seq_len = 100};
  const auto plain = rope_frequencies(8, 10000, {}, 100).radians;
  EXPECT_EQ(rope_frequencies(8, 10000, dynamic, 100).radians, plain);
  EXPECT_EQ(rope_frequencies(8, 10000, dynamic, 1).radians, plain);
  EXPECT_LT(rope_frequencies(8, 10000, dynamic, 101).radians[3], plain[3]);
}

TEST(RopeFrequencies, OfLongropeChangeWhereTheTrainedLengthEnds) {
  const RopeScalingConfig longrope{.type = RopeScaling::kLongrope,
                                   .factor = 4,
                                   .original_max_seq_len = 100,
                                   .short_factor = {1, 2},
                                   .long_factor = {4, 8}};
  EXPECT_EQ(rope_frequencies(4, 100, longrope, 100).radians, (std::vector<double>{1, 0.05}));
  EXPECT_EQ(rope_frequencies(4, 100, longrope, 101).radians, (std::vector<double>{0.25, 0.0125}));
  const double factor = std::sqrt(1 + std::log(4.0) / std::log(100.0));
  EXPECT_EQ(rope_frequencies(4, 100, longrope, 100).attention_factor, factor)
      << "short sequences have it too";
  EXPECT_EQ(rope_frequencies(4, 100, longrope, 101).attention_factor, factor);
}

TEST(RopeFrequencies, NameValuesOutOfRange) {
  try {
    rope_frequencies(3, 10000, {}, 16);
    FAIL() << "an odd head dim was taken";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[rope] expected an even head dim > 0 and theta > 0, got 3 and 10000");
  }
  try {
    rope_frequencies(8, 10000, {.type = RopeScaling::kLongrope, .short_factor = {1, 1, 1, 1}}, 16);
    FAIL() << "a list of another length was taken";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[rope] expected longrope with 4 factors, got 0");
  }
}

}  // namespace
}  // namespace tycho
