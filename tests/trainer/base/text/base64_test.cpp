// Tests of base64 with the vectors of RFC 4648.
#include "trainer/base/text/base64.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

TEST(Base64, EncodesTheVectorsOfTheStandard) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("foob"), "Zm9vYg==");
  EXPECT_EQ(base64("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64(std::string("\xff\xfe\x00", 3)), "//4A");
}

TEST(Base64, DecodesWhatItEncodes) {
  for (const std::string text : {"", "f", "fo", "foo", "foob", "\xff\xfe"})
    EXPECT_EQ(from_base64(base64(text)), text);
  for (const char* bad : {"Zg", "Zg=", "Z===", "Zm9*", "=Zg=", "Zm9v\n"})
    EXPECT_FALSE(from_base64(bad)) << bad;
}

}  // namespace
}  // namespace tycho
