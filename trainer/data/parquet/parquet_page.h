// One page of a column of a Parquet file: its header, and the values in it.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/parquet/packed_integers.h"
#include "trainer/data/parquet/parquet_footer.h"

namespace tycho {

enum class ParquetPageKind { kData, kIndex, kDictionary, kDataV2 };

struct ParquetPageHeader {
  ParquetPageKind kind = ParquetPageKind::kData;
  int64_t raw_bytes = 0, stored_bytes = 0;  // behind the header, decompressed and as they are
  int64_t num_values = 0, encoding = 0;
  // Of kDataV2, whose levels are not compressed.
  int64_t definition_bytes = 0, repetition_bytes = 0;
  bool is_compressed = true;
  size_t header_bytes = 0;
};

/// The header that `bytes` begin with. Throws Error (kUnusable) for bytes that are none; also where they end
/// too early.
ParquetPageHeader read_page_header(std::string_view bytes);

/// What is behind the header, decompressed: levels and values of kDataV2 too. Throws Error (kUnusable) when
/// it does not give `raw_bytes` bytes.
std::string decompress_page(const ParquetPageHeader& header, ParquetCodec codec, std::string_view stored);

/// A value of a column: what its type fills in.
struct ParquetValue {
  std::string_view text;  // kBytes
  int64_t whole = 0;      // kInt32, kInt64, and 0 or 1 of kBoolean
  double number = 0;      // kFloat, kDouble
};

/// A value, or the place where one is missing; where it is missing the definition is lower than the column's.
struct ParquetEntry {
  int repetition = 0, definition = 0;  // levels, as ParquetNode has them
  ParquetValue value;
};

/// The values of a dictionary page; texts lie inside `body`, which outlives them.
std::vector<ParquetValue> read_dictionary(const ParquetPageHeader& header, ParquetType type,
                                          std::string_view body);

/// The entries of a data page, one by one.
class ParquetEntries {
 public:
  /// `body` of a page of kData or kDataV2, of values of this column, and `dictionary` outlive it. Encodings:
  /// PLAIN, RLE_DICTIONARY and PLAIN_DICTIONARY; of texts DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY, of
  /// whole numbers DELTA_BINARY_PACKED, of booleans RLE. Types: all but kInt96 and kFixedBytes.
  ParquetEntries(const ParquetPageHeader& header, const ParquetNode& column, std::string_view body,
                 const std::vector<ParquetValue>& dictionary);
  int64_t num_left() const { return num_left_; }
  /// The next entry; its text is valid until the next call. Throws Error (kUnusable) when the page is
  /// damaged.
  ParquetEntry next();

 private:
  void open_values(std::string_view values, int64_t encoding);
  void open_lengths(std::string_view values);
  ParquetValue next_value();
  std::string_view next_cut_text();

  int64_t num_left_;
  ParquetType type_;
  int definition_, repetition_;                         // of the column
  std::optional<RunReader> definitions_, repetitions_;  // none: all are the column's, or zero
  const std::vector<ParquetValue>& dictionary_;
  std::optional<RunReader> indices_, booleans_;
  std::optional<DeltaReader> prefixes_, lengths_, wholes_;
  std::string_view plain_;  // values, or the bytes that lengths_ cut
  size_t bit_at_ = 0;       // of plain booleans
  std::string text_;        // of values that share what they begin with
};

}  // namespace tycho
