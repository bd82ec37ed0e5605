// Numbers, texts and frames: there and back, and what is refused before there is memory for it.
#include "trainer/rendezvous/frames.h"

#include <gtest/gtest.h>

#include "trainer/base/error.h"

namespace tycho {
namespace {

TEST(Wire, NumbersAndTextsComeBack) {
  WireWriter writer;
  writer.u8(255).u32(0xdeadbeef).u64(~uint64_t{0}).f64(-0.1).text("").text(std::string("a\0b", 3));
  WireReader reader(writer.bytes());
  EXPECT_EQ(reader.u8(), 255);
  EXPECT_EQ(reader.u32(), 0xdeadbeefU);
  EXPECT_EQ(reader.u64(), ~uint64_t{0});
  EXPECT_EQ(reader.f64(), -0.1);
  EXPECT_EQ(reader.text(0), "");
  EXPECT_EQ(reader.text(3), std::string("a\0b", 3));
  reader.end();
}

TEST(Wire, EveryPrefixOfAMessageIsRefused) {
  WireWriter writer;
  writer.u8(1).u32(2).u64(3).text("four");
  for (size_t n = 0; n < writer.bytes().size(); ++n) {
    const auto read = [&] {
      WireReader reader(std::string_view(writer.bytes()).substr(0, n));
      reader.u8(), reader.u32(), reader.u64(), reader.text(10);
    };
    EXPECT_THROW(read(), Error) << n;
  }
}

TEST(Wire, WhatIsTooLongOrTooMuchIsRefused) {
  WireWriter writer;
  writer.text("four");
  EXPECT_THROW(WireReader(writer.bytes()).text(3), Error);
  EXPECT_THROW(WireReader(writer.bytes()).end(), Error);
  EXPECT_THROW(WireReader("\xff\xff\xff\xff").text(SIZE_MAX), Error);
}

/// All frames of `bytes`, given in pieces as large as the reader wants and `most` allows.
std::vector<Frame> frames(std::string_view bytes, size_t most, size_t max_frame) {
  FrameReader reader(max_frame);
  std::vector<Frame> found;
  while (!bytes.empty()) {
    const size_t n = std::min({reader.wanted(), most, bytes.size()});
    EXPECT_GE(n, 1U);
    if (const auto frame = reader.add(bytes.substr(0, n))) found.push_back(*frame);
    bytes.remove_prefix(n);
  }
  return found;
}

TEST(Wire, FramesComeBackFromPiecesOfAnySize) {
  const std::string bytes =
      frame_bytes(1, "") + frame_bytes(2, std::string(511, 'x')) + frame_bytes(255, "end");
  for (const size_t most : {1, 2, 3, 5, 100, 10000}) {
    const std::vector<Frame> found = frames(bytes, most, 512);
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[0].kind, 1);
    EXPECT_EQ(found[0].body, "");
    EXPECT_EQ(found[1].body, std::string(511, 'x'));
    EXPECT_EQ(found[2].kind, 255);
    EXPECT_EQ(found[2].body, "end");
  }
}

TEST(Wire, AReaderNeverWantsBytesOfTheNextFrame) {
  FrameReader reader(512);
  EXPECT_EQ(reader.wanted(), 4U);
  reader.add(std::string_view("\x03\0\0\0", 4));
  EXPECT_EQ(reader.wanted(), 3U);
  reader.add("a");
  EXPECT_EQ(reader.wanted(), 2U);
  EXPECT_TRUE(reader.add("bc"));
  EXPECT_EQ(reader.wanted(), 4U);
  EXPECT_THROW(reader.add("12345"), Error);
}

TEST(Wire, LengthsOutsideOfTheLimitsAreRefusedAtOnce) {
  for (const uint32_t length : {0U, 513U, 1U << 20, ~0U}) {
    WireWriter writer;
    FrameReader reader(512);
    EXPECT_THROW(reader.add(writer.u32(length).bytes()), Error) << length;
  }
}

}  // namespace
}  // namespace tycho
