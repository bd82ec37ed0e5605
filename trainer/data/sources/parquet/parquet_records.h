// The texts of one column of a Parquet file.
#pragma once
#include <memory>
#include <string>

#include "trainer/data/rows/record_source.h"

namespace tycho {

/// Opens the texts of the column `name` ("text"; of a struct, "meta.text") in the order of their rows. Reads
/// the footer now and pages when they are needed: one page and one dictionary are in memory at a time. Throws
/// Error (kUnusable) that names the file, and the row where there is one: for files that are damaged or
/// encrypted, a column that is missing or holds no texts, and texts that are null.
std::unique_ptr<RecordSource> open_parquet(const std::string& path, const std::string& name);

}  // namespace tycho
