// Footer of a Parquet file: its columns, and the positions of their pages.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
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

enum class ParquetType {
  kBoolean = 0,
  kInt32 = 1,
  kInt64 = 2,
  kInt96 = 3,
  kFloat = 4,
  kDouble = 5,
  kBytes = 6,
  kFixedBytes = 7
};

/// A column of values, or a struct or list of more nodes. Levels are those of a value that exists: the number
/// of optional and repeated nodes down to this one, and the number of repeated ones.
struct ParquetNode {
  std::string name, path;           // path: name with the names of its parents, joined by dots
  std::optional<ParquetType> type;  // nothing for a node with children
  bool is_optional = false, is_repeated = false;
  bool is_list = false;     // its only child is repeated
  bool is_decimal = false;  // values are digits of a decimal number: whole numbers or bytes
  int definition = 0, repetition = 0;
  std::vector<ParquetNode> children;
};

/// Word for the values of a column in messages: "texts", "decimals".
const char* kind_of_values(const ParquetNode& column);

/// Pages of one column in one group of rows.
struct ParquetChunk {
  ParquetCodec codec = ParquetCodec::kNone;
  int64_t begin = 0, end = 0;  // bytes in the file
  int64_t num_values = 0;      // nulls and empty lists included
};

/// Metadata of one column in a group of rows; not checked.
struct ParquetColumnMeta {
  int64_t codec = 0, num_values = 0, size = 0, data_begin = 0, dictionary_begin = 0;
  bool elsewhere = false;  // true if the data is in another file, or encrypted
};

struct ParquetGroup {
  int64_t num_rows = 0;
  std::map<std::string, ParquetColumnMeta> columns;  // by path
};

struct ParquetFooter {
  int64_t num_rows = 0;  // rows of all groups
  int64_t pages_end = 0;
  ParquetNode schema;  // root; its children are the columns
  std::vector<ParquetGroup> groups;

  /// Returns the chunks of a column of values. Throws Error (kUnusable) that begins with `place` when some
  /// are not within the pages, or are compressed with LZO, which is not supported.
  std::vector<ParquetChunk> chunks(const ParquetNode& column, const std::string& place) const;
};

/// Reads the footer, without its length and magic, of a file whose pages end at byte `pages_end`. Throws
/// Error (kUnusable) that begins with `place`, or with [parquet] where the footer is malformed.
/// (https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift)
ParquetFooter read_parquet_footer(std::string_view footer, int64_t pages_end, const std::string& place);

}  // namespace tycho
