// The texts of one column of an Arrow file, and its rows as JSON.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/data/rows/record_source.h"
#include "trainer/data/sources/arrow/arrow_file.h"

namespace tycho {

/// Opens the texts of the column `name` ("text"; of a struct, "meta.text") in the order of their rows. Throws
/// Error as ArrowFile, for a column that is missing or holds no texts, and BadRow for texts that are null.
std::unique_ptr<RecordSource> open_arrow(const std::string& path, const std::string& name);

/// Reads some of the columns, row by row. Owned by one thread. Throws as ArrowFile.
class ArrowRows {
 public:
  /// `columns`: names of the schema's first level. Throws Error for a missing column, and as
  /// ArrowFile::choose().
  ArrowRows(std::shared_ptr<ArrowFile> file, const std::vector<std::string>& columns);

  /// Reads a value for each column of the next row. Returns false at the end. Members of structs that are
  /// null are left out; a column that is null is null.
  bool next(std::vector<Json>& values);
  int64_t file_bytes() const { return file_->file_bytes(); }

 private:
  std::shared_ptr<ArrowFile> file_;
  size_t num_columns_;
};

}  // namespace tycho
