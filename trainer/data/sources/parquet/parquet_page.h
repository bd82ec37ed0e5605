// One page of a column of a Parquet file: its header, and the values in it.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/data/sources/parquet/packed_integers.h"
#include "trainer/data/sources/parquet/parquet_footer.h"

namespace tycho {

enum class ParquetPageKind { kData, kIndex, kDictionary, kDataV2 };

struct ParquetPageHeader {
  ParquetPageKind kind = ParquetPageKind::kData;
  int64_t raw_bytes = 0, stored_bytes = 0;  // bytes after the header: decompressed, and as stored
  int64_t num_values = 0, encoding = 0;
  // For kDataV2, whose levels are not compressed.
  int64_t definition_bytes = 0, repetition_bytes = 0;
  bool is_compressed = true;
  size_t header_bytes = 0;
};

/// Reads the header at the front of `bytes`. Throws Error (kUnusable) for bytes that are no header, or end
/// too early.
ParquetPageHeader read_page_header(std::string_view bytes);

/// Decompresses the bytes after the header, with the levels of kDataV2. Throws Error (kUnusable) when the
/// result does not have `raw_bytes` bytes.
std::string decompress_page(const ParquetPageHeader& header, ParquetCodec codec, std::string_view stored);

/// Value of a column; its type sets one member.
struct ParquetValue {
  std::string_view text;  // kBytes
  int64_t whole = 0;      // kInt32, kInt64; 0 or 1 for kBoolean
  double number = 0;      // kFloat, kDouble
};

/// A value, or a missing one, whose definition level is lower than the column's.
struct ParquetEntry {
  int repetition = 0, definition = 0;  // levels, see ParquetNode
  ParquetValue value;
};

/// Reads the values of a dictionary page. Texts are views of `body`, which must outlive them.
std::vector<ParquetValue> read_dictionary(const ParquetPageHeader& header, ParquetType type,
                                          std::string_view body);

/// Reads the entries of a data page one by one.
class ParquetEntries {
 public:
  /// `body` is that of a page of kData or kDataV2 with values of `column`; `body` and `dictionary` must
  /// outlive this object. Encodings: PLAIN, RLE_DICTIONARY and PLAIN_DICTIONARY; for texts also
  /// DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY, for whole numbers DELTA_BINARY_PACKED, for booleans RLE.
  /// Types: all but kInt96 and kFixedBytes.
  ParquetEntries(const ParquetPageHeader& header, const ParquetNode& column, std::string_view body,
                 const std::vector<ParquetValue>& dictionary);
  int64_t num_left() const { return num_left_; }
  /// Returns the next entry; its text is valid until the next call. Throws Error (kUnusable) when the page is
  /// damaged.
  ParquetEntry next();

 private:
  void open_values(std::string_view values, int64_t encoding);
  void open_lengths(std::string_view values);
  ParquetValue next_value();
  std::string_view next_cut_text();

  int64_t num_left_;
  ParquetType type_;
  int definition_, repetition_;                         // levels of the column
  std::optional<RunReader> definitions_, repetitions_;  // none: all levels are the column's, or zero
  const std::vector<ParquetValue>& dictionary_;
  std::optional<RunReader> indices_, booleans_;
  std::optional<DeltaReader> prefixes_, lengths_, wholes_;
  std::string_view plain_;  // values, or the bytes that lengths_ splits
  size_t bit_at_ = 0;       // position in plain booleans
  std::string text_;        // text of a value that shares a prefix with the one before
};

}  // namespace tycho
