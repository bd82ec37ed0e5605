// Cache of the shards of a remote data set, in a folder that the processes of a machine share.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>

#include "trainer/data/mds/cached_index.h"
#include "trainer/data/mds/mds_index.h"
#include "trainer/data/mds/shard_prefetch.h"
#include "trainer/data/rows/batch.h"
#include "trainer/data/storage/download.h"
#include "trainer/data/storage/part_file.h"
#include "trainer/data/storage/remote_files.h"

namespace tycho {

/// Shards in a shared folder. Used from any thread of any process. A shard has its final name only when it is
/// whole and equals the index; readers hold a shared lock on the file while it is open, and locked files are
/// not evicted. A compressed shard is fetched, compared with the index, decompressed and compared again; its
/// compressed file is then removed, or kept and evicted together with the raw one.
class ShardCache {
 public:
  /// Removes leftovers of killed processes that cannot be continued. `index` must outlive the cache.
  ShardCache(CacheSpec spec, const MdsIndex& index);

  /// Opens a shard, fetching it if it is missing. Returns a descriptor, which the caller closes. Throws
  /// Error: kUnusable naming shard and URL, kStorage naming the disk's file, kTerminated on a stop.
  int open(size_t shard, const std::stop_token& stop);
  /// Fetches a missing shard, evicting only shards that `may_evict` allows. Does nothing if that makes too
  /// little room.
  void prefetch(size_t shard, const std::stop_token& stop, const MayEvict& may_evict);
  /// Fetches a missing shard without evicting others. Returns false if the shard exists already.
  bool fetch(size_t shard, const std::stop_token& stop, const DownloadProgress& progress = {});
  /// Returns true if the cache has the shard, and marks it as used now.
  bool touch(size_t shard) const;
  /// Renames a damaged shard, unless its path is another file by now.
  void set_aside(size_t shard, int descriptor) const;
  /// Name of a shard for messages: "https://host/data/shard.00003.mds".
  std::string place_of(size_t shard) const;
  /// Counts of shards opened by open(), and fetched.
  FetchCounts counts() const { return {num_opened_, num_fetched_, fetched_bytes_}; }
  std::optional<int64_t> limit_bytes() const { return spec_.limit_bytes; }

 private:
  /// Returns the name of the remote file of a shard.
  std::string name_of(size_t shard) const;
  /// Returns the path of an incomplete or damaged file of the cache.
  std::string work_path(const std::string& path, std::string_view ending) const;
  bool make_room(size_t shard, const MayEvict& may_evict) const;
  bool evict_shard(size_t shard) const;
  /// Downloads the remote file of a shard.
  void fill(size_t shard, PartFile& part, const std::stop_token& stop, const DownloadProgress& progress);
  // Both fetch the shard into `part` and publish it. They return the damage of the fetched file; "" if there
  // is none.
  std::string fetch_raw(size_t shard, PartFile& part, const std::stop_token& stop,
                        const DownloadProgress& progress);
  std::string fetch_zip(size_t shard, PartFile& part, const std::stop_token& stop,
                        const DownloadProgress& progress);
  void clean() const;

  CacheSpec spec_;
  std::atomic<int64_t> num_opened_ = 0, num_fetched_ = 0, fetched_bytes_ = 0;
  const MdsIndex& index_;
  std::unique_ptr<RemoteFiles> files_;
  std::unordered_map<std::string_view, size_t> shard_of_path_;  // only with a limit
};

}  // namespace tycho
