// The rows of an Arrow file or stream, batch by batch.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/data/sources/arrow/arrow_column.h"
#include "trainer/data/sources/arrow/arrow_schema.h"

namespace tycho {

/// Reads the IPC stream format and, front to back, the IPC file format (Feather 2), which is a stream between
/// two magic words. Memory: a window of 256 KiB or the longest value for each buffer of a chosen column; of
/// compressed batches and dictionaries, the chosen columns. Owned by one thread. Errors are kUnusable and
/// name the file, and the row where there is one. (https://arrow.apache.org/docs/format/Columnar.html)
class ArrowFile {
 public:
  /// Reads the schema. Throws Error for files that cannot be read, are damaged, or lack their end.
  explicit ArrowFile(const std::string& path);

  const std::string& path() const { return *path_; }
  int64_t num_bytes() const { return num_bytes_; }
  const ArrowField& schema() const { return schema_; }
  /// Chooses columns by their places in the schema. Throws Error for values that are not read, such as
  /// decimals and unions, and for columns of only nulls.
  void choose(const std::vector<size_t>& columns);
  /// Moves to the next row, first to row 0. Returns false after the last one.
  bool next();
  /// Number of the row, from 0.
  int64_t row() const { return row_; }
  /// Place of the row in column(), which has the values of a batch.
  int64_t place() const { return place_; }
  /// Returns chosen column `i` of the batch.
  ArrowColumn& column(size_t i) { return columns_[i]; }
  /// Number of bytes of the file that have been read, for progress.
  int64_t file_bytes() const { return position_; }

  /// Throws the Error that the row cannot be read because of `broken`.
  [[noreturn]] void fail_row(const Error& broken) const;
  /// Throws the Error that there is no column `name`; `advice` says what to do.
  [[noreturn]] void fail_column(const std::string& name, std::string_view advice) const;

 private:
  struct Message;
  std::optional<Message> read_message();
  void read_schema();
  void check_end();
  bool next_batch();
  void take_dictionary(const Message& message);
  void take_batch(const Message& message);
  void add_dictionaries(const ArrowField& field);
  ArrowColumn chosen(ArrowColumn column);

  std::shared_ptr<const std::string> path_;
  int64_t num_bytes_ = 0, position_ = 0;
  ArrowField schema_;
  std::map<int64_t, ArrowField> dictionary_fields_;  // values of each dictionary
  std::map<int64_t, std::shared_ptr<std::vector<ArrowColumn>>> dictionaries_;
  std::vector<size_t> chosen_;
  std::vector<ArrowColumn> columns_;
  int64_t row_ = -1, place_ = -1, batch_rows_ = 0;
};

}  // namespace tycho
