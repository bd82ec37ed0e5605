// One index.json over several data sets, as mosaicml-streaming's merge_index makes it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"

namespace tycho {

/// Counts of a merged index.
struct MergedIndex {
  int64_t parts = 0, shards = 0, samples = 0;
};

/// Returns the names of folders below `dir` that have an index.json, sorted. Leaves out hidden folders, and
/// folders inside such a folder, which belong to it.
std::vector<std::string> find_parts(const std::string& dir);

/// Writes dir/index.json with the shards of these folders of `dir`, in this order; shards stay where they
/// are. If all folders have a tycho.json of the same tokenizer and rules, dir/tycho.json is also written,
/// with the sums and the checksums. Throws Error: kUsage when a different index.json exists, or there is no
/// part; kUnusable when a part cannot be read, has other columns, or was made with another tokenizer;
/// kStorage when the files cannot be written.
MergedIndex merge_indexes(FileOps& files, const std::string& dir, const std::vector<std::string>& parts);

}  // namespace tycho
