// Finetuning data as Parquet, as data sets of the Hugging Face hub have it.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/data/chat/chat_example.h"
#include "trainer/data/chat/row_columns.h"
#include "trainer/data/parquet/parquet_file.h"
#include "trainer/data/parquet/parquet_rows.h"
#include "trainer/data/skipped_rows.h"

namespace tycho {

/// The rows of a file, one by one. Texts are columns of encoding "str"; lists and structs are JSON. Owned by
/// one thread. Errors are kUnusable and name the file.
class ParquetChat {
 public:
  /// Throws Error for files that cannot be read, and as RowColumns.
  explicit ParquetChat(const std::string& path);

  const RowColumns& columns() const { return *columns_; }
  /// The next row; false at the end.
  bool next(std::vector<RowCell>& cells);
  /// Of a row, counted from 0, for messages: "FILE, row 1".
  std::string place(int64_t row) const;
  /// How far the file has been read, for progress.
  int64_t file_bytes() const { return rows_->file_bytes(); }

 private:
  std::shared_ptr<const ParquetFile> file_;
  std::optional<RowColumns> columns_;
  std::optional<ParquetRows> rows_;
  std::vector<Json> values_;
};

/// The examples of all rows, in order. Throws Error (kUnusable) that names the row for rows that are wrong
/// and tokens outside [0, vocab_size), which `skipped` counts instead; and as encode_rows when it is stopped.
std::vector<ChatExample> encode_parquet_rows(const std::string& path, const ChatEncoder& encoder,
                                             int64_t vocab_size, const std::atomic<int>& stop,
                                             SkippedRows* skipped = nullptr);

}  // namespace tycho
