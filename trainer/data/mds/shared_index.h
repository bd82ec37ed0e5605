// Indexes of data sets that several parts of a program read.
#pragma once
#include <memory>
#include <string>

#include "trainer/data/mds/mds_index.h"

namespace tycho {

/// Returns what read_mds_index() does, read once in this process while its files stay as they are: a start
/// counts, checks, trains and evaluates, and 300,000 shards take a second. From any thread.
std::shared_ptr<const MdsIndex> shared_mds_index(const std::string& dir, const std::string& decompress_dir);

}  // namespace tycho
