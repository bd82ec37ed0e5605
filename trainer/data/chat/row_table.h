// Rows of finetuning data from a table: Parquet, Arrow, CSV, or the samples of a data set.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/data/chat/row_columns.h"
#include "trainer/data/mds/mds_index.h"
#include "trainer/data/mds/shard_source.h"

namespace tycho {

/// Reads rows one by one. Owned by one thread. Errors are kUnusable and name the file; after a BadRow, next()
/// returns the row after the bad one.
class RowTable {
 public:
  virtual ~RowTable() = default;
  virtual const RowColumns& columns() const = 0;
  /// Reads the values of the next row in the order of columns(). Returns false at the end.
  virtual bool next(std::vector<RowCell>& cells) = 0;
  /// Name of the last row, for messages: "FILE, row 1".
  virtual std::string place() const = 0;
  /// Number of bytes of the file that have been read, for progress.
  virtual int64_t file_bytes() const = 0;
};

/// Opens a Parquet file. Texts are columns of encoding "str"; lists and structs are JSON. Throws Error for
/// files that cannot be read, and as RowColumns.
std::unique_ptr<RowTable> open_parquet_rows(const std::string& path);

/// Opens an Arrow file or stream; see open_parquet_rows().
std::unique_ptr<RowTable> open_arrow_rows(const std::string& path);

/// Opens a CSV file. Prompts and responses are texts; messages, turns and tokens are JSON. Throws as
/// CsvReader and RowColumns.
std::unique_ptr<RowTable> open_csv_rows(const std::string& path, char separator);

/// Opens an MDS data set. `place` names it in messages. Throws as MdsReader and RowColumns.
std::unique_ptr<RowTable> open_mds_rows(MdsIndex index, const MakeShardSource& make_source,
                                        const std::string& place);

}  // namespace tycho
