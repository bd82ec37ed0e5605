// Copies a remote data set to a folder of this machine before a job reads it.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "trainer/data/mds/cached_index.h"

namespace tycho {

struct PreloadProgress {
  int64_t bytes_done = 0, bytes_total = 0;
  double bytes_per_s = 0, left_s = 0;  // averages since the start
};

struct PreloadReport {
  std::string remote, dir;
  int64_t shards = 0, bytes = 0;  // number of files, including those with the offsets of shards of text
  int64_t fetched_shards = 0, fetched_bytes = 0;  // the others existed already, and are verified too
  int64_t with_checksum = 0;  // shards that were compared with a checksum, in addition to their size
  double seconds = 0;
};

/// Fetches missing shards with `num_threads` downloads at a time, and verifies the rest. Can be killed and
/// started again. `progress` is called about twice a second, from one thread. Throws Error: as fetch_index()
/// and ShardCache do; kStorage before anything is fetched when the disk has too little space. Requires that
/// spec.limit_bytes is empty: there is no limit.
PreloadReport preload(const CacheSpec& spec, int num_threads,
                      const std::function<void(const PreloadProgress&)>& progress);

}  // namespace tycho
