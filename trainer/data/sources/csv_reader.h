// Rows of CSV and TSV files: values between separators, some of them in quotes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/data/rows/record_source.h"
#include "trainer/data/sources/byte_source.h"

namespace tycho {

/// Reads CSV like Python's csv module with strict=True from a file opened as utf-8-sig. The first row names
/// the columns; blank lines are skipped; `""` in quotes is a quote. Decompresses .gz and .zst while reading.
/// Owned by one thread. Errors are kUnusable and name file and line.
class CsvReader {
 public:
  /// `separator`: ',' or a tab. Reads the first row. Throws Error when there is none.
  CsvReader(const std::string& path, char separator);

  const std::vector<std::string>& columns() const { return columns_; }
  /// Returns the index of the column of this name. Throws Error that lists the columns, or says that two have
  /// this name.
  size_t column(const std::string& name) const;
  /// Reads the next row, with as many values as there are columns. Returns false at the end. Throws Error for
  /// a row with more or fewer values, text after a closing quote, a quote that is never closed, and rows of
  /// more than 256 MiB.
  bool next(std::vector<std::string>& values);
  /// Number of the line in which the last row begins.
  int64_t line() const { return row_line_; }
  /// Number of bytes of the file itself that have been read, for progress.
  int64_t file_bytes() const { return source_->file_bytes(); }

 private:
  bool more();
  int peek();
  void take_line_end();
  void read_quoted(std::string& value);
  void read_plain(std::string& value);
  bool read_row(std::vector<std::string>& values);

  std::string path_;
  char separator_;
  std::unique_ptr<ByteSource> source_;
  std::string block_;
  size_t at_ = 0;  // in block_
  int64_t line_ = 1, row_line_ = 1;
  size_t row_bytes_ = 0;
  std::vector<std::string> columns_;
};

/// Opens the texts of the column `name`, row by row.
std::unique_ptr<RecordSource> open_csv(const std::string& path, char separator, const std::string& name);

}  // namespace tycho
