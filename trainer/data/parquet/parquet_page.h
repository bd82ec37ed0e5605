// One page of texts of a Parquet file: its header, and the values in it.
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

/// The texts of a dictionary page, inside `body`, which outlives them.
std::vector<std::string_view> read_dictionary(const ParquetPageHeader& header, std::string_view body);

/// The values of a data page, one by one.
class ParquetTexts {
 public:
  /// `body` of a page of kData or kDataV2 and `dictionary` outlive it. Encodings: PLAIN, RLE_DICTIONARY and
  /// PLAIN_DICTIONARY, DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY.
  ParquetTexts(const ParquetPageHeader& header, int max_definition, std::string_view body,
               const std::vector<std::string_view>& dictionary);
  int64_t num_left() const { return num_left_; }
  /// The next value, valid until the next call; nothing for a null. Throws Error (kUnusable) when the page is
  /// damaged.
  std::optional<std::string_view> next();

 private:
  void open_values(std::string_view values, int64_t encoding);
  std::string_view next_value();

  int64_t num_left_;
  uint32_t max_definition_;
  std::optional<RunReader> levels_;  // none: no value is null
  const std::vector<std::string_view>& dictionary_;
  std::optional<RunReader> indices_;
  std::optional<DeltaReader> prefixes_, lengths_;
  std::string_view plain_;  // values, or the bytes that lengths_ cut
  std::string text_;        // of values that share what they begin with
};

}  // namespace tycho
