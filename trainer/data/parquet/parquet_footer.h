// What the footer of a Parquet file says: its columns, and where their pages are.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tycho {

enum class ParquetCodec {
  kNone = 0,
  kSnappy = 1,
  kGzip = 2,
  kLzo = 3,
  kBrotli = 4,
  kLz4 = 5,
  kZstd = 6,
  kLz4Raw = 7
};

/// The pages of one column in one group of rows.
struct ParquetChunk {
  ParquetCodec codec = ParquetCodec::kNone;
  int64_t begin = 0, end = 0;  // bytes in the file
  int64_t num_values = 0;      // nulls included: the rows of the group
};

/// A column of texts, and all its chunks.
struct ParquetTextColumn {
  int64_t num_rows = 0;
  int max_definition = 0;  // 0: required; a value is null when its level is lower
  std::vector<ParquetChunk> chunks;
};

/// Finds the column `name` ("text"; of a struct, "meta.text") in the footer, without its length and magic, of
/// a file whose pages end at byte `pages_end`. It must be of type BYTE_ARRAY, not repeated, and not
/// compressed with LZO or LZ4, which is not read. Throws
/// Error (kUnusable) that begins with `place` and lists the columns where there is none of that name.
/// (https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift)
ParquetTextColumn read_parquet_footer(std::string_view footer, const std::string& name, int64_t pages_end,
                                      const std::string& place);

}  // namespace tycho
