// Rotary frequencies against those that transformers computes (tests/golden/rope.py).
#include "trainer/kernels/attention/rope_frequencies.h"

#include <gtest/gtest.h>

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
    const auto got = rope_frequencies(c["head_dim"], c["theta"], scaling, c["seq"]);
    ASSERT_EQ(got.size(), wanted.size());
    for (size_t j = 0; j < got.size(); ++j) EXPECT_NEAR(got[j] / wanted[j], 1.0, 2e-6) << "pair " << j;
  }
}

TEST(RopeFrequencies, StayAsTheyAreUpToTheTrainedLengthOfDynamicScaling) {
  const RopeScalingConfig dynamic{.type = RopeScaling::kDynamic, .factor = 4, .original_max_seq_len = 100};
  EXPECT_EQ(rope_frequencies(8, 10000, dynamic, 100), rope_frequencies(8, 10000, {}, 100));
  EXPECT_EQ(rope_frequencies(8, 10000, dynamic, 1), rope_frequencies(8, 10000, {}, 1));
  EXPECT_LT(rope_frequencies(8, 10000, dynamic, 101)[3], rope_frequencies(8, 10000, {}, 101)[3]);
}

TEST(RopeFrequencies, NameValuesOutOfRange) {
  try {
    rope_frequencies(3, 10000, {}, 16);
    FAIL() << "an odd head dim was taken";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[rope] expected an even head dim > 0 and theta > 0, got 3 and 10000");
  }
}

}  // namespace
}  // namespace tycho
