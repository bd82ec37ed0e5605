// The entries of one column of a Parquet file, from page to page.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/data/parquet/parquet_file.h"
#include "trainer/data/parquet/parquet_footer.h"
#include "trainer/data/parquet/parquet_page.h"

namespace tycho {

/// One page and one dictionary are in memory at a time. Owned by one thread; the file must outlive it. Throws
/// Error (kUnusable) [parquet] for what is damaged.
class ParquetColumn {
 public:
  /// `column` has values of a type that ParquetEntries reads.
  ParquetColumn(const ParquetFile& file, const ParquetNode& column);

  /// The next entry, which stays the next one; nothing at the end. Its text is valid until take.
  const std::optional<ParquetEntry>& peek();
  void take() { entry_.reset(); }
  /// Of the file, how far this column has been read, for progress.
  int64_t position() const { return at_; }

 private:
  bool open_chunk();
  void next_page();
  ParquetPageHeader read_header(const ParquetChunk& chunk) const;

  const ParquetFile& file_;
  const ParquetNode& column_;
  std::vector<ParquetChunk> chunks_;
  size_t chunk_ = 0;        // the next one
  int64_t chunk_left_ = 0;  // entries of pages that have not been read
  int64_t at_ = 0;          // in the file
  std::string body_, dictionary_body_;
  std::vector<ParquetValue> dictionary_;  // in dictionary_body_
  std::optional<ParquetEntries> page_;    // in body_
  std::optional<ParquetEntry> entry_;
};

}  // namespace tycho
