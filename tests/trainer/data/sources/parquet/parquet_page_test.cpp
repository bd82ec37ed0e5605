// Pages by themselves: the two ways in which files called LZ4 were written.
#include "trainer/data/sources/parquet/parquet_page.h"

#include "tests/trainer/data/data_testing.h"

namespace tycho {
namespace {

using testing::expect_error;

std::string big_endian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift);
  return bytes;
}

/// "abcabcabcx" as one block of LZ4.
const std::string kBlock(
    "\x32"
    "abc\x03\x00\x10x",
    8);

std::string unpack(const std::string& stored, size_t raw_bytes, ParquetCodec codec = ParquetCodec::kLz4) {
  ParquetPageHeader header;
  header.raw_bytes = static_cast<int64_t>(raw_bytes);
  header.stored_bytes = std::ssize(stored);
  return decompress_page(header, codec, stored);
}

TEST(ParquetPageTest, Lz4OfHadoopIsBlocksBehindTheirSizes) {
  const std::string framed = big_endian(10) + big_endian(8) + kBlock;
  EXPECT_EQ(unpack(framed, 10), "abcabcabcx");
  EXPECT_EQ(unpack(framed + framed, 20), "abcabcabcxabcabcabcx");
  EXPECT_EQ(unpack(kBlock, 10), "abcabcabcx");  // as Arrow wrote it for some years
  EXPECT_EQ(unpack(kBlock, 10, ParquetCodec::kLz4Raw), "abcabcabcx");
}

TEST(ParquetPageTest, Lz4ThatDoesNotGiveItsBytesIsRefused) {
  const std::string framed = big_endian(10) + big_endian(8) + kBlock;
  const auto refuses = [](const std::string& stored, size_t raw_bytes, ParquetCodec codec) {
    expect_error(ExitCode::kUnusable, {"a page is not LZ4 data of"},
                 [&] { unpack(stored, raw_bytes, codec); });
  };
  for (const auto codec : {ParquetCodec::kLz4, ParquetCodec::kLz4Raw}) {
    refuses(kBlock, 9, codec);
    refuses(kBlock, 11, codec);
    refuses(kBlock.substr(0, 7), 10, codec);
    refuses("", 10, codec);
  }
  refuses(framed, 20, ParquetCodec::kLz4);
  refuses(framed + framed, 10, ParquetCodec::kLz4);
  refuses(framed + "x", 10, ParquetCodec::kLz4);
  refuses(big_endian(10) + big_endian(1 << 30) + kBlock, 10, ParquetCodec::kLz4);
  refuses(framed, 10, ParquetCodec::kLz4Raw);
}

}  // namespace
}  // namespace tycho
