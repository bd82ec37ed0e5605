// Reads the entries of one column of a Parquet file, page by page.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/sources/parquet/parquet_file.h"
#include "trainer/data/sources/parquet/parquet_footer.h"
#include "trainer/data/sources/parquet/parquet_page.h"

namespace tycho {

/// One page and one dictionary are in memory at a time. Owned by one thread; the file must outlive it. Throws
/// Error (kUnusable) [parquet] for damaged data.
class ParquetColumn {
 public:
  /// Requires that `column` has values of a type that ParquetEntries reads.
  ParquetColumn(const ParquetFile& file, const ParquetNode& column);

  /// Returns the next entry without taking it; nothing at the end. Its text is valid until take().
  const std::optional<ParquetEntry>& peek();
  void take() { entry_.reset(); }
  /// Position in the file up to which this column has been read, for progress.
  int64_t position() const { return at_; }

 private:
  bool open_chunk();
  void next_page();
  ParquetPageHeader read_header(const ParquetChunk& chunk) const;

  const ParquetFile& file_;
  const ParquetNode& column_;
  std::vector<ParquetChunk> chunks_;
  size_t chunk_ = 0;        // index of the next chunk
  int64_t chunk_left_ = 0;  // entries in pages that have not been read
  int64_t at_ = 0;          // position in the file
  std::string body_, dictionary_body_;
  std::vector<ParquetValue> dictionary_;  // texts are views of dictionary_body_
  std::optional<ParquetEntries> page_;    // texts are views of body_
  std::optional<ParquetEntry> entry_;
};

}  // namespace tycho
