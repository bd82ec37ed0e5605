// Shards of a remote data set for the MDS reader.
#pragma once
#include <memory>

#include "trainer/data/mds/cached_index.h"
#include "trainer/data/mds/mds_index.h"
#include "trainer/data/mds/shard_source.h"
#include "trainer/recipe/data.h"

namespace tycho {

/// Makes a source that reads shards from the cache, which fetches them when they are first read, or earlier
/// when they were announced. A damaged shard in the cache is set aside and fetched again once; then it is an
/// Error. `index` must outlive the source.
std::unique_ptr<ShardSource> make_cached_source(const MdsIndex& index, VerifyShards verify,
                                                const CacheSpec& spec);

}  // namespace tycho
