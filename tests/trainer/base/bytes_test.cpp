// Sizes with units: what they mean, how they print, what is refused.
#include "trainer/base/bytes.h"

#include <gtest/gtest.h>

#include "trainer/base/error.h"

namespace tycho {
namespace {

TEST(Bytes, KnowsPowersOf1000And1024) {
  EXPECT_EQ(Bytes::parse("4096").value, 4096);
  EXPECT_EQ(Bytes::parse("0B").value, 0);
  EXPECT_EQ(Bytes::parse("1.5GB").value, 1500000000);
  EXPECT_EQ(Bytes::parse("64MiB").value, 67108864);
  EXPECT_EQ(Bytes::parse("64 MiB").value, 67108864);
  EXPECT_EQ(Bytes::parse("1.1TB").value, 1100000000000);
  EXPECT_EQ(Bytes::parse("0.5KiB").value, 512);
  EXPECT_EQ(Bytes::parse("2TiB").value, int64_t{2} << 40);
}

TEST(Bytes, PrintShortAndReadBackTheSame) {
  EXPECT_EQ(Bytes{67108864}.str(), "64MiB");
  EXPECT_EQ(Bytes{1000}.str(), "1000B");
  EXPECT_EQ(Bytes{0}.str(), "0B");
  EXPECT_EQ(Bytes{int64_t{3} << 50}.str(), "3072TiB");
  for (int64_t n : {1, 1023, 1024, 1025, 1500000000}) EXPECT_EQ(Bytes::parse(Bytes{n}.str()).value, n);
}

TEST(Bytes, RefuseOtherUnitsFractionsAndSigns) {
  for (const char* text :
       {"", "MiB", "1 gb", "1mb", "-1", "1.5", "nan", "inf", "1e300", "9000TiB", "64MiB2"}) {
    EXPECT_THROW(Bytes::parse(text), Error) << text;
  }
  try {
    Bytes::parse("3mb");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kRecipe);
    EXPECT_STREQ(
        error.what(),
        "[bytes] expected a size with a unit out of B KB MB GB TB KiB MiB GiB TiB, such as \"64MiB\", "
        "got \"3mb\"");
  }
}

TEST(HumanBytes, HasThreeDigits) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(1.5e9), "1.50 GB");
  EXPECT_EQ(human_bytes(15.04e6), "15.0 MB");
  EXPECT_EQ(human_bytes(150.4e3), "150 KB");
  EXPECT_EQ(human_bytes(999.6e6), "1.00 GB");
  EXPECT_EQ(human_bytes(9.996e6), "10.0 MB");
  EXPECT_EQ(human_bytes(2.5e15), "2500 TB");
}

TEST(HumanCount, HasLettersForPowersOf1000) {
  EXPECT_EQ(human_count(980), "980");
  EXPECT_EQ(human_count(1234), "1.23 K");
  EXPECT_EQ(human_count(124.4e6), "124.4 M");
  EXPECT_EQ(human_count(2.516e9), "2.52 B");
  EXPECT_EQ(human_count(999.97e6), "1.00 B");
  EXPECT_EQ(human_count(8030261248.0), "8.03 B");
}

}  // namespace
}  // namespace tycho
