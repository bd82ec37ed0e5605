// Finds damage in a data set by reading it.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace tycho {

/// What is wrong with the split in `dir`, for people: shards that are missing, of another size or number of
/// samples than index.json says, listed twice or not at all; offsets that are out of order; checksums;
/// values that their column's encoding cannot have; samples of another length than tycho.json says; tokens
/// outside the vocabulary. Of a compressed shard, the compressed file, and the raw one where it is there; the
/// raw one alone where only that is. Shards that a cache does not have are left out.
/// Empty when all is well. `quick` reads the heads of shards alone, which hold the offsets. At most twenty
/// findings, one for each shard. Throws Error (kUnusable) when index.json or tycho.json cannot be read at
/// all.
std::vector<std::string> find_damage(const std::string& dir, bool quick, int num_threads = 1);

/// How many shards a cache of remote data does not have, or not yet. 0 for other folders, where a shard that
/// is missing is damage.
int64_t num_absent_shards(const std::string& dir);

}  // namespace tycho
