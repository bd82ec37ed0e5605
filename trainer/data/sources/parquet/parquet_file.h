// An open Parquet file: its footer, and the bytes of its pages.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/base/error.h"
#include "trainer/data/sources/parquet/parquet_footer.h"

namespace tycho {

/// Immutable. Errors are kUnusable and name the file.
class ParquetFile {
 public:
  /// Reads the footer. Throws Error for files that cannot be read, are damaged or encrypted.
  explicit ParquetFile(const std::string& path);

  const std::string& path() const { return path_; }
  int64_t num_bytes() const { return num_bytes_; }
  const ParquetFooter& footer() const { return footer_; }
  std::string read(int64_t offset, int64_t count) const;

  /// Throws the Error that row number `row`, counted from 0, cannot be read because of `broken`.
  [[noreturn]] void fail_row(int64_t row, const Error& broken) const;
  /// Throws the Error that there is no column `name`; `advice` says what to do.
  [[noreturn]] void fail_column(const std::string& name, std::string_view advice) const;

 private:
  std::string path_;
  int64_t num_bytes_ = 0;
  ParquetFooter footer_;
};

}  // namespace tycho
