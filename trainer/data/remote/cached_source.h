// Shards of a remote data set for the MDS reader.
#pragma once
#include <memory>

#include "trainer/data/config.h"
#include "trainer/data/mds/mds_index.h"
#include "trainer/data/mds/shard_source.h"
#include "trainer/data/remote/cached_index.h"

namespace tycho {

/// Shards come from the cache, which fetches them when they are first read, or before, when they were
/// announced. One that is damaged there is set aside and fetched again once; then it is an Error. `index`
/// outlives the source.
std::unique_ptr<ShardSource> make_cached_source(const MdsIndex& index, VerifyShards verify,
                                                const CacheSpec& spec);

}  // namespace tycho
