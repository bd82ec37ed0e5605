// Lengths of training: units, exact text, and messages.
#include "trainer/base/duration.h"

#include <gtest/gtest.h>

#include "trainer/base/error.h"

namespace tycho {
namespace {

TEST(Duration, ReadsEveryUnit) {
  EXPECT_EQ(Duration::parse("10ba"), (Duration{10, DurationUnit::kBatch}));
  EXPECT_EQ(Duration::parse("1.5ep"), (Duration{1.5, DurationUnit::kEpoch}));
  EXPECT_EQ(Duration::parse("256sp"), (Duration{256, DurationUnit::kSample}));
  EXPECT_EQ(Duration::parse("2e9tok"), (Duration{2e9, DurationUnit::kToken}));
  EXPECT_EQ(Duration::parse("0.5dur"), (Duration{0.5, DurationUnit::kFraction}));
  EXPECT_EQ(Duration::parse("30s"), (Duration{30, DurationUnit::kSecond}));
  EXPECT_EQ(Duration::parse("90m"), (Duration{5400, DurationUnit::kSecond}));
  EXPECT_EQ(Duration::parse("2 h"), (Duration{7200, DurationUnit::kSecond}));
}

TEST(Duration, PrintsShortestExactText) {
  EXPECT_EQ(Duration::parse("2e9tok").str(), "2000000000tok");
  EXPECT_EQ(Duration::parse("4800ba").str(), "4800ba");
  EXPECT_EQ(Duration::parse("0.1dur").str(), "0.1dur");
  EXPECT_EQ(Duration::parse("90m").str(), "5400s");
  for (double x : {0.1, 1.0 / 3, 1e-9, 2.5e15, 9007199254740992.0, 1e300}) {
    const Duration duration{x, DurationUnit::kToken};
    EXPECT_EQ(Duration::parse(duration.str()), duration) << duration.str();
  }
}

TEST(Duration, NamesTheUnitsWhenThereIsNone) {
  for (const char* text : {"", "ba", "10", "10batches", "10 tokens", "infba", "nanba", "0x10ba", "10ba "}) {
    EXPECT_THROW(Duration::parse(text), Error) << text;
  }
  try {
    Duration::parse("100");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kRecipe);
    const std::string text = error.what();
    for (const char* unit : {"ba", "ep", "sp", "tok", "dur", " s,", " m ", " h;"}) {
      EXPECT_NE(text.find(unit), std::string::npos) << unit;
    }
    EXPECT_NE(text.find("got \"100\""), std::string::npos);
  }
}

TEST(Duration, AcceptsAuto) {
  DurationOrAuto length = Duration::parse("8sp");
  EXPECT_FALSE(length.is_auto);
  EXPECT_EQ(length.str(), "8sp");
  length.is_auto = true;
  EXPECT_EQ(length.str(), "auto");
  EXPECT_FALSE(length == DurationOrAuto(Duration::parse("8sp")));
}

TEST(Duration, CountsOnlyWholeNumbers) {
  EXPECT_EQ(Duration::parse("2e9tok").count(), 2000000000);
  EXPECT_THROW(Duration::parse("0.5ba").count(), Error);
  EXPECT_THROW(Duration::parse("1e300ba").count(), Error);
}

}  // namespace
}  // namespace tycho
