// Finds damage in a data set by reading it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tycho {

/// Returns damage of the split in `dir`, as text for users; empty if there is none. Finds shards that are
/// missing, listed twice or not listed, or have another size or number of samples than index.json says;
/// offsets that are out of order; wrong checksums; values that their column's encoding cannot have; samples
/// of another length than tycho.json says; tokens outside the vocabulary. For a compressed shard, checks the
/// compressed file and, where it exists, the raw one; only the raw one where the compressed one is missing.
/// Shards that a cache does not have are left out. `quick` reads only the heads of shards, which hold the
/// offsets. At most twenty findings, one for each shard. Throws Error (kUnusable) when index.json or
/// tycho.json cannot be read at all.
std::vector<std::string> find_damage(const std::string& dir, bool quick, int num_threads = 1);

/// Returns the number of shards that a cache of remote data does not have yet. Returns 0 for other folders,
/// where a missing shard is damage.
int64_t num_absent_shards(const std::string& dir);

}  // namespace tycho
