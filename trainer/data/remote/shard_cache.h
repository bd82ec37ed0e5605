// The shards of a remote data set in a folder that the processes of a machine share.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <unordered_map>

#include "trainer/data/mds/mds_index.h"
#include "trainer/data/remote/cached_index.h"
#include "trainer/data/remote/download.h"
#include "trainer/data/remote/part_file.h"
#include "trainer/data/remote/remote_files.h"

namespace tycho {

/// Whether a shard may be removed from the cache.
using MayEvict = std::function<bool(size_t)>;

/// From any thread of any process. A shard has its final name only when it is whole and equals the index;
/// readers hold a shared lock on the file while it is open, and what is locked is not evicted.
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
  std::optional<int64_t> limit_bytes() const { return spec_.limit_bytes; }

 private:
  std::string name_of(size_t shard) const;
  std::string work_path(size_t shard, std::string_view ending) const;
  bool make_room(int64_t num_bytes, const MayEvict& may_evict) const;
  /// What is wrong with what came; "" when nothing is.
  std::string fill(size_t shard, PartFile& part, const std::stop_token& stop,
                   const DownloadProgress& progress);
  void clean() const;

  CacheSpec spec_;
  const MdsIndex& index_;
  std::unique_ptr<RemoteFiles> files_;
  std::unordered_map<std::string_view, size_t> shard_of_path_;  // only with a limit
};

}  // namespace tycho
