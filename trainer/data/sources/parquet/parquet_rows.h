// Rows of a Parquet file as JSON: structs become objects, lists become lists.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/data/sources/parquet/parquet_column.h"
#include "trainer/data/sources/parquet/parquet_file.h"

namespace tycho {

/// Reads some of the columns, row by row. Owned by one thread. Errors are kUnusable and name the file, and
/// the row where there is one.
class ParquetRows {
 public:
  /// `columns`: names of the schema's first level. Throws Error for a missing column, and for values that
  /// JSON does not have: INT96 and FIXED_LEN_BYTE_ARRAY.
  ParquetRows(std::shared_ptr<const ParquetFile> file, const std::vector<std::string>& columns);
  ~ParquetRows();

  /// Reads a value for each column of the next row. Returns false at the end. Members of structs that are
  /// null are left out; a column that is null is null. Throws Error for damaged data, and texts that are not
  /// UTF-8.
  bool next(std::vector<Json>& values);
  /// Number of bytes of the file that have been read, for progress.
  int64_t file_bytes() const;

 private:
  struct Branch;
  void read(std::vector<Json>& values);

  std::shared_ptr<const ParquetFile> file_;
  std::vector<std::unique_ptr<Branch>> columns_;
  int64_t row_ = 0;  // number of the next row
};

}  // namespace tycho
