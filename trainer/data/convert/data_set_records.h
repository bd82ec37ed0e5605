// Texts of a data set of mosaicml-streaming, as documents.
#pragma once
#include <memory>
#include <string>

#include "trainer/data/record_source.h"

namespace tycho {

/// The values of the column `name`, which must be of encoding "str", of all samples in their order: of MDS
/// and of shards of text. Compressed shards are decompressed in memory. Throws Error (kUnusable) that names
/// what is damaged, and lists the columns where there is none of that name.
std::unique_ptr<RecordSource> open_data_set_texts(const std::string& folder, const std::string& name);

}  // namespace tycho
