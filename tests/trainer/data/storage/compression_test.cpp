// Names of compressions.
#include "trainer/data/storage/compression.h"

#include "tests/trainer/data/data_testing.h"

namespace tycho {
namespace {

using testing::expect_error;

TEST(CompressionTest, ReadsTheNamesOfStreaming) {
  const auto level = [](std::string_view name) { return parse_compression(name, "[here]").level; };
  EXPECT_EQ(level("zstd"), 3);
  EXPECT_EQ(level("zstd:22"), 22);
  EXPECT_EQ(level("gz"), 9);
  EXPECT_EQ(level("gz:0"), 0);
  EXPECT_EQ(level("br"), 11);
  EXPECT_EQ(level("bz2:1"), 1);
  EXPECT_EQ(parse_compression("snappy", "[here]").kind, CompressionKind::kSnappy);
  EXPECT_EQ(parse_compression("zstd:7", "[here]").name, "zstd:7");
  for (const std::string_view name : {"br", "bz2", "gz", "snappy", "zstd"})
    EXPECT_EQ(compression_extension(parse_compression(name, "[here]").kind), name);
}

TEST(CompressionTest, RefusesOthers) {
  const auto refuses = [](std::string_view name, std::initializer_list<std::string_view> parts) {
    expect_error(ExitCode::kUnusable, parts, [&] { parse_compression(name, "[here]"); });
  };
  refuses("lz4", {"[here]", "\"lz4\"", "zstd, gz, br, bz2 and snappy"});
  refuses("", {"not known"});
  refuses("zstd:", {"levels of zstd are 1 to 22"});
  refuses("zstd:0", {"1 to 22"});
  refuses("zstd:23", {"1 to 22"});
  refuses("zstd:3x", {"1 to 22"});
  refuses("zstd:99999999999999999999", {"1 to 22"});
  refuses("br:12", {"0 to 11"});
  refuses("snappy:1", {"snappy has no levels"});
}

}  // namespace
}  // namespace tycho
