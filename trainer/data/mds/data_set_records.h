// Texts of a data set of mosaicml-streaming, as documents.
#pragma once
#include <memory>
#include <string>

#include "trainer/data/rows/record_source.h"

namespace tycho {

/// Opens the column `name` of all samples in order, from MDS or from shards of text. The column's encoding
/// must be "str". Compressed shards are decompressed in memory. Throws Error (kUnusable) that names what is
/// damaged, or lists the columns if none has that name.
std::unique_ptr<RecordSource> open_data_set_texts(const std::string& folder, const std::string& name);

}  // namespace tycho
