// One index.json over several data sets, as mosaicml-streaming's merge_index makes it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/base/file_ops.h"

namespace tycho {

/// What a merged index names.
struct MergedIndex {
  int64_t parts = 0, shards = 0, samples = 0;
};

/// Folders below `dir` that have an index.json, by their names, sorted; hidden ones left out. Those in such a
/// folder belong to it.
std::vector<std::string> find_parts(const std::string& dir);

/// Writes dir/index.json with the shards of these folders of `dir`, in this order; shards stay where they
/// are. Where all have a tycho.json of the same tokenizer and rules, dir/tycho.json is written too, with the
/// sums and the checksums. Throws Error: kUsage when there is an index.json already that is another, or no
/// part; kUnusable when a part cannot be read, or has other columns, or was made with another tokenizer;
/// kStorage when they cannot be written.
MergedIndex merge_indexes(FileOps& files, const std::string& dir, const std::vector<std::string>& parts);

}  // namespace tycho
