// Tests of messages field by field, against the examples of Protocol Buffers' own page on its encoding.
#include "trainer/loggers/wire_message.h"

#include <gtest/gtest.h>

namespace tycho {
namespace {

using namespace std::string_literals;

TEST(WireMessage, WritesTheExamplesOfTheEncodingPage) {
  EXPECT_EQ(WireMessage().integer(1, 150).bytes(), "\x08\x96\x01");
  EXPECT_EQ(WireMessage().text(2, "testing").bytes(), "\x12\x07testing");
  EXPECT_EQ(WireMessage().message(3, WireMessage().integer(1, 150)).bytes(), "\x1a\x03\x08\x96\x01");
  EXPECT_EQ(WireMessage().integer(1, -2).bytes(), "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

TEST(WireMessage, WritesFloatsLowestByteFirst) {
  EXPECT_EQ(WireMessage().single(2, 1.0f).bytes(), "\x15\x00\x00\x80\x3f"s);
  EXPECT_EQ(WireMessage().real(1, 1.0).bytes(), "\x09\x00\x00\x00\x00\x00\x00\xf0\x3f"s);
  EXPECT_EQ(little_endian(0x01020304, 4), "\x04\x03\x02\x01");
}

TEST(WireMessage, HasTagsAndLengthsOfSeveralBytes) {
  const std::string text(300, 'x');
  EXPECT_EQ(WireMessage().text(16, text).bytes(), "\x82\x01\xac\x02" + text);
}

}  // namespace
}  // namespace tycho
