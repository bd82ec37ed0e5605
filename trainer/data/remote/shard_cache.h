// The shards of a remote data set in a folder that the processes of a machine share.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>

#include "trainer/data/batch.h"
#include "trainer/data/mds/mds_index.h"
#include "trainer/data/mds/shard_prefetch.h"
#include "trainer/data/part_file.h"
#include "trainer/data/remote/cached_index.h"
#include "trainer/data/remote/download.h"
#include "trainer/data/remote/remote_files.h"

namespace tycho {

/// From any thread of any process. A shard has its final name only when it is whole and equals the index;
/// readers hold a shared lock on the file while it is open, and what is locked is not evicted. A compressed
/// shard is fetched, compared with the index, decompressed and compared again; its compressed file is then
/// removed, or kept and evicted together with the raw one.
class ShardCache {
 public:
  /// Removes what killed processes have left and nobody can continue. `index` outlives the cache.
  ShardCache(CacheSpec spec, const MdsIndex& index);

  /// A descriptor of a shard, fetched when it is not there; the caller closes it. Throws Error: kUnusable
  /// naming shard and URL, kStorage naming the disk's file, kTerminated on a stop.
  int open(size_t shard, const std::stop_token& stop);
  /// Fetches a shard that is not there, evicting only shards that `may_evict` allows; with none, leaves it.
  void prefetch(size_t shard, const std::stop_token& stop, const MayEvict& may_evict);
  /// Fetches a shard that is not there; false when it was. Nothing is evicted.
  bool fetch(size_t shard, const std::stop_token& stop, const DownloadProgress& progress = {});
  /// Whether the cache has it; if so it counts as used now.
  bool touch(size_t shard) const;
  /// Gives a shard that is damaged another name, unless its name is another file's by now.
  void set_aside(size_t shard, int descriptor) const;
  /// "https://host/data/shard.00003.mds"
  std::string place_of(size_t shard) const;
  /// Shards opened by open(), and fetched.
  FetchCounts counts() const { return {num_opened_, num_fetched_, fetched_bytes_}; }
  std::optional<int64_t> limit_bytes() const { return spec_.limit_bytes; }

 private:
  /// The name of what is fetched.
  std::string name_of(size_t shard) const;
  /// Of a file of the cache, while it is not whole.
  std::string work_path(const std::string& path, std::string_view ending) const;
  bool make_room(size_t shard, const MayEvict& may_evict) const;
  bool evict_shard(size_t shard) const;
  /// Downloads what is fetched of a shard.
  void fill(size_t shard, PartFile& part, const std::stop_token& stop, const DownloadProgress& progress);
  // Both publish the shard, by `part`, and return what is wrong with what came; "" when nothing is.
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
